/* The gaps between tokens of all requests, as pairs of a gap and its number of requests.
 *
 * Requests decoded in one step share its gap, so a run adds a few pairs a step.
 * - Up to max_pairs pairs are kept in order of arrival; quantiles are exact.
 * - When the array is full, pairs of equal gaps are merged if few distinct gaps remain, as with a
 *   cost of round numbers; quantiles stay exact.
 * - Otherwise all pairs, and all later ones, go into a histogram; quantiles have a relative error
 * of at most 4e-6 (histogram.h). So they do from the first gap above 39 hours on, which fits no
 * pair. Count and mean are exact in every case. */
#ifndef INFLIGHT_REPORTS_GAPS_H
#define INFLIGHT_REPORTS_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/report.h"
#include "record/exact_sum.h"
#include "record/histogram.h"
#include "record/pair.h"
#include "record/quantile.h"

#define GAPS_MAX_PAIRS ((size_t)1 << 22) /* 32 MiB */

struct gaps {
    int64_t *pairs; /* [cap], owned: a gap and the number of requests with it */
    size_t n, cap, max_pairs;
    bool binned; /* most gaps are in the histogram, and the remaining pairs will be added to it */
    struct histogram histogram;
    struct exact_sum total_ns;
    int64_t n_gaps;
};

void gaps_init(struct gaps *gaps, size_t max_pairs);
void gaps_finish(struct gaps *gaps);
int gaps_add(struct gaps *gaps, int64_t gap_ns, int64_t requests, struct ifl_error *error);
/* As gaps_add for each duration of the stretch, with n_requests each. */
int gaps_add_stretch(struct gaps *gaps, const struct ifl_stretch_record *of,
                     struct ifl_error *error);
/* Called once at the end: computes the quantiles and reorders the pairs. */
int gaps_describe(struct gaps *gaps, struct distribution *of, struct ifl_error *error);

#endif
