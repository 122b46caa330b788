/* Rows of a point as packed columns: {"point": 3, "n": 1000, "packed": ["...", ...]}. A column with
 * fewer numbers than n repeats its last one. */
#ifndef INFLIGHT_REPORTS_PAGE_PACKED_H
#define INFLIGHT_REPORTS_PAGE_PACKED_H

#include "page/pack.h"
#include "page/run.h"

/* How a column is packed: value x scale, as differences or as it is. */
struct packed_column {
    const char *name;
    double scale;
    bool as_differences;
};

/* Sets a member with the names of the columns, an array. */
int packed_put_names(const struct page *page, json_t *object, const struct packed_column *columns,
                     size_t n);
/* Appends the rows of a point to `points`. rows: [n_rows][stride]; the first n numbers of each row
 * are the columns. Returns the object, to which more members can be added; NULL after an error. */
json_t *packed_put_rows(const struct page *page, json_t *points, size_t point,
                        const struct packed_column *columns, size_t n, const double *rows,
                        size_t n_rows, size_t stride);

#endif
