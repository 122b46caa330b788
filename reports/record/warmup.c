#include "record/warmup.h"

#include <gsl/gsl_statistics_double.h>
#include <stdlib.h>

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

typedef int64_t latency_fn(const struct life *life);

static bool counts(latency_fn *latency_ns, const struct life *life)
{
    return life_finished(life) && latency_ns(life) != IFL_NEVER;
}

static int observe(latency_fn *latency_ns, const struct life_log *log, double *observed, size_t *n,
                   struct ifl_error *error)
{
    struct life_reader reader;
    int rc = life_reader_open(&reader, log, error) < 0 ? error->code : 1;
    *n = 0;
    while (rc > 0 && (rc = life_reader_next(&reader, error)) > 0)
        if (counts(latency_ns, &reader.life))
            observed[(*n)++] = ifl_s_from_ns(latency_ns(&reader.life));
    life_reader_close(&reader);
    return rc;
}

/* Behind so many observations, as a place in the order of arrival. */
static int find_place(latency_fn *latency_ns, const struct life_log *log, size_t left,
                      size_t *place, struct ifl_error *error)
{
    struct life_reader reader;
    int rc = life_reader_open(&reader, log, error) < 0 ? error->code : 1;
    for (*place = 0; rc > 0 && left > 0 && (rc = life_reader_next(&reader, error)) > 0; (*place)++)
        left -= counts(latency_ns, &reader.life);
    life_reader_close(&reader);
    return rc < 0 ? rc : IFL_OK;
}

/* The end of the warm-up of one latency. */
static int find_end(latency_fn *latency_ns, const struct life_log *log, double *observed,
                    size_t *place, struct ifl_error *error)
{
    size_t n_observed;
    if (observe(latency_ns, log, observed, &n_observed, error))
        return error->code;
    return find_place(latency_ns, log, warmup_mser5(observed, n_observed), place, error);
}

int warmup_requests(const struct life_log *log, size_t n, size_t *n_warmup, struct ifl_error *error)
{
    size_t ttft = 0, e2e = 0;
    double *observed = malloc((n ? n : 1) * sizeof *observed);
    if (!observed)
        return ifl_fail_nomem(error);
    int code = find_end(life_ttft_ns, log, observed, &ttft, error);
    if (!code)
        code = find_end(life_e2e_ns, log, observed, &e2e, error);
    *n_warmup = ttft > e2e ? ttft : e2e;
    free(observed);
    return code;
}
