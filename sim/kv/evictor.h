/* Cached blocks that nobody uses, in the order in which they are lost.
 *
 * The smallest key goes first; equal keys: the deepest of its prefix, then the one touched first.
 * Blocks mostly come in rising order, as under LRU: those form a list. The others go to a heap. */
#ifndef SIM_KV_EVICTOR_H
#define SIM_KV_EVICTOR_H

#include <stdbool.h>
#include <stdint.h>

struct kv_rank {
    int64_t key;
    uint64_t touched;
    int32_t depth_tokens;
};

struct kv_seat {
    struct kv_rank rank;
    int32_t prev, next; /* in the list */
    int32_t heap_at;    /* place in the heap, or one of the two below */
};

struct kv_evictor {
    struct kv_seat *seats; /* [n_blocks] */
    int32_t first, last;   /* of the list, -1: empty */
    int32_t *heap, n_heap;
};

enum { KV_NOT_UNUSED = -1, KV_IN_LIST = -2 };

/* 0, or -1 without memory. Zeroed memory is valid for kv_evictor_destroy. */
int kv_evictor_create(struct kv_evictor *evictor, int32_t n_blocks);
void kv_evictor_destroy(struct kv_evictor *evictor);

void kv_evictor_put(struct kv_evictor *evictor, uint32_t block, struct kv_rank rank);
void kv_evictor_remove(struct kv_evictor *evictor, uint32_t block);
/* Who is lost next; -1 where nobody is. */
int32_t kv_evictor_first(const struct kv_evictor *evictor);
/* Who was to be lost next has another rank, which is not before the one it had. */
void kv_evictor_rerank_first(struct kv_evictor *evictor, struct kv_rank rank);
/* `block`, who was to be lost next, is not so deep any more. False, and nothing has changed: then
 * another might be lost before it. */
bool kv_evictor_shorten_first(struct kv_evictor *evictor, uint32_t block, int32_t depth_tokens);

static inline bool kv_evictor_has(const struct kv_evictor *evictor, uint32_t block)
{
    return evictor->seats[block].heap_at != KV_NOT_UNUSED;
}

#endif
