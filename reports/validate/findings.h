/* The findings of a validation: a list of statistics, of both sides if both have them. */
#ifndef INFLIGHT_REPORTS_VALIDATE_FINDINGS_H
#define INFLIGHT_REPORTS_VALIDATE_FINDINGS_H

#include <stddef.h>

#include "validate/pairs.h"

struct finding {
    const char *metric, *statistic;    /* literals */
    size_t n;                          /* samples of the statistic */
    double simulated, measured, error; /* NaN if undefined; in s, or in the metric's own unit */
    double low, high; /* the 90% interval of the simulated value; NaN without an ensemble */
};

static inline bool finding_has_interval(const struct finding *f)
{
    return f->low <= f->high;
}

static inline bool finding_is_inside(const struct finding *f)
{
    return f->low <= f->measured && f->measured <= f->high;
}

struct findings {
    struct finding *of; /* [cap], owned */
    size_t n, cap;
};

/* error = simulated - measured. */
int findings_add(struct findings *findings, const char *metric, const char *statistic, size_t n,
                 double simulated, double measured, struct ifl_error *error);
/* Adds a statistic that has one value for both sides, such as a distance. */
int findings_add_error(struct findings *findings, const char *metric, const char *statistic,
                       size_t n, double value, struct ifl_error *error);
/* Returns NULL if there is no such finding. */
const struct finding *findings_get(const struct findings *findings, const char *metric,
                                   const char *statistic);
void findings_free(struct findings *findings);
int findings_write(const struct findings *findings, const char *path, struct ifl_error *error);

/* ---- latencies.c: distributions of the metrics, side by side, and errors request by request ----
 */

int find_latencies(const struct pairs *pairs, const struct ifl_validation *validation,
                   struct findings *findings, struct ifl_error *error);

/* ---- throughput.c ---- */

int find_throughput(const struct pairs *pairs, struct findings *findings, struct ifl_error *error);

/* ---- cost.c: requests that ran alone ---- */

int find_cost(const struct pairs *pairs, struct findings *findings, struct ifl_error *error);

/* ---- scheduling.c: order of the first steps, preemptions ---- */

int find_scheduling(const struct pairs *pairs, struct findings *findings, struct ifl_error *error);

/* ---- steps.c: durations against composition; adds nothing if a side has no steps.csv ---- */

int find_steps(const struct ifl_validation *validation, struct findings *findings,
               struct ifl_error *error);

/* ---- intervals.c: adds nothing unless the simulated run was an ensemble ---- */

int find_intervals(const struct ifl_validation *validation, struct findings *findings,
                   struct ifl_error *error);

/* ---- requests.c: validation_requests.csv ---- */

int write_pairs(const struct pairs *pairs, const char *path, struct ifl_error *error);

/* ---- curves.c: validation_cdf.csv ---- */

int write_curves(const struct pairs *pairs, const char *path, struct ifl_error *error);

/* ---- terminal.c ---- */

void print_validation(const struct ifl_validation *validation, const struct pairs *pairs,
                      const struct findings *findings);

#endif
