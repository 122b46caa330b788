/* Comparison: two runs of the same study that differ in one thing, point by point.
 *
 * Points are matched by their swept keys, replications by their number, requests by request_id.
 * Replications of a study draw the same random numbers in both runs, which correlates the results:
 * the interval of a paired difference is then far narrower than those of the two means (common
 * random numbers; Law, Simulation Modeling and Analysis, section 11.2). */
#ifndef INFLIGHT_COMPARE_H
#define INFLIGHT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "inflight/error.h"

/* Takes a note of a comparison, such as a point that only one run has: one line without a line
 * feed, valid until the function returns. It is called in the thread of ifl_compare. */
typedef void ifl_compare_note_fn(void *context, const char *text);

/* A row of the CSV file: the difference of a point in a metric. Without an interval half_width and
 * p_value are NaN. */
struct ifl_compare_row {
    size_t n_keys;
    const char *const *keys, *const *values; /* [n_keys] of the point */
    const char *metric;
    bool by_request; /* false: paired by replication */
    size_t n_pairs, n_samples;
    double base, other, difference, half_width, p_value, lower_frac, higher_frac;
};
/* Takes a row, which is valid during the call. A negative code ends the comparison. */
typedef int ifl_compare_row_fn(void *context, const struct ifl_compare_row *row,
                               struct ifl_error *error);

struct ifl_comparison {
    const char *base_dir, *other_dir; /* of runs; the same if `key` distinguishes their points */
    /* NULL, or a swept key, by its full name or the last part of it: compare the points of the base
     * with base_value of this key with the points of the other run with other_value. Without a key
     * the two values are not read, else neither is NULL. */
    const char *key, *base_value, *other_value;
    const char *out_path;     /* of the CSV file; NULL: none */
    ifl_compare_row_fn *take; /* called for each row; NULL: not called */
    FILE *table;              /* a table for a terminal, not closed; NULL: none */
    ifl_compare_note_fn *say; /* NULL: silent */
    void *context;
};

/* Writes out_path, and hands to `take`, a row a point and metric: the swept keys, then
 *
 *     paired_by,metric,pairs,samples,base,other,difference,difference_ci95,p_value,
 *     lower_frac,higher_frac
 *
 * Differences are other - base, with the half width of their 95% interval and the probability of a
 * difference at least as large by chance (Student's t over `samples` independent differences). A
 * metric of summary.csv is paired by replication. A latency of requests.csv is paired by request: a
 * sample is the mean over a replication. A single replication is cut into twenty batches in order
 * of arrival, of equal numbers of pairs, at most one more or less; a sample is the mean of a batch
 * (batch means), because latencies of neighbours are correlated. Batches are weighted by their
 * pairs, so that base, other and difference are means of the pairs. Below 200 pairs they are one
 * sample. lower_frac and higher_frac are the fractions of pairs in which the other run's
 * value is lower, or higher. The interval and p_value of a single sample are empty cells.
 *
 * Runs that cannot be read, sweep different keys, share no point, or have requests of
 * different lengths under one number are IFL_E_INPUT. After an error out_path is as it was before.
 */
int ifl_compare(const struct ifl_comparison *comparison, struct ifl_error *error);

/* Each pair of several runs, or of the values of a swept key within one run. */
struct ifl_all_pairs {
    size_t n_runs;
    const char *const *run_dirs;
    /* Of one run: the swept key, by its full name or the last part of it; NULL: the first that is
     * no rate. Of several runs it is NULL. */
    const char *key;
    size_t n_values; /* of the key, in this order; 0: all, in the order of the points */
    const char *const *values;
    const char *out_path; /* of the CSV file; NULL: none */
    FILE *table;          /* a table for a terminal, not closed; NULL: none */
};

/* Compares the first with the second, the first with the third and so on, each pair as ifl_compare
 * does, and writes out_path, a row a pair, point and metric: the swept keys of the point, then
 *
 *     base_run,other_run,paired_by,metric,pairs,samples,base,other,difference,difference_ci95,
 *     p_value,lower_frac,higher_frac,p_holm,comparisons
 *
 * p_holm is p_value after Holm's step-down correction (Scandinavian Journal of Statistics 6(2),
 * 1979) for all `comparisons` with a p-value of the metric, of all pairs at all points. If values
 * below 0.05 are called differences, the probability that any of them is wrong is at most 0.05.
 *
 * Errors are those of ifl_compare. */
int ifl_compare_all_pairs(const struct ifl_all_pairs *of, struct ifl_error *error);

#endif
