/* By priority, the lower the more urgent, ties by arrival; as the priority policy of vLLM. */
#include "inflight/policy.h"

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->priority;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = ifl_own_keys};

const struct ifl_policy policy_order_priority = {
    .kind = IFL_ORDER,
    .name = "priority",
    .doc = "the trace's priority, lowest number first; equal ones by arrival (vLLM)",
    .steady = ifl_always_steady,
    .ops.order = &ops,
};
