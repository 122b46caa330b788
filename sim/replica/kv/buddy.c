#include "replica/kv/buddy.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"
#include "inflight/minmax.h"

/* ---- free runs ---- */

static void push(struct kv_buddy *buddy, int32_t first, int order)
{
    const int32_t next = buddy->free[order];
    buddy->order[first] = (int8_t)order;
    buddy->next[first] = next;
    buddy->prev[first] = -1;
    if (next >= 0)
        buddy->prev[next] = first;
    buddy->free[order] = first;
}

static void unlink_run(struct kv_buddy *buddy, int32_t first)
{
    const int32_t next = buddy->next[first], prev = buddy->prev[first];
    *(prev >= 0 ? &buddy->next[prev] : &buddy->free[buddy->order[first]]) = next;
    if (next >= 0)
        buddy->prev[next] = prev;
    buddy->order[first] = -1;
}

/* ---- creating and destroying ---- */

/* The power of two that n is rounded up to. */
static int order_of(int32_t n)
{
    return n > 1 ? 64 - __builtin_clzll((uint64_t)n - 1) : 0;
}

/* The largest aligned runs that fit, from the first block on. */
static void cut_into_runs(struct kv_buddy *buddy)
{
    for (int32_t first = 0; first < buddy->n_blocks;) {
        int order = KV_BUDDY_ORDERS - 1;
        while ((int64_t)1 << order > buddy->n_blocks - first || first % (1 << order) != 0)
            order--;
        push(buddy, first, order);
        first += 1 << order;
    }
}

int kv_buddy_create(struct kv_buddy *buddy, int32_t n_blocks)
{
    const size_t n = n_blocks > 0 ? (size_t)n_blocks : 1;
    *buddy = (struct kv_buddy){
        .n_blocks = n_blocks,
        .next = malloc(n * sizeof *buddy->next),
        .prev = malloc(n * sizeof *buddy->prev),
        .order = malloc(n * sizeof *buddy->order),
    };
    if (!buddy->next || !buddy->prev || !buddy->order) {
        kv_buddy_destroy(buddy);
        return IFL_E_NOMEM;
    }
    for (int order = 0; order < KV_BUDDY_ORDERS; order++)
        buddy->free[order] = -1;
    memset(buddy->order, -1, n * sizeof *buddy->order);
    cut_into_runs(buddy);
    return 0;
}

void kv_buddy_destroy(struct kv_buddy *buddy)
{
    free(buddy->next);
    free(buddy->prev);
    free(buddy->order);
    *buddy = (struct kv_buddy){0};
}

/* ---- taking and giving back ---- */

IFL_APART int64_t kv_buddy_rounded(int32_t n)
{
    ifl_assert(n > 0);
    return (int64_t)1 << order_of(n);
}

/* The smallest order from `order` on that has a free run, KV_BUDDY_ORDERS if none has. */
static int free_order(const struct kv_buddy *buddy, int order)
{
    while (order < KV_BUDDY_ORDERS && buddy->free[order] < 0)
        order++;
    return order;
}

IFL_APART bool kv_buddy_fits(const struct kv_buddy *buddy, int32_t n)
{
    ifl_assert(n > 0);
    return free_order(buddy, order_of(n)) < KV_BUDDY_ORDERS;
}

int32_t kv_buddy_take(struct kv_buddy *buddy, int32_t n)
{
    ifl_assert(kv_buddy_fits(buddy, n));
    const int wanted = order_of(n);
    int order = free_order(buddy, wanted);
    ifl_require(order < KV_BUDDY_ORDERS);
    const int32_t first = buddy->free[order];
    unlink_run(buddy, first);
    while (order > wanted) {
        order--;
        push(buddy, first + (1 << order), order);
    }
    buddy->n_slack += (1 << wanted) - n;
    return first;
}

void kv_buddy_give(struct kv_buddy *buddy, int32_t first, int32_t n)
{
    ifl_assert(first >= 0 && first + kv_buddy_rounded(n) <= buddy->n_blocks &&
               buddy->order[first] < 0);
    int order = order_of(n);
    buddy->n_slack -= (1 << order) - n;
    for (; order < KV_BUDDY_ORDERS - 1; order++) {
        const int32_t other = first ^ (1 << order);
        if (other >= buddy->n_blocks || buddy->order[other] != order)
            break;
        unlink_run(buddy, other);
        first = ifl_min(first, other);
    }
    push(buddy, first, order);
}
