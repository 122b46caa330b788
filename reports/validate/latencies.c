/* The distributions of the latencies side by side, and the errors request by request. */
#include <math.h>
#include <stdlib.h>

#include "record/quantile.h"
#include "tables/sort.h"
#include "validate/distance.h"
#include "validate/findings.h"
#include "validate/itl.h"

static const double percentiles[] = {0.5, 0.9, 0.99};
static const char *const percentile_name[] = {"p50", "p90", "p99"};
enum { N_PERCENTILES = 3 };

/* The samples of one metric; every list has room for all pairs. */
struct samples {
    int64_t *value[N_SIDES]; /* in the order of the pairs, then ascending */
    int64_t *error;          /* per request: nanoseconds, then parts in 1e9 of the measured value */
    size_t n;
};

static void samples_free(struct samples *samples)
{
    free(samples->value[SIMULATED]);
    free(samples->value[MEASURED]);
    free(samples->error);
}

static int samples_make(struct samples *samples, size_t n, struct ifl_error *error)
{
    *samples = (struct samples){.error = malloc((n + 1) * sizeof *samples->error)};
    for (int s = 0; s < N_SIDES; s++)
        samples->value[s] = malloc((n + 1) * sizeof *samples->value[s]);
    if (samples->value[SIMULATED] && samples->value[MEASURED] && samples->error)
        return IFL_OK;
    samples_free(samples);
    return ifl_fail_nomem(error);
}

/* ---- request by request ---- */

static int add_quantiles(struct findings *findings, const char *metric,
                         const char *const names[N_PERCENTILES + 1], int64_t *value, size_t n,
                         double unit, struct ifl_error *error)
{
    double at[N_PERCENTILES];
    if (sort_by_key(value, NULL, n, error))
        return error->code;
    quantile_find(value, NULL, n, percentiles, N_PERCENTILES, at);
    int rc = findings_add_error(findings, metric, names[N_PERCENTILES], n,
                                quantile_mean(value, NULL, n) * unit, error);
    for (int i = 0; rc == IFL_OK && i < N_PERCENTILES; i++)
        rc = findings_add_error(findings, metric, names[i], n, at[i] * unit, error);
    return rc;
}

static int add_absolute(struct samples *samples, const char *metric, struct findings *findings,
                        struct ifl_error *error)
{
    static const char *const names[] = {"request_abs_error_p50", "request_abs_error_p90",
                                        "request_abs_error_p99", "request_abs_error_mean"};
    for (size_t i = 0; i < samples->n; i++)
        samples->error[i] = llabs(samples->value[SIMULATED][i] - samples->value[MEASURED][i]);
    return add_quantiles(findings, metric, names, samples->error, samples->n, 1e-9, error);
}

/* A request with a measured value of 0 has no relative error. */
static size_t relate(const struct samples *samples, bool absolute)
{
    size_t n = 0;
    for (size_t i = 0; i < samples->n; i++) {
        const int64_t measured = samples->value[MEASURED][i];
        if (measured <= 0)
            continue;
        const double relative =
            (double)(samples->value[SIMULATED][i] - measured) / (double)measured;
        samples->error[n++] = ifl_ns_from_s(absolute ? fabs(relative) : relative);
    }
    return n;
}

static int add_relative(struct samples *samples, const char *metric, struct findings *findings,
                        struct ifl_error *error)
{
    static const char *const names[][N_PERCENTILES + 1] = {
        {"request_relative_error_p50", "request_relative_error_p90", "request_relative_error_p99",
         "request_relative_error_mean"},
        {"request_abs_relative_error_p50", "request_abs_relative_error_p90",
         "request_abs_relative_error_p99", "request_abs_relative_error_mean"}};
    int rc = IFL_OK;
    for (int absolute = 0; rc == IFL_OK && absolute < 2; absolute++)
        rc = add_quantiles(findings, metric, names[absolute], samples->error,
                           relate(samples, absolute), 1e-9, error);
    return rc;
}

/* ---- distribution by distribution ---- */

static int add_distribution(struct samples *samples, const char *metric, struct findings *findings,
                            struct ifl_error *error)
{
    double mean[N_SIDES], at[N_SIDES][N_PERCENTILES];
    for (int s = 0; s < N_SIDES; s++) {
        if (sort_by_key(samples->value[s], NULL, samples->n, error))
            return error->code;
        mean[s] = quantile_mean(samples->value[s], NULL, samples->n) * 1e-9;
        quantile_find(samples->value[s], NULL, samples->n, percentiles, N_PERCENTILES, at[s]);
    }
    int rc =
        findings_add(findings, metric, "mean", samples->n, mean[SIMULATED], mean[MEASURED], error);
    for (int i = 0; rc == IFL_OK && i < N_PERCENTILES; i++)
        rc = findings_add(findings, metric, percentile_name[i], samples->n, at[SIMULATED][i] * 1e-9,
                          at[MEASURED][i] * 1e-9, error);
    return rc;
}

static int add_distances(const struct samples *samples, const char *metric,
                         struct findings *findings, struct ifl_error *error)
{
    const int64_t *a = samples->value[SIMULATED], *b = samples->value[MEASURED];
    const int rc = findings_add_error(findings, metric, "kolmogorov_smirnov", samples->n,
                                      distance_ks(a, b, samples->n), error);
    return rc ? rc
              : findings_add_error(findings, metric, "wasserstein", samples->n,
                                   distance_wasserstein(a, b, samples->n) * 1e-9, error);
}

static int find_metric(const struct pairs *pairs, enum metric metric, struct samples *samples,
                       struct findings *findings, struct ifl_error *error)
{
    const char *name = metric_name[metric];
    samples->n = pairs_gather(pairs, metric, NULL, samples->value);
    if (samples->n == 0)
        return IFL_OK;
    int rc = add_absolute(samples, name, findings, error);
    if (rc == IFL_OK)
        rc = add_relative(samples, name, findings, error);
    if (rc == IFL_OK) /* last: it sorts the values */
        rc = add_distribution(samples, name, findings, error);
    if (rc == IFL_OK)
        rc = add_distances(samples, name, findings, error);
    return rc;
}

int find_latencies(const struct pairs *pairs, const struct ifl_validation *validation,
                   struct findings *findings, struct ifl_error *error)
{
    struct samples samples;
    int rc = samples_make(&samples, pairs->n, error);
    if (rc < 0)
        return rc;
    for (int m = 0; rc == IFL_OK && m < N_METRICS; m++) {
        rc = find_metric(pairs, (enum metric)m, &samples, findings, error);
        if (rc == IFL_OK && m == TPOT)
            rc = find_itl(pairs, validation, findings, error);
    }
    samples_free(&samples);
    return rc;
}
