#include "record/warmup.h"

#include <gsl/gsl_statistics_double.h>
#include <stdlib.h>

#include "record/lives.h"

#define BATCH ((size_t)5)
#define MIN_BATCHES ((size_t)10)

/* Runs from the end backwards, so that one running sum (Welford) serves all truncations. */
size_t warmup_mser5(const double *observed, size_t n)
{
    const size_t n_batches = n / BATCH;
    double mean = 0, squares = 0, least = 0;
    size_t best = n_batches;
    if (n_batches < MIN_BATCHES)
        return 0;
    for (size_t d = n_batches; d-- > 0;) {
        const double kept = (double)(n_batches - d);
        const double batch = gsl_stats_mean(observed + d * BATCH, 1, BATCH);
        const double from_mean = batch - mean;
        mean += from_mean / kept;
        squares += from_mean * (batch - mean);
        if (d <= n_batches / 2 && (best == n_batches || squares / (kept * kept) <= least)) {
            least = squares / (kept * kept);
            best = d;
        }
    }
    return best * BATCH;
}

/* The end of the warm-up of one latency, as a place in the order of arrival. */
static size_t end_of(int64_t (*latency_ns)(const struct life *), const struct life *lives,
                     const uint32_t *order, size_t n, double *observed)
{
    size_t n_observed = 0, place = 0;
    for (size_t i = 0; i < n; i++) {
        const struct life *life = &lives[order[i]];
        if (life_finished(life) && latency_ns(life) != IFL_NEVER)
            observed[n_observed++] = ifl_s_from_ns(latency_ns(life));
    }
    size_t left = warmup_mser5(observed, n_observed);
    for (; place < n && left > 0; place++) {
        const struct life *life = &lives[order[place]];
        left -= life_finished(life) && latency_ns(life) != IFL_NEVER;
    }
    return place;
}

int warmup_requests(const struct life *lives, const uint32_t *order, size_t n, size_t *n_warmup,
                    struct ifl_error *error)
{
    ifl_assert(lives_ascend(lives, order, n));
    double *observed = malloc((n ? n : 1) * sizeof *observed);
    if (!observed)
        return ifl_fail_nomem(error);
    const size_t ttft = end_of(life_ttft_ns, lives, order, n, observed);
    const size_t e2e = end_of(life_e2e_ns, lives, order, n, observed);
    *n_warmup = ttft > e2e ? ttft : e2e;
    free(observed);
    return IFL_OK;
}
