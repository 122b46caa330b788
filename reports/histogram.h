/* How often values of all magnitudes occurred, to within a 2 << HISTOGRAM_BITS-th of the value: in
 * bins that are fixed in advance (scale.h, from 0), so that no order of the values makes a
 * difference.
 *
 * The bins are there from the first value on; of their pages, only those that are touched take
 * memory, and only rows with a value in them are looked at again. A row is a doubling. A count has
 * its low 16 bits in one array, which so stays small enough for the caches, and the others in
 * another, which is touched once in 65,536. */
#ifndef INFLIGHT_REPORTS_HISTOGRAM_H
#define INFLIGHT_REPORTS_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

enum { HISTOGRAM_BITS = 17, HISTOGRAM_ROWS = 64 - HISTOGRAM_BITS + 1 };
#define HISTOGRAM_ROW ((size_t)1 << HISTOGRAM_BITS)

struct histogram {  /* zeroed: empty */
    uint16_t *low;  /* [HISTOGRAM_ROWS][HISTOGRAM_ROW] or NULL, owned */
    uint64_t *high; /* the same */
    bool has_row[HISTOGRAM_ROWS];
};

void histogram_finish(struct histogram *histogram);

/* Value i of n occurs times[i * apart]: `apart` is 1, or 0 where all occur equally often. */
int histogram_add(struct histogram *histogram, const int64_t *value, size_t n,
                  const uint32_t *times, size_t apart, struct ifl_error *error);

/* What it holds, ascending, as samples with counts (quantile.h): each bin's middle. Arrays of
 * [*n], the caller's to free, also after an error. */
int histogram_list(const struct histogram *histogram, int64_t **value, uint32_t **count, size_t *n,
                   struct ifl_error *error);

#endif
