/* Round robin: replicas take turns, whatever their load. */
#include "inflight/policy.h"

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const size_t k = (size_t)(fleet->n_routed % ifl_up(fleet, IFL_PREFILLS));
    (void)self;
    return ifl_send(ifl_nth(fleet, IFL_PREFILLS, k));
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_round_robin = {
    .kind = IFL_ROUTE,
    .name = "round-robin",
    .doc = "replicas in turn",
    .ops.route = &ops,
};
