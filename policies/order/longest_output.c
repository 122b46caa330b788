/* Longest declared output first, SGLang's lof (2026-08,
 * python/sglang/srt/managers/schedule_policy.py). */
#include "inflight/policy.h"

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = -of[i]->n_max_new;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = ifl_own_keys};

const struct ifl_policy policy_order_longest_output = {
    .kind = IFL_ORDER,
    .name = "longest-output",
    .doc = "longest declared output first (SGLang's lof)",
    .steady = ifl_always_steady,
    .ops.order = &ops,
};
