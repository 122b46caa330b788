/* Preconditions of reports/validate/, each broken once. */
#include "validate/distance.h"
#include "violates.h"

static const int64_t rising[2] = {1, 2}, falling[2] = {2, 1};

VIOLATES(distances, ks_a, distance_ks, "ifl_ascends(a, n)")
{
    distance_ks(falling, rising, 2);
}

VIOLATES(distances, ks_b, distance_ks, "ifl_ascends(b, n)")
{
    distance_ks(rising, falling, 2);
}

VIOLATES(distances, wasserstein_a, distance_wasserstein, "ifl_ascends(a, n)")
{
    distance_wasserstein(falling, rising, 2);
}

VIOLATES(distances, wasserstein_b, distance_wasserstein, "ifl_ascends(b, n)")
{
    distance_wasserstein(rising, falling, 2);
}
