/* Validation: a simulated run beside a measured one, request by request and step by step.
 *
 * Errors are simulated - measured; relative errors divide by the measured value. Where the
 * recordings allow it, the difference of the runs is split into cost (how long a step takes) and
 * scheduling (which steps there are, and which requests wait for them). */
#ifndef INFLIGHT_VALIDATE_H
#define INFLIGHT_VALIDATE_H

#include <stdio.h>

#include "inflight/error.h"
#include "inflight/trace.h"

struct ifl_run {
    const char *name;              /* of the run in tables and figures */
    const struct ifl_trace *trace; /* with outcomes */
    const char *dir;               /* with its steps.csv and quantiles.csv, if any; or NULL */
};

struct ifl_validation {
    struct ifl_run simulated, measured;
    const char *out_dir;    /* exists */
    FILE *table;            /* a table for a terminal, not closed; NULL: none */
    uint64_t part, n_parts; /* compare only requests with id % n_parts == part, part < n_parts;
                               n_parts 0: all */
};

/* Pairs the runs' requests by request_id; if output lengths of the pairs differ, pairs requests of
 * equal lengths in order of arrival. A trace without outcomes, and runs that have no finished
 * request in common, are IFL_E_INPUT; a failed write is IFL_E_IO. Files that were written before an
 * error stay; each is whole. The caller keeps the traces, which do not change. Writes to out_dir
 *
 *     validation.csv           metric,statistic,n,simulated,measured,error,relative_error,
 *                              p05,p95,inside: the interval of an ensemble (intervals.csv)
 *     validation_requests.csv  both sides of each pair
 *     validation_steps.csv     mean durations by composition, if both runs have steps.csv
 *     validation_cdf.csv       quantiles of the latencies
 *
 * ifl_figure draws those of them that ifl_validation_figures names. */
int ifl_validate(const struct ifl_validation *validation, struct ifl_error *error);

/* Both end with NULL. */
extern const char *const ifl_validation_figures[];
extern const char *const ifl_validation_files[];

#endif
