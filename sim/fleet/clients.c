#include "fleet/clients.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

#include "inflight/assert.h"
#include "inflight/minmax.h"
#include "inflight/random.h"
#include "inflight/time.h"

/* Of mean 1. */
static double lognormal(double cv, double u)
{
    const double variance = log1p(cv * cv);
    return gsl_cdf_lognormal_Pinv(u, -variance / 2, sqrt(variance));
}

int64_t patience_ns(const struct patience *patience, uint64_t request_id)
{
    ifl_assert(patience->process == PATIENCE_NONE || patience->mean_s > 0);
    if (patience->process == PATIENCE_NONE)
        return IFL_NEVER;
    const double u = ifl_uniform(ifl_draw(patience->seed, IFL_DRAW_PATIENCE, request_id, 0));
    double times = 1;
    if (patience->process == PATIENCE_EXPONENTIAL)
        times = gsl_cdf_exponential_Pinv(u, 1);
    if (patience->process == PATIENCE_LOGNORMAL)
        times = lognormal(patience->cv, u);
    return ifl_ns_from_s(fmin(patience->mean_s * times, ifl_s_from_ns(IFL_LAST_NS)));
}

int64_t retries_backoff_ns(const struct retries *retries, uint64_t request_id, int32_t k)
{
    ifl_assert(k >= 0 && k < retries->most);
    const double u =
        ifl_uniform(ifl_draw(retries->seed, IFL_DRAW_BACKOFF, request_id, (uint64_t)k));
    const double full_s =
        fmin(retries->backoff_s * pow(retries->factor, k), retries->max_backoff_s);
    return ifl_ns_from_s(full_s * (1 - u * retries->jitter_frac));
}
