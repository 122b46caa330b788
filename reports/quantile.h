/* Exact quantiles of sorted, weighted samples; what one point keeps of a distribution.
 *
 * Interpolated linearly at position (n - 1) q, as numpy's default (definition 7 of Hyndman and Fan,
 * The American Statistician 50:4, 1996). A count of k stands for k equal samples. */
#ifndef INFLIGHT_REPORTS_QUANTILE_H
#define INFLIGHT_REPORTS_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

#include "exact_sum.h"
#include "inflight/report.h"

/* Steps of half a percent up to 99.5 %, then 99.9 % and the largest sample. */
#define QUANTILE_STEPS ((size_t)200)
#define QUANTILE_GRID (QUANTILE_STEPS + 2)

struct distribution {
    double mean_ns, at_ns[QUANTILE_GRID]; /* NaN without samples */
};

/* Place i of the grid, as a fraction. */
double quantile_of_grid(size_t i);
/* values ascend; count may be NULL for one each; wanted fractions ascend. NaN without samples. */
void quantile_find(const int64_t *value, const uint32_t *count, size_t n, const double *wanted,
                   size_t n_wanted, double *found);
/* Behind the first n samples, one that occurs so often, in as many parts as a count needs: how many
 * samples there are now. */
static inline size_t quantile_parts(uint64_t times)
{
    return times / UINT32_MAX + (times % UINT32_MAX > 0);
}
size_t quantile_put(int64_t *value, uint32_t *count, size_t n, int64_t sample, uint64_t times);
double quantile_mean(const int64_t *value, const uint32_t *count, size_t n);
/* Fewer samples with the same quantiles on the grid: all between two wanted ranks' neighbourhoods
 * become one sample with their count. Takes n samples in any order, of which each occurs so many
 * times, or once where `times` is NULL; leaves sorted ones, [*n_left] of value and count. The
 * counts may be the times. */
int quantile_thin(int64_t *value, const uint32_t *times, size_t n, uint32_t *count, size_t *n_left,
                  struct ifl_error *error);
void quantile_describe(const int64_t *value, const uint32_t *count, size_t n,
                       struct distribution *of);
struct ifl_quantiles quantile_summary_s(const struct distribution *of);

#endif
