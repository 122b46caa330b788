/* How often values of all magnitudes occurred, to within a 2 << HISTOGRAM_BITS-th of the value: in
 * bins that are fixed in advance (scale.h, from 0), so that no order of the values makes a
 * difference.
 *
 * A row holds the bins of one doubling and comes with its first value; of its pages, only those
 * that are touched take memory. A count has its low 16 bits in one array, which so stays small
 * enough for the caches, and the others in another, which is touched once in 65,536. */
#ifndef INFLIGHT_REPORTS_HISTOGRAM_H
#define INFLIGHT_REPORTS_HISTOGRAM_H

#include "inflight/error.h"
#include "scale.h"

enum { HISTOGRAM_BITS = 17, HISTOGRAM_MAX_ROWS = 64 - HISTOGRAM_BITS + 1 };
#define HISTOGRAM_ROW ((size_t)1 << HISTOGRAM_BITS)

struct histogram {                      /* zeroed: empty */
    uint16_t *low[HISTOGRAM_MAX_ROWS];  /* [HISTOGRAM_ROW] each or NULL, owned */
    uint64_t *high[HISTOGRAM_MAX_ROWS]; /* the same */
};

void histogram_finish(struct histogram *histogram);
int histogram_carry(struct histogram *histogram, size_t row, size_t at, uint32_t carry,
                    struct ifl_error *error);
int histogram_open_row(struct histogram *histogram, size_t row, struct ifl_error *error);

/* Into a row that is there. */
static inline int histogram_count(struct histogram *histogram, size_t row, size_t at,
                                  uint32_t times, struct ifl_error *error)
{
    const uint64_t sum = (uint64_t)histogram->low[row][at] + times;
    histogram->low[row][at] = (uint16_t)sum;
    return sum > UINT16_MAX ? histogram_carry(histogram, row, at, (uint32_t)(sum >> 16), error)
                            : IFL_OK;
}

static inline int histogram_add(struct histogram *histogram, int64_t value, uint32_t times,
                                struct ifl_error *error)
{
    const size_t bin = scale_bin((struct scale){.origin = 0, .bits = HISTOGRAM_BITS}, value);
    const size_t row = bin / HISTOGRAM_ROW, at = bin % HISTOGRAM_ROW;
    if (!histogram->low[row] && histogram_open_row(histogram, row, error))
        return error->code;
    return histogram_count(histogram, row, at, times, error);
}

/* The same of each of n values; neighbours of the same doubling take half the time. */
int histogram_add_all(struct histogram *histogram, const int64_t *value, size_t n, uint32_t times,
                      struct ifl_error *error);

/* What it holds, ascending, as samples with counts (quantile.h): each bin's middle. Arrays of
 * [*n], the caller's to free, also after an error. */
int histogram_list(const struct histogram *histogram, int64_t **value, uint32_t **count, size_t *n,
                   struct ifl_error *error);

#endif
