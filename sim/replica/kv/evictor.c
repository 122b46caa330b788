#include "replica/kv/evictor.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"

int kv_evictor_create(struct kv_evictor *evictor, int32_t n_blocks)
{
    const size_t n = n_blocks > 0 ? (size_t)n_blocks : 1;
    *evictor = (struct kv_evictor){
        .seats = calloc(n, sizeof *evictor->seats),
        .first = -1,
        .last = -1,
        .heap = malloc(n * sizeof *evictor->heap),
    };
    if (!evictor->seats || !evictor->heap) {
        kv_evictor_destroy(evictor);
        return IFL_E_NOMEM;
    }
    return 0;
}

void kv_evictor_destroy(struct kv_evictor *evictor)
{
    free(evictor->seats);
    free(evictor->heap);
    *evictor = (struct kv_evictor){0};
}

/* For the precondition of a new rank. */
IFL_FOR_ASSERTS static inline bool ranks_before(const struct kv_rank *x, const struct kv_rank *y)
{
    if (x->key != y->key)
        return x->key < y->key;
    return x->depth_tokens != y->depth_tokens ? x->depth_tokens > y->depth_tokens
                                              : x->touched < y->touched;
}

static bool lost_before(const struct kv_evictor *evictor, int32_t a, int32_t b)
{
    const struct kv_rank *x = &evictor->seats[a].rank, *y = &evictor->seats[b].rank;
    if (x->key != y->key)
        return x->key < y->key;
    if (x->depth_tokens != y->depth_tokens)
        return x->depth_tokens > y->depth_tokens;
    return x->touched != y->touched ? x->touched < y->touched : a < b;
}

/* ---- the list ---- */

static void append(struct kv_evictor *evictor, int32_t block)
{
    evictor->seats[block].heap_at = KV_IN_LIST;
    evictor->seats[block].prev = evictor->last;
    evictor->seats[block].next = -1;
    *(evictor->last >= 0 ? &evictor->seats[evictor->last].next : &evictor->first) = block;
    evictor->last = block;
}

static void unlink_block(struct kv_evictor *evictor, int32_t block)
{
    const int32_t prev = evictor->seats[block].prev, next = evictor->seats[block].next;
    *(prev >= 0 ? &evictor->seats[prev].next : &evictor->first) = next;
    *(next >= 0 ? &evictor->seats[next].prev : &evictor->last) = prev;
}

/* ---- the heap ---- */

static void place(struct kv_evictor *evictor, int32_t i, int32_t block)
{
    evictor->heap[i] = block;
    evictor->seats[block].heap_at = i + 1;
}

static void rise(struct kv_evictor *evictor, int32_t i, int32_t block)
{
    for (; i > 0 && lost_before(evictor, block, evictor->heap[(i - 1) / 2]); i = (i - 1) / 2)
        place(evictor, i, evictor->heap[(i - 1) / 2]);
    place(evictor, i, block);
}

static void sink(struct kv_evictor *evictor, int32_t i, int32_t block)
{
    for (int32_t c; (c = 2 * i + 1) < evictor->n_heap; i = c) {
        if (c + 1 < evictor->n_heap && lost_before(evictor, evictor->heap[c + 1], evictor->heap[c]))
            c++;
        if (!lost_before(evictor, evictor->heap[c], block))
            break;
        place(evictor, i, evictor->heap[c]);
    }
    place(evictor, i, block);
}

static void leave_heap(struct kv_evictor *evictor, int32_t i)
{
    const int32_t last = evictor->heap[--evictor->n_heap];
    if (i == evictor->n_heap)
        return;
    if (i > 0 && lost_before(evictor, last, evictor->heap[(i - 1) / 2]))
        rise(evictor, i, last);
    else
        sink(evictor, i, last);
}

/* ---- both ---- */

void kv_evictor_put(struct kv_evictor *evictor, uint32_t block, struct kv_rank rank)
{
    const int32_t b = (int32_t)block;
    ifl_require(!kv_evictor_has(evictor, block));
    evictor->seats[block].rank = rank;
    if (evictor->last < 0 || lost_before(evictor, evictor->last, b))
        append(evictor, b);
    else
        rise(evictor, evictor->n_heap++, b);
}

void kv_evictor_remove(struct kv_evictor *evictor, uint32_t block)
{
    const int32_t at = evictor->seats[block].heap_at;
    ifl_require(at != KV_NOT_UNUSED);
    if (at == KV_IN_LIST)
        unlink_block(evictor, (int32_t)block);
    else
        leave_heap(evictor, at - 1);
    evictor->seats[block].heap_at = KV_NOT_UNUSED;
}

int32_t kv_evictor_first(const struct kv_evictor *evictor)
{
    const int32_t block = evictor->first;
    if (evictor->n_heap > 0 && (block < 0 || lost_before(evictor, evictor->heap[0], block)))
        return evictor->heap[0];
    return block;
}

void kv_evictor_rerank_first(struct kv_evictor *evictor, struct kv_rank rank)
{
    ifl_assert(kv_evictor_first(evictor) >= 0);
    ifl_assert(!ranks_before(&rank, &evictor->seats[kv_evictor_first(evictor)].rank));
    const int32_t block = kv_evictor_first(evictor), next = evictor->seats[block].next;
    evictor->seats[block].rank = rank;
    if (evictor->seats[block].heap_at != KV_IN_LIST) {
        sink(evictor, 0, block);
    } else if (next >= 0 && lost_before(evictor, next, block)) {
        kv_evictor_remove(evictor, (uint32_t)block);
        kv_evictor_put(evictor, (uint32_t)block, rank);
    }
}

bool kv_evictor_shorten_first(struct kv_evictor *evictor, uint32_t block, int32_t depth_tokens)
{
    ifl_assert(kv_evictor_first(evictor) == (int32_t)block);
    ifl_assert(depth_tokens <= evictor->seats[block].rank.depth_tokens);
    struct kv_seat *seat = &evictor->seats[block];
    const struct kv_rank before = seat->rank;
    const int32_t b = (int32_t)block;
    seat->rank.depth_tokens = depth_tokens;
    if (seat->heap_at == KV_IN_LIST && (seat->next < 0 || lost_before(evictor, b, seat->next)) &&
        (evictor->n_heap == 0 || lost_before(evictor, b, evictor->heap[0])))
        return true;
    seat->rank = before;
    return false;
}
