/* Least frequently used: the block with the fewest uses is evicted first; ties go to the one used
 * longest ago. A use is
 *   - in a tree a hit as SGLang counts it (--radix-eviction-policy lfu, evict_policy.py): once when
 *     a request's prompt has been computed, once when the request has ended;
 *   - in a table a request that computes the block or starts on it. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

enum { USE_BITS = 40 };

static int64_t key(const void *self, const struct ifl_view *view, const struct ifl_cached *block)
{
    const uint64_t most = ((uint64_t)1 << (62 - USE_BITS)) - 1;
    const uint64_t n_uses = ifl_min(block->n_uses, most);
    (void)self;
    (void)view;
    return (int64_t)(n_uses << USE_BITS | (block->last_used & (((uint64_t)1 << USE_BITS) - 1)));
}

static const struct ifl_evict_ops ops = {.key = key, .ignores_depth = true};

const struct ifl_policy policy_evict_lfu = {
    .kind = IFL_EVICT,
    .name = "lfu",
    .doc =
        "evicts the cached block used least often; of equals the one used least recently (SGLang)",
    .ops.evict = &ops,
};
