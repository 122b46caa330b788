/* Power of two choices: of two replicas drawn at random the one with fewer requests (Mitzenmacher,
 * IEEE TPDS 12(10), 2001). The second is drawn from the others; a tie goes to the first. */
#include "inflight/policy.h"

static int64_t outstanding(const struct ifl_fleet *fleet, size_t replica)
{
    return ifl_counts_of(fleet, replica).n_outstanding;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    const size_t n = ifl_up(fleet, IFL_PREFILLS);
    const size_t first = (size_t)(ifl_fleet_draw(fleet, 0) % n);
    const size_t others = n > 1 ? n - 1 : 1;
    const size_t second = (first + 1 + (size_t)(ifl_fleet_draw(fleet, 1) % others)) % n;
    const size_t a = ifl_nth(fleet, IFL_PREFILLS, first);
    const size_t b = ifl_nth(fleet, IFL_PREFILLS, second);
    (void)self;
    return ifl_send(outstanding(fleet, b) < outstanding(fleet, a) ? b : a);
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_power_of_two = {
    .kind = IFL_ROUTE,
    .name = "power-of-two",
    .doc = "the less loaded of two replicas drawn at random",
    .ops.route = &ops,
};
