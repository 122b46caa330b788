/* Comparison: two runs of the same study that differ in one thing, point by point.
 *
 * Points are matched by their swept keys, replications by their number, requests by request_id.
 * Where both runs draw the same random numbers, as replications of a study do, much of what chance
 * does to one it does to the other: the interval of a paired difference is far narrower than those
 * of the two means (common random numbers; Law, Simulation Modeling and Analysis, section 11.2). */
#ifndef INFLIGHT_COMPARE_H
#define INFLIGHT_COMPARE_H

#include <stdio.h>

#include "inflight/error.h"

/* What a comparison has to say beside its result: a point that only one run has. */
typedef void ifl_compare_note_fn(void *context, const char *text);

struct ifl_comparison {
    const char *base_dir, *other_dir; /* of runs; they may be the same where `key` is given */
    /* Not NULL: compare the points of the base where this swept key has base_value with those of
     * the other run where it has other_value. Either its full name or the last part of it. */
    const char *key, *base_value, *other_value;
    const char *out_path; /* of the CSV file */
    FILE *table;          /* a table for a terminal; NULL: none */
    ifl_compare_note_fn *say;
    void *context;
};

/* Writes out_path, a row a point and metric: the swept keys, then
 *
 *     paired_by,metric,pairs,samples,base,other,difference,difference_ci95,p_value,
 *     lower_frac,higher_frac
 *
 * Differences are other - base, with the half width of their 95% interval and the probability of as
 * large a difference where there is none (Student's t over `samples` independent differences). A
 * metric of summary.csv is paired by replication. A latency of requests.csv is paired by request: a
 * sample is the mean over a replication, or, where there is only one, over a twentieth of its
 * requests in order of arrival (batch means), since neighbours wait for each other. lower_frac and
 * higher_frac are the shares of pairs in which the other run's value is lower, or higher.
 *
 * Runs that sweep different keys, share no point, or pair requests of different lengths are
 * IFL_E_INPUT. */
int ifl_compare(const struct ifl_comparison *comparison, struct ifl_error *error);

#endif
