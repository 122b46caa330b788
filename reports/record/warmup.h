/* Where the warm-up of a run ends: MSER-5.
 *
 * Y_j are the n means of batches of five observations. The first d are left out so that the
 * standard error of the others is smallest: d, at most n / 2, minimises the sum of (Y_j - mean)^2
 * over j > d, divided by (n - d)^2 (White, Simulation 69:6, 1997; White, Cobb and Spratt, Winter
 * Simulation Conference 2000, found 5 to be a good batch). */
#ifndef INFLIGHT_REPORTS_WARMUP_H
#define INFLIGHT_REPORTS_WARMUP_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "record/life_log.h"

/* The number of observations, in order of time, in the warm-up; a multiple of 5. */
size_t warmup_mser5(const double *observed, size_t n);
/* The number of the log's n requests, in order of arrival, in the warm-up: the larger of the
 * numbers for time to first token and for end-to-end latency. */
int warmup_requests(const struct life_log *log, size_t n, size_t *n_warmup,
                    struct ifl_error *error);

#endif
