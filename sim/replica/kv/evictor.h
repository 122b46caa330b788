/* Unused cached blocks, in the order in which they are evicted.
 *
 * The order: the smallest key first; of equal keys the deepest block, then the one touched first,
 * then the lowest number. Most blocks are put in rising order, as under LRU; these form a list. The
 * others go to a heap.
 *
 * Each block has a seat. Seats may lie in larger records of the caller, which may read and write
 * them while their blocks are not here. */
#ifndef SIM_REPLICA_KV_EVICTOR_H
#define SIM_REPLICA_KV_EVICTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

struct kv_rank {
    int64_t key;
    uint64_t touched;
    int32_t depth_tokens;
};

struct kv_seat {
    int64_t key;
    uint64_t touched;
    int32_t depth_tokens;
    int32_t at;   /* KV_NOT_UNUSED; in the list 2 + the block before it, 1: none; in the heap minus
                     its place, from 1 on */
    int32_t next; /* in the list, -1: none */
    uint32_t spare; /* for the owner of the seat */
};

enum { KV_NOT_UNUSED = 0 };

struct kv_evictor {
    char *seats; /* seat_bytes apart, that of the last block first */
    size_t seat_bytes;
    int32_t last_block;
    int32_t first, last;   /* of the list, -1: empty */
    int32_t *heap, n_heap; /* grows as it is used */
    size_t cap_heap;
};

/* Of seats that are the caller's: it needs none but of blocks that are asked about. Zeroed seats
 * are those of blocks that are not unused. Zeroed memory is valid for kv_evictor_destroy. */
void kv_evictor_create(struct kv_evictor *evictor, int32_t n_blocks, void *seats,
                       size_t seat_bytes);
/* The same seats are elsewhere from now on. */
static inline void kv_evictor_move(struct kv_evictor *evictor, void *seats)
{
    evictor->seats = seats;
}
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

static inline struct kv_seat *kv_seat(const struct kv_evictor *evictor, int32_t block)
{
    const size_t i = (size_t)(evictor->last_block - block);
    return (struct kv_seat *)(void *)(evictor->seats + i * evictor->seat_bytes);
}

/* True if the evictor has the block that the seat belongs to. */
static inline bool kv_seat_is_taken(const struct kv_seat *seat)
{
    return seat->at != KV_NOT_UNUSED;
}

static inline bool kv_evictor_has(const struct kv_evictor *evictor, uint32_t block)
{
    return kv_seat_is_taken(kv_seat(evictor, (int32_t)block));
}

#endif
