/* Accounts of a replica's K/V: its pools, and how the slots of their blocks are used. A slot has
 * room for one token. The pools are written by kv/pool.c, the sums here. */
#ifndef SIM_REPLICA_ACCOUNTS_H
#define SIM_REPLICA_ACCOUNTS_H

#include "replica/kv/pool.h"

struct accounts {
    int64_t token_slots;    /* K/V that exists on the device */
    int64_t internal_slots; /* slots of held blocks that no token will ever fill */
    int32_t n_group_saved;  /* blocks saved by sharing within groups */
    struct kv_pool device, host;
};

/* Counts n more slots that hold the K/V of a token. A negative n lowers the count, here and in the
 * functions below. */
static inline void accounts_add_tokens(struct accounts *kv, int64_t n)
{
    kv->token_slots += n;
}

/* Counts n more slots of taken blocks that no token will ever fill. */
static inline void accounts_add_unused(struct accounts *kv, int64_t n)
{
    kv->internal_slots += n;
}

/* Counts n more blocks that sequences of a group save by sharing. */
static inline void accounts_add_saved(struct accounts *kv, int32_t n)
{
    kv->n_group_saved += n;
}

#endif
