/* A histogram of values of all magnitudes, with a relative error of at most 1 / (2 <<
 * HISTOGRAM_BITS). Its bins are fixed in advance (scale.h, from 0), so it does not depend on the
 * order of the values.
 *
 * All bins are allocated with the first value, but only touched pages take memory. A row is a
 * doubling; only rows with a value are read at the end. The low 16 bits of a count are in one
 * array, small enough for the caches; the high bits are in another, touched once in 65,536
 * additions. */
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

/* Adds n values; value i occurs times[i * apart] times. `apart` is 1, or 0 if all occur equally
 * often. */
int histogram_add(struct histogram *histogram, const int64_t *value, size_t n,
                  const uint32_t *times, size_t apart, struct ifl_error *error);

/* Lists the contents in ascending order, as samples with counts (quantile.h): the middle of each
 * bin. value and count are [*n]; the caller frees them, after an error, too. */
int histogram_list(const struct histogram *histogram, int64_t **value, uint32_t **count, size_t *n,
                   struct ifl_error *error);

#endif
