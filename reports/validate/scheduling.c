/* The order of first steps and the number of preemptions: two schedulers may differ in them even if
 * every step takes the same time. */
#include <gsl/gsl_statistics_double.h>
#include <stdlib.h>

#include "inflight/minmax.h"
#include "tables/sort.h"
#include "validate/findings.h"

/* In the time of the run: the first step if both runs have its time, otherwise the first token. */
static int64_t turn_ns(const struct pairs *pairs, enum side side, enum metric of, size_t i)
{
    return pairs_arrival_ns(pairs, side, i) + pairs_metric_ns(pairs, side, of, i);
}

static bool both_know(const struct pairs *pairs, enum metric metric, size_t i)
{
    return pairs_metric_ns(pairs, SIMULATED, metric, i) != IFL_NEVER &&
           pairs_metric_ns(pairs, MEASURED, metric, i) != IFL_NEVER;
}

static size_t gather_turns(const struct pairs *pairs, enum metric of, int64_t *turn[N_SIDES])
{
    size_t n = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        if (!both_know(pairs, of, i))
            continue;
        turn[SIMULATED][n] = turn_ns(pairs, SIMULATED, of, i);
        turn[MEASURED][n++] = turn_ns(pairs, MEASURED, of, i);
    }
    return n;
}

/* ---- pairs in the wrong order, by merging (Knight, JASA 61, 1966) ---- */

static uint64_t merge(int64_t *value, int64_t *scratch, size_t n_left, size_t n)
{
    uint64_t n_swapped = 0;
    size_t left = 0, right = n_left;
    for (size_t i = 0; i < n; i++) {
        const bool take_left = left < n_left && (right == n || value[left] <= value[right]);
        scratch[i] = take_left ? value[left++] : value[right++];
        n_swapped += take_left ? 0 : n_left - left;
    }
    for (size_t i = 0; i < n; i++)
        value[i] = scratch[i];
    return n_swapped;
}

static uint64_t count_inversions(int64_t *value, int64_t *scratch, size_t n)
{
    uint64_t count = 0;
    for (size_t width = 1; width < n; width *= 2)
        for (size_t at = 0; at + width < n; at += 2 * width) {
            const size_t rest = n - at;
            count += merge(value + at, scratch, width, ifl_min(rest, 2 * width));
        }
    return count;
}

/* Requests of one step have one time, in either run, so ties are no inversions. The sort is stable:
 * requests tied in the simulated run keep the measured order. */
static int share_of_inversions(int64_t *turn[N_SIDES], uint32_t *tag, size_t n, double *share,
                               struct ifl_error *error)
{
    int64_t *other = malloc((n + 1) * sizeof *other), *scratch = malloc((n + 1) * sizeof *scratch);
    int rc = other && scratch ? IFL_OK : ifl_fail_nomem(error);
    for (size_t i = 0; i < n; i++)
        tag[i] = (uint32_t)i;
    if (rc == IFL_OK)
        rc = sort_by_key(turn[MEASURED], tag, n, error);
    for (size_t i = 0; rc == IFL_OK && i < n; i++)
        other[i] = turn[SIMULATED][tag[i]];
    for (size_t i = 0, to; rc == IFL_OK && i < n; i = to) {
        for (to = i + 1; to < n && turn[MEASURED][to] == turn[MEASURED][i];)
            to++;
        rc = sort_by_key(other + i, NULL, to - i, error);
    }
    if (rc == IFL_OK)
        *share = 2.0 * (double)count_inversions(other, scratch, n) / ((double)n * ((double)n - 1));
    free(other);
    free(scratch);
    return rc;
}

static int spearman(int64_t *const turn[N_SIDES], size_t n, double *rank, struct ifl_error *error)
{
    double *x = malloc(4 * n * sizeof *x);
    if (!x)
        return ifl_fail_nomem(error);
    for (int s = 0; s < N_SIDES; s++)
        for (size_t i = 0; i < n; i++)
            x[(size_t)s * n + i] = ifl_s_from_ns(turn[s][i]);
    *rank = gsl_stats_spearman(x, 1, x + n, 1, n, x + 2 * n);
    free(x);
    return IFL_OK;
}

static int find_order(const struct pairs *pairs, enum metric of, struct findings *findings,
                      struct ifl_error *error)
{
    int64_t *turn[N_SIDES] = {malloc((pairs->n + 1) * sizeof(int64_t)),
                              malloc((pairs->n + 1) * sizeof(int64_t))};
    uint32_t *tag = malloc((pairs->n + 1) * sizeof *tag);
    double rank = 0, share = 0;
    int rc = turn[SIMULATED] && turn[MEASURED] && tag ? IFL_OK : ifl_fail_nomem(error);
    const size_t n = rc == IFL_OK ? gather_turns(pairs, of, turn) : 0;
    if (n > 1)
        rc = spearman(turn, n, &rank, error);
    if (n > 1 && rc == IFL_OK)
        rc = share_of_inversions(turn, tag, n, &share, error);
    if (n > 1 && rc == IFL_OK)
        rc = findings_add_error(findings, "scheduling.order", "spearman", n, rank, error);
    if (n > 1 && rc == IFL_OK)
        rc = findings_add_error(findings, "scheduling.order", "inversions_frac", n, share, error);
    free(turn[SIMULATED]);
    free(turn[MEASURED]);
    free(tag);
    return rc;
}

static int find_preemptions(const struct pairs *pairs, struct findings *findings,
                            struct ifl_error *error)
{
    double sum[N_SIDES] = {0};
    for (size_t i = 0; i < pairs->n; i++)
        for (int s = 0; s < N_SIDES; s++) {
            const int32_t n = pairs->trace[s]->outcome[pairs->of[i].row[s]].preemptions;
            if (n < 0)
                return IFL_OK;
            sum[s] += n;
        }
    return findings_add(findings, "scheduling.preemptions", "sum", pairs->n, sum[SIMULATED],
                        sum[MEASURED], error);
}

int find_scheduling(const struct pairs *pairs, struct findings *findings, struct ifl_error *error)
{
    bool queues = true;
    for (size_t i = 0; i < pairs->n; i++)
        queues = queues && both_know(pairs, QUEUE, i);
    const int rc = find_order(pairs, queues ? QUEUE : TTFT, findings, error);
    return rc ? rc : find_preemptions(pairs, findings, error);
}
