/* Least recently used: the block that was released first is evicted first. Blocks released together
 * go from the end of their prefix to its beginning, so that the rest can still be found.
 *
 * vLLM v1 keeps a queue in the order of release (vllm/v1/core/block_pool.py). v0 compares times of
 * last access: of requests that left at the same time the deepest block goes first
 * (vllm/core/evictor.py). SGLang's radix tree takes leaves by time of last access. */
#include "inflight/policy.h"

enum lru_by { BY_USE, BY_TIME };

struct lru {
    int32_t by;
};

static const struct ifl_param params[] = {
    {"by", IFL_CHOICE, offsetof(struct lru, by), BY_USE, 0, 0, "use|time", "",
     "order of last use (vLLM v1), or time of last use, at equal times the deepest first (v0)"},
};

static int64_t key(const void *self, const struct ifl_view *view, const struct ifl_cached *block)
{
    const struct lru *p = self;
    (void)view;
    return p->by == BY_TIME ? block->last_used_ns : (int64_t)block->last_used;
}

static const struct ifl_evict_ops ops = {.key = key, .ignores_depth = true, .by_last_use = true};

const struct ifl_policy policy_evict_lru = {
    .kind = IFL_EVICT,
    .name = "lru",
    .doc = "evicts the cached block used least recently (vLLM, SGLang)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct lru),
    .ops.evict = &ops,
};
