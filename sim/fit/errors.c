#include "fit/errors.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void summarise(double *errors, size_t n, struct error_summary *summary)
{
    *summary = (struct error_summary){n, NAN, NAN};
    if (n == 0)
        return;
    gsl_sort(errors, 1, n);
    summary->median = gsl_stats_quantile_from_sorted_data(errors, 1, n, 0.5);
    summary->p95 = gsl_stats_quantile_from_sorted_data(errors, 1, n, 0.95);
}

int errors_of_rows(const struct predictions *of, struct error_summary *summary,
                   struct ifl_error *error)
{
    double *errors = malloc((of->n + 1) * sizeof *errors);
    size_t n = 0;
    if (!errors)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < of->n; i++)
        if (!isnan(of->predicted_s[i]))
            errors[n++] = fabs(of->predicted_s[i] / of->rows[i]->measured_s - 1);
    summarise(errors, n, summary);
    free(errors);
    return 0;
}

/* ---- layers ---- */

struct product {
    const struct fit_sample *row;
    double predicted_s;
};

static int by_layer_then_shape(const void *a, const void *b)
{
    const struct fit_sample *x = ((const struct product *)a)->row;
    const struct fit_sample *y = ((const struct product *)b)->row;
    const int layer = strcmp(x->layer, y->layer);
    if (layer)
        return layer;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    if (x->k != y->k)
        return x->k < y->k ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static bool same_shape(const struct fit_sample *a, const struct fit_sample *b)
{
    return a->n == b->n && a->k == b->k;
}

/* The relative error of the layer that begins at products[at]; returns where the next one begins.
 */
static size_t layer_error(const struct product *products, size_t n, size_t at, double *relative)
{
    const char *layer = products[at].row->layer;
    double measured_s = 0, predicted_s = 0;
    while (at < n && strcmp(products[at].row->layer, layer) == 0) {
        const size_t first = at;
        double sum_s = 0;
        for (; at < n && strcmp(products[at].row->layer, layer) == 0 &&
               same_shape(products[at].row, products[first].row);
             at++)
            sum_s += products[at].row->measured_s;
        measured_s += sum_s / (double)(at - first);
        predicted_s += products[first].predicted_s;
    }
    *relative = fabs(predicted_s / measured_s - 1);
    return at;
}

static size_t keep_products(const struct predictions *of, struct product *products)
{
    size_t n = 0;
    for (size_t i = 0; i < of->n; i++)
        if (of->rows[i]->layer[0] && !isnan(of->predicted_s[i]))
            products[n++] = (struct product){of->rows[i], of->predicted_s[i]};
    return n;
}

int errors_of_layers(const struct predictions *of, struct error_summary *summary,
                     struct ifl_error *error)
{
    struct product *products = malloc((of->n + 1) * sizeof *products);
    double *errors = malloc((of->n + 1) * sizeof *errors);
    size_t n_layers = 0;
    if (products && errors) {
        const size_t n = keep_products(of, products);
        qsort(products, n, sizeof *products, by_layer_then_shape);
        for (size_t at = 0; at < n; n_layers++)
            at = layer_error(products, n, at, &errors[n_layers]);
        summarise(errors, n_layers, summary);
    }
    const int code = products && errors ? 0 : ifl_fail_nomem(error);
    free(products);
    free(errors);
    return code;
}

/* ---- shapes ---- */

struct in_shape {
    const struct fit_sample *row;
    double log_ratio;
};

/* What a model and its sharding fix: the shape of a product, or the heads. */
static int compare_shapes(const struct fit_sample *a, const struct fit_sample *b)
{
    const double x[] = {a->n, a->k, a->q_heads, a->kv_heads, a->d_head};
    const double y[] = {b->n, b->k, b->q_heads, b->kv_heads, b->d_head};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int by_shape(const void *a, const void *b)
{
    const struct in_shape *x = a, *y = b;
    const int shape = compare_shapes(x->row, y->row);
    return shape ? shape : (x->log_ratio > y->log_ratio) - (x->log_ratio < y->log_ratio);
}

/* Returns where the next shape begins. */
static size_t shape_error(const struct in_shape *rows, size_t n, size_t at, double *relative)
{
    const size_t first = at;
    double sum = 0;
    for (; at < n && compare_shapes(rows[at].row, rows[first].row) == 0; at++)
        sum += rows[at].log_ratio;
    *relative = fabs(expm1(sum / (double)(at - first)));
    return at;
}

int errors_of_shapes(const struct predictions *of, struct error_summary *summary,
                     struct ifl_error *error)
{
    struct in_shape *rows = malloc((of->n + 1) * sizeof *rows);
    double *errors = malloc((of->n + 1) * sizeof *errors);
    size_t n = 0, n_shapes = 0;
    const int code = rows && errors ? 0 : ifl_fail_nomem(error);
    for (size_t i = 0; code == 0 && i < of->n; i++)
        if (of->predicted_s[i] > 0)
            rows[n++] =
                (struct in_shape){of->rows[i], log(of->predicted_s[i] / of->rows[i]->measured_s)};
    if (code == 0)
        qsort(rows, n, sizeof *rows, by_shape);
    for (size_t at = 0; code == 0 && at < n; n_shapes++)
        at = shape_error(rows, n, at, &errors[n_shapes]);
    if (code == 0)
        summarise(errors, n_shapes < ERRORS_LEAST_SHAPES ? 0 : n_shapes, summary);
    free(rows);
    free(errors);
    return code;
}
