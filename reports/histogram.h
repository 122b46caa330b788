/* How often values of all magnitudes occurred, to within a 2 << HISTOGRAM_BITS-th of the value: in
 * bins that are fixed in advance (scale.h, from 0), so that no order of the values makes a
 * difference.
 *
 * A row holds the bins of one doubling and comes with its first value; of its pages, only those
 * that are touched take memory. A count has its low half in one array, which so stays small enough
 * for the caches, and a high half in another, which is touched once in four billion. */
#ifndef INFLIGHT_REPORTS_HISTOGRAM_H
#define INFLIGHT_REPORTS_HISTOGRAM_H

#include "inflight/error.h"
#include "scale.h"

enum { HISTOGRAM_BITS = 17, HISTOGRAM_MAX_ROWS = 64 - HISTOGRAM_BITS + 1 };
#define HISTOGRAM_ROW ((size_t)1 << HISTOGRAM_BITS)

struct histogram {                      /* zeroed: empty */
    uint32_t *low[HISTOGRAM_MAX_ROWS];  /* [HISTOGRAM_ROW] each or NULL, owned */
    uint32_t *high[HISTOGRAM_MAX_ROWS]; /* the same */
};

void histogram_finish(struct histogram *histogram);
int histogram_open_row(uint32_t **row, struct ifl_error *error);

static inline int histogram_add(struct histogram *histogram, int64_t value, uint32_t times,
                                struct ifl_error *error)
{
    const size_t bin = scale_bin((struct scale){.origin = 0, .bits = HISTOGRAM_BITS}, value);
    const size_t row = bin / HISTOGRAM_ROW, at = bin % HISTOGRAM_ROW;
    if (!histogram->low[row] && histogram_open_row(&histogram->low[row], error))
        return error->code;
    histogram->low[row][at] += times;
    if (histogram->low[row][at] >= times)
        return IFL_OK;
    if (!histogram->high[row] && histogram_open_row(&histogram->high[row], error))
        return error->code;
    histogram->high[row][at]++;
    return IFL_OK;
}

/* What it holds, ascending, as samples with counts (quantile.h): each bin's middle. Arrays of
 * [*n], the caller's to free, also after an error. */
int histogram_list(const struct histogram *histogram, int64_t **value, uint32_t **count, size_t *n,
                   struct ifl_error *error);

#endif
