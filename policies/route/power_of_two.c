/* Power of two choices: of two replicas drawn at random the one with fewer requests (Mitzenmacher,
 * IEEE TPDS 12(10), 2001). The second is drawn from the others; a tie goes to the first. */
#include "inflight/policy.h"

static size_t pick(const void *self, const struct ifl_routing *routing)
{
    const size_t n = routing->n;
    (void)self;
    if (n == 1)
        return 0;
    const size_t first = (size_t)(routing->draw[0] % n);
    const size_t second = (first + 1 + (size_t)(routing->draw[1] % (n - 1))) % n;
    return ifl_outstanding(&routing->of[second]) < ifl_outstanding(&routing->of[first]) ? second
                                                                                        : first;
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_power_of_two = {
    .kind = IFL_ROUTE,
    .name = "power-of-two",
    .doc = "the less busy of two replicas drawn at random",
    .ops.route = &ops,
};
