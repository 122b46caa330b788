/* How far predictions are from measurements: |predicted - measured| / measured. */
#ifndef SIM_FIT_ERRORS_H
#define SIM_FIT_ERRORS_H

#include "fit/forms.h"
#include "inflight/error.h"

struct error_summary {
    size_t n;
    double median, p95; /* fractions; NaN without rows */
};

/* One number a row; NaN where it is unknown (rows that no fold has held out). */
struct predictions {
    const struct fit_sample *const *rows;
    double *predicted_s; /* [n] */
    size_t n;
};

int errors_of_rows(const struct predictions *of, struct error_summary *summary,
                   struct ifl_error *error);

/* Products summed over a layer: for each model, sharding and number of rows, the sum over the
 * layer's distinct products of the mean over repeated measurements. Layers of which a product is
 * missing, fewer than four distinct, count as they are. */
int errors_of_layers(const struct predictions *of, struct error_summary *summary,
                     struct ifl_error *error);

#endif
