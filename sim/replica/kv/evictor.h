/* Unused cached blocks, in the order in which they are evicted.
 *
 * The order: the smallest key first; of equal keys the deepest block, then the one touched first,
 * then the lowest number. Most blocks are put in rising order, as under LRU; these form a list. The
 * others go to a heap. */
#ifndef SIM_REPLICA_KV_EVICTOR_H
#define SIM_REPLICA_KV_EVICTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/error.h"

struct kv_rank {
    int64_t key;
    uint64_t touched;
    int32_t depth_tokens;
};

struct kv_seat {
    struct kv_rank rank;
    int32_t prev, next; /* in the list */
    int32_t heap_at;    /* place in the heap, from 1 on; KV_NOT_UNUSED or KV_IN_LIST */
};

struct kv_evictor {
    struct kv_seat *seats; /* [n_blocks]; no memory backs those that were never unused */
    int32_t first, last;   /* of the list, -1: empty */
    int32_t *heap, n_heap;
};

enum { KV_NOT_UNUSED = 0, KV_IN_LIST = -1 };

/* 0 or IFL_E_NOMEM. Zeroed memory is valid for kv_evictor_destroy. */
int kv_evictor_create(struct kv_evictor *evictor, int32_t n_blocks);
void kv_evictor_destroy(struct kv_evictor *evictor);

void kv_evictor_put(struct kv_evictor *evictor, uint32_t block, struct kv_rank rank);
void kv_evictor_remove(struct kv_evictor *evictor, uint32_t block);
/* The block that is evicted next; -1 if there is none. */
int32_t kv_evictor_first(const struct kv_evictor *evictor);
/* Gives the first block another rank, which must not be before its old one. */
void kv_evictor_rerank_first(struct kv_evictor *evictor, struct kv_rank rank);
/* Reduces the depth of `block`, which must be the first. True if it stays the first for certain.
 * Otherwise false, and nothing has changed. */
bool kv_evictor_shorten_first(struct kv_evictor *evictor, uint32_t block, int32_t depth_tokens);

static inline bool kv_evictor_has(const struct kv_evictor *evictor, uint32_t block)
{
    return evictor->seats[block].heap_at != KV_NOT_UNUSED;
}

#endif
