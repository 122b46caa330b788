/* The gaps between tokens of all requests: how many requests had which.
 *
 * Requests decoded in one step share its gap, so a run leaves a few pairs (gap, requests) a step.
 * Up to max_pairs pairs are kept as they came, and quantiles are exact. Then equal gaps are merged,
 * where that leaves few, as with a cost of round numbers, and it goes on so. Else all go into a
 * histogram, what comes behind them as well, and quantiles are within four millionths of the truth
 * (histogram.h). Count and mean stay exact. */
#ifndef INFLIGHT_REPORTS_GAPS_H
#define INFLIGHT_REPORTS_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exact_sum.h"
#include "histogram.h"
#include "inflight/error.h"
#include "quantile.h"

#define GAPS_MAX_PAIRS ((size_t)1 << 22) /* 48 MiB */

struct gaps {
    int64_t *gap_ns;    /* [cap] and more, owned */
    uint32_t *requests; /* [cap] and more, owned: how many had the gap */
    size_t n, cap, max_pairs;
    bool binned; /* most of them are in the histogram, and the last ones will be */
    struct histogram histogram;
    struct exact_sum total_ns;
    int64_t n_gaps;
};

void gaps_init(struct gaps *gaps, size_t max_pairs);
void gaps_finish(struct gaps *gaps);
int gaps_add(struct gaps *gaps, int64_t gap_ns, int64_t requests, struct ifl_error *error);
/* The same of each of n gaps, which add up to total_ns. */
int gaps_add_all(struct gaps *gaps, const int64_t *gap_ns, size_t n, int64_t total_ns,
                 int32_t requests, struct ifl_error *error);
/* The end: thins out what is there. */
int gaps_describe(struct gaps *gaps, struct distribution *of, struct ifl_error *error);
/* Behind it: the memory of the pairs, for others, who free it. It is large, and its pages are there
 * already. May be NULL. */
void *gaps_release(struct gaps *gaps);

#endif
