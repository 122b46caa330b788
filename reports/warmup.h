/* Where the warm-up of a run ends: MSER-5.
 *
 * Of the batch means of five observations each, those are left out at the start whose absence makes
 * the standard error of the rest smallest: d minimises the sum of (Y_j - mean)^2 over j > d,
 * divided by (n - d)^2, at most over the first half (White, Simulation 69:6, 1997; White, Cobb and
 * Spratt, Winter Simulation Conference 2000, found 5 to be a good batch). */
#ifndef INFLIGHT_REPORTS_WARMUP_H
#define INFLIGHT_REPORTS_WARMUP_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "life.h"

/* How many of the observations, in order of time, belong to the warm-up; a multiple of 5. */
size_t warmup_mser5(const double *observed, size_t n);
/* How many requests do, in order of arrival: the later of what time to first token and end-to-end
 * latency say. */
int warmup_requests(const struct life *lives, const uint32_t *order, size_t n, size_t *n_warmup,
                    struct ifl_error *error);

#endif
