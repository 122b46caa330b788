/* Least recently used, but blocks that a waiting request would start on are evicted last: their
 * next use is known and near (vLLM issue 48485, LRU informed by the waiting queue). A tree evicts
 * whole leaves; it keeps leaves with a last block that a waiting request would start on. */
#include "inflight/policy.h"

static int64_t key(const void *self, const struct ifl_view *view, const struct ifl_cached *block)
{
    (void)self;
    (void)view;
    return (int64_t)((uint64_t)ifl_wanted(block) << 62 | block->last_used);
}

static const struct ifl_evict_ops ops = {.key = key, .ignores_depth = true};

const struct ifl_policy policy_evict_queue_informed = {
    .kind = IFL_EVICT,
    .name = "queue-informed",
    .doc = "least recently used, but blocks that waiting requests would hit are evicted last",
    .ops.evict = &ops,
};
