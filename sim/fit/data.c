/* Reads tables of measurements as samples by the adapter for their columns. */
#include <math.h>
#include <stdlib.h>

#include "fit/fit.h"

static int read_tables(const char *const *paths, size_t n_paths, struct fit_data *data,
                       struct ifl_error *error)
{
    data->tables = calloc(n_paths, sizeof *data->tables);
    data->adapters = calloc(n_paths, sizeof *data->adapters);
    if (!data->tables || !data->adapters)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < n_paths; i++, data->n_tables++) {
        if (table_read(paths[i], &data->tables[i], error))
            return error->code;
        data->n += data->tables[i].n_rows;
    }
    for (size_t i = 0; i < n_paths; i++)
        if (!(data->adapters[i] = adapter_of(&data->tables[i], error)))
            return error->code;
    return 0;
}

static int read_samples(struct fit_data *data, struct ifl_error *error)
{
    struct fit_sample *at = data->samples = calloc(data->n, sizeof *data->samples);
    if (!at)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < data->n_tables; i++) {
        if (adapter_read(data->adapters[i], &data->tables[i], at, error))
            return error->code;
        for (size_t row = 0; row < data->tables[i].n_rows; row++)
            (at++)->table = i;
    }
    return 0;
}

int fit_data_read(const char *const *paths, size_t n_paths, struct fit_data *data,
                  struct ifl_error *error)
{
    *data = (struct fit_data){0};
    if (n_paths == 0)
        return ifl_fail(error, IFL_E_INPUT, "no tables, expected at least one");
    int code = read_tables(paths, n_paths, data, error);
    if (!code)
        code = read_samples(data, error);
    if (code)
        fit_data_free(data);
    return code;
}

void fit_data_free(struct fit_data *data)
{
    for (size_t i = 0; i < data->n_tables; i++)
        table_free(&data->tables[i]);
    free(data->tables);
    free(data->adapters);
    free(data->samples);
    *data = (struct fit_data){0};
}

/* ---- the weight of a row ---- */

enum { OCTAVES = 32 }; /* of the rows of a product */

static int octave_of(const struct fit_sample *product)
{
    return (int)fmin(fmax(log2(product->m), 0), OCTAVES - 1);
}

static void even_octaves_of(struct fit_data *data, enum fit_op op)
{
    double n_of[OCTAVES] = {0}, n = 0;
    int n_octaves = 0;
    for (size_t i = 0; i < data->n; i++)
        if (data->samples[i].op == op)
            n_of[octave_of(&data->samples[i])]++;
    for (int i = 0; i < OCTAVES; i++) {
        n_octaves += n_of[i] > 0;
        n += n_of[i];
    }
    for (size_t i = 0; i < data->n; i++)
        if (data->samples[i].op == op)
            data->samples[i].weight = n / n_octaves / n_of[octave_of(&data->samples[i])];
}

void fit_data_even_octaves(struct fit_data *data)
{
    even_octaves_of(data, FIT_GEMM);
    even_octaves_of(data, FIT_GEMM_FP8);
    even_octaves_of(data, FIT_GEMM_NVFP4);
}
