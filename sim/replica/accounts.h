/* Accounts of a replica's K/V: its pools, and how the slots of their blocks are used. A slot has
 * room for one token. The pools are written by kv/pool.c, the sums here. */
#ifndef SIM_REPLICA_ACCOUNTS_H
#define SIM_REPLICA_ACCOUNTS_H

#include "replica/kv/pool.h"

struct accounts {
    int64_t token_slots;    /* K/V that exists on the device */
    int64_t internal_slots; /* held, and never to be used */
    int32_t n_group_saved;  /* blocks saved by sharing within groups */
    struct kv_pool device, host;
};

/* n more slots hold the K/V of a token; fewer if n is negative. So with the others. */
static inline void accounts_add_tokens(struct accounts *kv, int64_t n)
{
    kv->token_slots += n;
}

/* n more slots of taken blocks will never be used. */
static inline void accounts_add_unused(struct accounts *kv, int64_t n)
{
    kv->internal_slots += n;
}

/* Sequences of a group save n more blocks by sharing them. */
static inline void accounts_add_saved(struct accounts *kv, int32_t n)
{
    kv->n_group_saved += n;
}

#endif
