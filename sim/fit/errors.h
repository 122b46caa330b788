/* How far predictions are from measurements: |predicted - measured| / measured. */
#ifndef SIM_FIT_ERRORS_H
#define SIM_FIT_ERRORS_H

#include "fit/forms.h"
#include "inflight/error.h"

struct error_summary {
    size_t n;
    double median, p95; /* fractions; NaN without rows */
};

/* One prediction for each row; NaN: unknown (rows that no fold has held out). */
struct predictions {
    const struct fit_sample *const *rows;
    double *predicted_s; /* [n] */
    size_t n;
};

int errors_of_rows(const struct predictions *of, struct error_summary *summary,
                   struct ifl_error *error);

/* Errors of whole layers, one for each model, sharding and number of rows: the time of a layer is
 * the sum over its distinct products, each the mean of repeated measurements. A layer with a
 * product missing, so with fewer than four, is summed over those that are there. */
int errors_of_layers(const struct predictions *of, struct error_summary *summary,
                     struct ifl_error *error);

/* Errors that recur: of each shape, of products or of heads, the mean of log(predicted / measured)
 * over its rows, as a relative error. A run of one model meets few shapes, with many numbers of
 * rows, over which the rest of the rows' errors averages out. Empty with fewer than
 * ERRORS_LEAST_SHAPES shapes. */
enum { ERRORS_LEAST_SHAPES = 8 };
int errors_of_shapes(const struct predictions *of, struct error_summary *summary,
                     struct ifl_error *error);

#endif
