/* Values over time in a few hundred bins, however long a run is: time-weighted sums. When the last
 * bin is full, neighbours are merged into bins of twice the width. Bin widths are binary fractions
 * of a second, so that merging is exact. Where no span was added, values count as zero. */
#ifndef INFLIGHT_REPORTS_TIME_BINS_H
#define INFLIGHT_REPORTS_TIME_BINS_H

#include <stddef.h>

#include "inflight/error.h"

struct time_bins {
    double origin_s, width_s; /* origin: begin of the first span; width of a bin, 0: no span was
                                 added */
    size_t n_bins, cap_bins;  /* bins with data; cap_bins is even */
    size_t n_values;
    double *sum; /* [cap_bins][n_values] value x seconds, owned */
};

int time_bins_make(struct time_bins *bins, size_t cap_bins, size_t n_values,
                   struct ifl_error *error);
/* Accepts a zeroed struct. */
void time_bins_free(struct time_bins *bins);
/* Adds a span: each value holds for duration_s from begin_s on. A span that begins before the first
 * one is moved to its begin. */
void time_bins_add(struct time_bins *bins, double begin_s, double duration_s, const double *value);

/* Value x seconds of a bin; divided by width_s, its mean. */
static inline double time_bins_sum(const struct time_bins *bins, size_t bin, size_t which)
{
    ifl_assert(bin < bins->n_bins && which < bins->n_values);
    return bins->sum[bin * bins->n_values + which];
}

#endif
