/* Least outstanding requests: the replica with the fewest requests, running, waiting or swapped;
 * ties go to the first. */
#include "inflight/policy.h"

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    (void)self;
    return ifl_send(ifl_least(fleet, IFL_PREFILLS));
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_least_outstanding = {
    .kind = IFL_ROUTE,
    .name = "least-outstanding",
    .doc = "the replica with the fewest requests, running or not",
    .ops.route = &ops,
};
