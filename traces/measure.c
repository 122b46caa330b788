/* What a trace looks like: rate, burstiness, lengths, and what an infinite cache would hit. */
#include "traces.h"

#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_sort_int.h>
#include <gsl/gsl_statistics_double.h>
#include <gsl/gsl_statistics_int.h>
#include <math.h>
#include <string.h>

static int measure_lengths(const int32_t *tokens, size_t n, struct ifl_length_stats *stats,
                           struct ifl_error *error)
{
    int *sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return ifl_fail_nomem(error);
    memcpy(sorted, tokens, n * sizeof *sorted);
    gsl_sort_int(sorted, 1, n);
    *stats = (struct ifl_length_stats){
        .mean = gsl_stats_int_mean(tokens, 1, n),
        .p50 = gsl_stats_int_quantile_from_sorted_data(sorted, 1, n, 0.50),
        .p90 = gsl_stats_int_quantile_from_sorted_data(sorted, 1, n, 0.90),
        .p99 = gsl_stats_int_quantile_from_sorted_data(sorted, 1, n, 0.99),
        .max = sorted[n - 1],
    };
    free(sorted);
    return 0;
}

/* `at_s` becomes the gaps between neighbours. */
static double gap_cv(double *at_s, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        at_s[i] = at_s[i + 1] - at_s[i];
    if (n < 3)
        return NAN;
    return gsl_stats_sd(at_s, 1, n - 1) / gsl_stats_mean(at_s, 1, n - 1);
}

static int measure_stamps(const struct ifl_trace *trace, struct ifl_trace_stats *stats,
                          struct ifl_error *error)
{
    double *at_s = malloc(trace->n * sizeof *at_s);
    if (!at_s)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < trace->n; i++)
        at_s[i] = ifl_s_from_ns(trace->arrival_ns[i]);
    gsl_sort(at_s, 1, trace->n);
    stats->span_s = at_s[trace->n - 1] - at_s[0];
    stats->rate_rps = stats->span_s > 0 ? (double)trace->n / stats->span_s : NAN;
    stats->gap_cv = stats->span_s > 0 ? gap_cv(at_s, trace->n) : NAN;
    free(at_s);
    return 0;
}

static int compare_ids(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Every sighting of an id but its first is a hit. */
static int measure_hash_ids(const struct ifl_trace *trace, struct ifl_trace_stats *stats,
                            struct ifl_error *error)
{
    const size_t n = trace->hash_at ? trace->hash_at[trace->n] : 0;
    stats->n_hash_ids = n;
    if (n == 0)
        return 0;
    uint64_t *sorted = malloc(n * sizeof *sorted);
    if (!sorted)
        return ifl_fail_nomem(error);
    memcpy(sorted, trace->hash_id, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_ids);
    for (size_t i = 1; i < n; i++)
        stats->n_hash_hits += sorted[i] == sorted[i - 1];
    free(sorted);
    return 0;
}

int ifl_trace_measure(const struct ifl_trace *trace, struct ifl_trace_stats *stats,
                      struct ifl_error *error)
{
    *stats = (struct ifl_trace_stats){.n = trace->n, .span_s = NAN, .rate_rps = NAN, .gap_cv = NAN};
    if (trace->n == 0)
        return ifl_fail(error, IFL_E_INPUT, "the trace is empty, expected at least one request");
    int rc = measure_lengths(trace->n_prompt, trace->n, &stats->prompt, error);
    if (rc == 0)
        rc = measure_lengths(trace->n_output, trace->n, &stats->output, error);
    if (rc == 0 && trace->has_stamps)
        rc = measure_stamps(trace, stats, error);
    if (rc == 0)
        rc = measure_hash_ids(trace, stats, error);
    return rc;
}
