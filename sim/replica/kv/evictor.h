/* Unused cached blocks, in the order in which they are evicted.
 *
 * The block with the smallest key is first; of equal keys the deepest block, then the block touched
 * first, then the lowest number. Most blocks are added in rising order, as under LRU; these form a
 * list. The other blocks are in a heap.
 *
 * Each block has a seat. Seats may be part of larger records of the caller. While the evictor does
 * not have a block, the caller may use its seat. */
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
    int32_t at;     /* KV_NOT_UNUSED: the evictor does not have the block. In the list: 2 + the
                       previous block, 1: none. In the heap: minus its place, counted from 1 */
    int32_t next;   /* the next block in the list, -1: none */
    uint32_t spare; /* free for the owner of the seat */
};

enum { KV_NOT_UNUSED = 0 };

struct kv_evictor {
    char *seats; /* the seats, seat_bytes apart, the seat of the last block first */
    size_t seat_bytes;
    int32_t last_block;
    int32_t first, last;   /* first and last block of the list, -1: empty */
    int32_t *heap, n_heap; /* [n_heap]; its memory grows on demand */
    size_t cap_heap;
};

/* Creates an evictor without blocks. The caller owns the seats; only the seats of blocks that are
 * passed in must exist. A zeroed seat is that of a block that the evictor does not have. Zeroed
 * memory is valid for kv_evictor_destroy. */
void kv_evictor_create(struct kv_evictor *evictor, int32_t n_blocks, void *seats,
                       size_t seat_bytes);
/* Notes that the seats have been moved to another address. */
static inline void kv_evictor_move(struct kv_evictor *evictor, void *seats)
{
    evictor->seats = seats;
}
void kv_evictor_destroy(struct kv_evictor *evictor);

void kv_evictor_put(struct kv_evictor *evictor, uint32_t block, struct kv_rank rank);
void kv_evictor_remove(struct kv_evictor *evictor, uint32_t block);
/* Returns the block that is evicted next, or -1. */
int32_t kv_evictor_first(const struct kv_evictor *evictor);
/* Gives the first block another rank, which must not be before its old one. */
void kv_evictor_rerank_first(struct kv_evictor *evictor, struct kv_rank rank);
/* Reduces the depth of `block`, which must be the first. Returns true if it surely stays the first;
 * otherwise returns false and changes nothing. */
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
