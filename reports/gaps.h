/* The gaps between tokens of all requests, as pairs (gap, how many requests had it).
 *
 * Requests decoded in one step share its gap, so a run leaves a few pairs a step. Up to max_pairs
 * pairs are kept as they came; then equal gaps are merged; and while more than half of the room is
 * still full, gaps are cut to the next coarser power of two of nanoseconds and merged again.
 * Cutting composes, so the quantiles are never further than half of the last quantum from the
 * truth. Count and mean stay exact. */
#ifndef INFLIGHT_REPORTS_GAPS_H
#define INFLIGHT_REPORTS_GAPS_H

#include <stddef.h>
#include <stdint.h>

#include "exact_sum.h"
#include "inflight/error.h"
#include "quantile.h"

#define GAPS_MAX_PAIRS ((size_t)1 << 22) /* 48 MiB */

struct gaps {
    int64_t *gap_ns;    /* [cap], owned */
    uint32_t *requests; /* [cap], owned: how many had the gap */
    size_t n, cap, max_pairs;
    int quantum_bits; /* gaps are multiples of 1 << quantum_bits */
    struct exact_sum total_ns;
    int64_t n_gaps;
};

void gaps_init(struct gaps *gaps, size_t max_pairs);
void gaps_finish(struct gaps *gaps);
int gaps_add(struct gaps *gaps, int64_t gap_ns, int64_t requests, struct ifl_error *error);
/* The same of each of n gaps. */
int gaps_add_all(struct gaps *gaps, const int64_t *gap_ns, size_t n, int32_t requests,
                 struct ifl_error *error);
/* The end: thins out what is there. */
int gaps_describe(struct gaps *gaps, struct distribution *of, struct ifl_error *error);

#endif
