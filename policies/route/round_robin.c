/* Round robin: replicas take turns, whatever their load. */
#include "inflight/policy.h"

static size_t pick(const void *self, const struct ifl_routing *routing)
{
    (void)self;
    return (size_t)(routing->n_routed % routing->n);
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_round_robin = {
    .kind = IFL_ROUTE,
    .name = "round-robin",
    .doc = "one after the other",
    .ops.route = &ops,
};
