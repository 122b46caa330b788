/* Exact quantiles of sorted, weighted samples; the summary of a distribution that a point keeps.
 *
 * Interpolated linearly at position (n - 1) q, as numpy's default (definition 7 of Hyndman and Fan,
 * The American Statistician 50:4, 1996). A count of k stands for k equal samples. */
#ifndef INFLIGHT_REPORTS_QUANTILE_H
#define INFLIGHT_REPORTS_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/report.h"
#include "record/exact_sum.h"

/* Steps of half a percent up to 99.5 %, then 99.9 % and the largest sample. */
#define QUANTILE_STEPS ((size_t)200)
#define QUANTILE_GRID (QUANTILE_STEPS + 2)

struct distribution {
    double mean_ns, at_ns[QUANTILE_GRID]; /* NaN without samples */
};

/* Returns place i of the grid, as a fraction. */
double quantile_of_grid(size_t i);
/* Finds the quantiles at the wanted fractions. Values and fractions must ascend; count NULL: one
 * each. NaN without samples. */
void quantile_find(const int64_t *value, const uint32_t *count, size_t n, const double *wanted,
                   size_t n_wanted, double *found);
/* Appends a sample that occurs `times` times behind the first n, in several parts if a count of 32
 * bits is too small. Returns the new number of samples. */
static inline size_t quantile_parts(uint64_t times)
{
    return times / UINT32_MAX + (times % UINT32_MAX > 0);
}
size_t quantile_put(int64_t *value, uint32_t *count, size_t n, int64_t sample, uint64_t times);
double quantile_mean(const int64_t *value, const uint32_t *count, size_t n);
/* Sorted samples; sample i occurs count[i] times. */
struct counted {
    int64_t *value;  /* [n], owned */
    uint32_t *count; /* [n], owned */
    size_t n;
};
void counted_free(struct counted *of);
/* Fewer samples with the same quantiles on the grid: all samples between the neighbourhoods of two
 * wanted ranks become one with their count. The n pairs (pair.h) may come in any order and are
 * overwritten. The caller frees *of, after an error, too. */
int quantile_thin(int64_t *pairs, size_t n, struct counted *of, struct ifl_error *error);
void quantile_describe(const int64_t *value, const uint32_t *count, size_t n,
                       struct distribution *of);
struct ifl_quantiles quantile_summary_s(const struct distribution *of);

#endif
