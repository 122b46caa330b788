/* Random: all replicas are equally likely. */
#include "inflight/policy.h"

static size_t pick(const void *self, const struct ifl_routing *routing)
{
    (void)self;
    return (size_t)(routing->draw[0] % routing->n);
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_random = {
    .kind = IFL_ROUTE,
    .name = "random",
    .doc = "any replica, each as likely",
    .ops.route = &ops,
};
