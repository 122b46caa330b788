/* Statistics of a trace: rate, burstiness, lengths, and the hits of an infinite cache. */
#include "traces.h"

#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_sort_int.h>
#include <gsl/gsl_statistics_double.h>
#include <gsl/gsl_statistics_int.h>
#include <math.h>
#include <string.h>

#include "inflight/minmax.h"

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

/* The coefficient of variation of the gaps. Overwrites `at_s` with the gaps. */
static double gap_cv(double *at_s, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        at_s[i] = at_s[i + 1] - at_s[i];
    if (n < 3)
        return NAN;
    return gsl_stats_sd(at_s, 1, n - 1) / gsl_stats_mean(at_s, 1, n - 1);
}

/* True for a turn with a think time: its stamp is not its arrival, so it is not counted. */
static bool waits(const struct ifl_trace *trace, size_t row)
{
    return trace->think_ns && trace->session && trace->session[row] > 0 &&
           trace->think_ns[row] >= 0;
}

static int measure_stamps(const struct ifl_trace *trace, struct ifl_trace_stats *stats,
                          struct ifl_error *error)
{
    double *at_s = malloc(trace->n * sizeof *at_s);
    if (!at_s)
        return ifl_fail_nomem(error);
    size_t n = 0;
    for (size_t i = 0; i < trace->n; i++)
        if (!waits(trace, i))
            at_s[n++] = ifl_s_from_ns(trace->arrival_ns[i]);
    if (n > 0) {
        gsl_sort(at_s, 1, n);
        stats->span_s = at_s[n - 1] - at_s[0];
        stats->rate_rps = stats->span_s > 0 ? (double)n / stats->span_s : NAN;
        stats->gap_cv = stats->span_s > 0 ? gap_cv(at_s, n) : NAN;
    }
    free(at_s);
    return 0;
}

static int compare_ids(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Each occurrence of an id after the first is a hit. */
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

/* ---- optional columns ---- */

static size_t count_said(const int64_t *column, size_t n)
{
    size_t n_said = 0;
    for (size_t i = 0; column && i < n; i++)
        n_said += column[i] != IFL_NEVER;
    return n_said;
}

static size_t count_positive(const int32_t *column, size_t n)
{
    size_t n_positive = 0;
    for (size_t i = 0; column && i < n; i++)
        n_positive += column[i] > 0;
    return n_positive;
}

static size_t largest(const uint32_t *column, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; column && i < n; i++)
        most = ifl_max(most, column[i]);
    return most;
}

static void measure_sessions(const struct ifl_trace *trace, struct ifl_trace_stats *stats)
{
    stats->n_sessions = largest(trace->session, trace->n);
    for (size_t i = 0; trace->session && i < trace->n; i++) {
        stats->n_turns += trace->session[i] > 0;
        stats->n_waiting_turns += waits(trace, i);
    }
}

static void measure_attributes(const struct ifl_trace *trace, struct ifl_trace_stats *stats)
{
    const size_t n = trace->n;
    stats->n_clients = trace->client ? largest(trace->client, n) + 1 : 0;
    stats->n_prefix_groups = largest(trace->prefix_group, n);
    stats->n_in_groups = count_positive(trace->prefix_tokens, n);
    stats->n_ttft_slos = count_said(trace->ttft_slo_ns, n);
    stats->n_tpot_slos = count_said(trace->tpot_slo_ns, n);
    stats->n_limits = count_positive(trace->max_tokens, n);
    if (trace->priority)
        gsl_stats_int_minmax(&stats->least_priority, &stats->most_priority, trace->priority, 1, n);
    if (trace->samples)
        stats->most_samples = gsl_stats_int_max(trace->samples, 1, n);
}

int ifl_trace_measure(const struct ifl_trace *trace, struct ifl_trace_stats *stats,
                      struct ifl_error *error)
{
    ifl_assert(trace_has_lengths(trace));
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
    measure_sessions(trace, stats);
    measure_attributes(trace, stats);
    return rc;
}
