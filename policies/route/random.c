/* Random: all replicas are equally likely. */
#include "inflight/policy.h"

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const size_t k = (size_t)(ifl_fleet_draw(fleet, 0) % ifl_up(fleet, IFL_PREFILLS));
    (void)self;
    return ifl_send(ifl_nth(fleet, IFL_PREFILLS, k));
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_random = {
    .kind = IFL_ROUTE,
    .name = "random",
    .doc = "a replica drawn at random",
    .ops.route = &ops,
};
