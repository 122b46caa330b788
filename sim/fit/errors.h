/* How far predictions are from measurements: |predicted - measured| / measured. */
#ifndef SIM_FIT_ERRORS_H
#define SIM_FIT_ERRORS_H

#include "fit/forms.h"
#include "inflight/error.h"

struct error_summary {
    size_t n;
    double median, p95; /* fractions; NaN without rows */
};

/* One prediction per row; NaN: unknown (rows that were in no held-out fold). */
struct predictions {
    const struct fit_sample *const *rows;
    double *predicted_s; /* [n] */
    size_t n;
};

int errors_of_rows(const struct predictions *of, struct error_summary *summary,
                   struct ifl_error *error);

/* Errors of whole layers, one for each model, sharding and number of rows. The time of a layer is
 * the sum over its different products, each the mean of repeated measurements. If products of a
 * layer are missing (there are fewer than four), the sum has only the others. */
int errors_of_layers(const struct predictions *of, struct error_summary *summary,
                     struct ifl_error *error);

/* Errors that recur: for each shape, of products or of heads, the mean of log(predicted / measured)
 * over its rows, as a relative error. A run of one model has few shapes, but many numbers of rows,
 * over which the remaining errors of rows average out. The result is empty with fewer than
 * ERRORS_LEAST_SHAPES shapes. */
enum { ERRORS_LEAST_SHAPES = 8 };
int errors_of_shapes(const struct predictions *of, struct error_summary *summary,
                     struct ifl_error *error);

#endif
