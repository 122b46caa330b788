/* Least outstanding requests: the replica with the fewest requests, running, waiting or swapped;
 * ties go to the first. */
#include "inflight/policy.h"

static size_t pick(const void *self, const struct ifl_routing *routing)
{
    size_t best = 0;
    (void)self;
    for (size_t i = 1; i < routing->n; i++)
        if (ifl_outstanding(&routing->of[i]) < ifl_outstanding(&routing->of[best]))
            best = i;
    return best;
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_least_outstanding = {
    .kind = IFL_ROUTE,
    .name = "least-outstanding",
    .doc = "the replica with the fewest requests, running or not",
    .ops.route = &ops,
};
