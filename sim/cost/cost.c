#include "cost/cost.h"

#include <stdlib.h>

#include "cost/kind.h"
#include "inflight/time.h"

void cost_destroy(struct cost *cost)
{
    free(cost);
}

int64_t cost_step_ns(struct cost *cost, const struct ifl_step_totals *totals)
{
    const int64_t ns = ifl_ns_from_s(cost->step_s(cost, totals));
    return ns > 0 ? ns : 1;
}
