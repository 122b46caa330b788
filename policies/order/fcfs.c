/* First come, first served: ranked by arrival. */
#include "inflight/policy.h"

IFL_HOT static void rank(const void *self, const struct ifl_view *view,
                         const struct ifl_request *const *of, size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->arrival_ns;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = ifl_own_keys};

const struct ifl_policy policy_order_fcfs = {
    .kind = IFL_ORDER,
    .name = "fcfs",
    .doc = "first come, first served",
    .steady = ifl_always_steady,
    .ops.order = &ops,
};
