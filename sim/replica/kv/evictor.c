#include "replica/kv/evictor.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"

#include "base/array.h"

void kv_evictor_create(struct kv_evictor *evictor, int32_t n_blocks, void *seats, size_t seat_bytes)
{
    *evictor = (struct kv_evictor){.seats = seats,
                                   .seat_bytes = seat_bytes,
                                   .last_block = n_blocks - 1,
                                   .first = -1,
                                   .last = -1};
}

void kv_evictor_destroy(struct kv_evictor *evictor)
{
    free(evictor->heap);
    *evictor = (struct kv_evictor){0};
}

/* For the precondition of a new rank. */
IFL_FOR_ASSERTS static inline bool ranks_before(const struct kv_rank *x, const struct kv_seat *y)
{
    if (x->key != y->key)
        return x->key < y->key;
    return x->depth_tokens != y->depth_tokens ? x->depth_tokens > y->depth_tokens
                                              : x->touched < y->touched;
}

static bool lost_before(const struct kv_evictor *evictor, int32_t a, int32_t b)
{
    const struct kv_seat *x = kv_seat(evictor, a), *y = kv_seat(evictor, b);
    if (x->key != y->key)
        return x->key < y->key;
    if (x->depth_tokens != y->depth_tokens)
        return x->depth_tokens > y->depth_tokens;
    return x->touched != y->touched ? x->touched < y->touched : a < b;
}

static void set_rank(struct kv_seat *seat, struct kv_rank rank)
{
    seat->key = rank.key;
    seat->touched = rank.touched;
    seat->depth_tokens = rank.depth_tokens;
}

/* ---- the list ---- */

enum { FIRST_OF_LIST = 1, BEHIND = 2, FIRST_HEAP = 16 };

static bool is_in_list(const struct kv_seat *seat)
{
    return seat->at > 0;
}

static int32_t *next_of(struct kv_evictor *evictor, int32_t at)
{
    return at == FIRST_OF_LIST ? &evictor->first : &kv_seat(evictor, at - BEHIND)->next;
}

/* Behind block `before` of the list, -1: first. */
static void link_block(struct kv_evictor *evictor, int32_t before, int32_t block)
{
    struct kv_seat *seat = kv_seat(evictor, block);
    seat->at = before + BEHIND;
    seat->next = *next_of(evictor, seat->at);
    *next_of(evictor, seat->at) = block;
    *(seat->next >= 0 ? &kv_seat(evictor, seat->next)->at : &evictor->last) =
        seat->next >= 0 ? block + BEHIND : block;
}

/* Without memory for the heap. */
IFL_APART static void put_in_list(struct kv_evictor *evictor, int32_t block)
{
    int32_t before = evictor->last;
    while (before >= 0 && lost_before(evictor, block, before))
        before = kv_seat(evictor, before)->at - BEHIND;
    link_block(evictor, before, block);
}

static void unlink_block(struct kv_evictor *evictor, int32_t block)
{
    const struct kv_seat *seat = kv_seat(evictor, block);
    *next_of(evictor, seat->at) = seat->next;
    if (seat->next >= 0)
        kv_seat(evictor, seat->next)->at = seat->at;
    else
        evictor->last = seat->at - BEHIND;
}

/* ---- the heap ---- */

static void place(struct kv_evictor *evictor, int32_t i, int32_t block)
{
    evictor->heap[i] = block;
    kv_seat(evictor, block)->at = -(i + 1);
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
    set_rank(kv_seat(evictor, b), rank);
    if (evictor->last < 0 || lost_before(evictor, evictor->last, b))
        link_block(evictor, evictor->last, b);
    else if (array_room(&evictor->heap, (size_t)evictor->n_heap, &evictor->cap_heap, FIRST_HEAP,
                        sizeof *evictor->heap) == 0)
        rise(evictor, evictor->n_heap++, b);
    else
        put_in_list(evictor, b);
}

void kv_evictor_remove(struct kv_evictor *evictor, uint32_t block)
{
    struct kv_seat *seat = kv_seat(evictor, (int32_t)block);
    ifl_require(seat->at != KV_NOT_UNUSED);
    if (is_in_list(seat))
        unlink_block(evictor, (int32_t)block);
    else
        leave_heap(evictor, -seat->at - 1);
    seat->at = KV_NOT_UNUSED;
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
    ifl_assert(!ranks_before(&rank, kv_seat(evictor, kv_evictor_first(evictor))));
    const int32_t block = kv_evictor_first(evictor);
    struct kv_seat *seat = kv_seat(evictor, block);
    set_rank(seat, rank);
    if (!is_in_list(seat)) {
        sink(evictor, 0, block);
    } else if (seat->next >= 0 && lost_before(evictor, seat->next, block)) {
        kv_evictor_remove(evictor, (uint32_t)block);
        kv_evictor_put(evictor, (uint32_t)block, rank);
    }
}

bool kv_evictor_shorten_first(struct kv_evictor *evictor, uint32_t block, int32_t depth_tokens)
{
    ifl_assert(kv_evictor_first(evictor) == (int32_t)block);
    ifl_assert(depth_tokens <= kv_seat(evictor, (int32_t)block)->depth_tokens);
    const int32_t b = (int32_t)block;
    struct kv_seat *seat = kv_seat(evictor, b);
    const int32_t before = seat->depth_tokens;
    seat->depth_tokens = depth_tokens;
    if (is_in_list(seat) && (seat->next < 0 || lost_before(evictor, b, seat->next)) &&
        (evictor->n_heap == 0 || lost_before(evictor, b, evictor->heap[0])))
        return true;
    seat->depth_tokens = before;
    return false;
}
