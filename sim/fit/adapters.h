/* Adapters read tables of measurements as samples. A table is recognised by the columns of its
 * header. */
#ifndef SIM_FIT_ADAPTERS_H
#define SIM_FIT_ADAPTERS_H

#include "base/table.h"
#include "fit/sample.h"

enum { ADAPTER_MAX_COLUMNS = 28 };

struct adapter_row {
    const struct table *table;
    const int *columns; /* columns of the table, in the order of the adapter's columns */
    size_t row;
};

struct adapter {
    const char *name, *doc;
    const char
        *columns[ADAPTER_MAX_COLUMNS]; /* header columns, all required, in any order; NULL-ended */
    const char *file_has; /* part of the file's name, if columns do not suffice; or NULL */
    /* Fills the sample, except `table` and `row`. Its op is FIT_NONE if the cost model has no
     * operation for the row. */
    int (*sample)(const struct adapter_row *row, struct fit_sample *sample,
                  struct ifl_error *error);
};

/* Tables of LLMServingSim (llmservingsim.c). */
int llmservingsim_attention(const struct adapter_row *row, struct fit_sample *sample,
                            struct ifl_error *error);
int llmservingsim_dense(const struct adapter_row *row, struct fit_sample *sample,
                        struct ifl_error *error);
int llmservingsim_per_sequence(const struct adapter_row *row, struct fit_sample *sample,
                               struct ifl_error *error);

/* AIConfigurator's logs of forward passes of Qwen3-32B (steps.c). */
int aic_steps(const struct adapter_row *row, struct fit_sample *sample, struct ifl_error *error);

/* AIConfigurator's modules of latent attention, of DeepSeek-V3 (latent.c). */
int aic_latent_context(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error);
int aic_latent_generation(const struct adapter_row *row, struct fit_sample *sample,
                          struct ifl_error *error);
/* As above, for DeepSeek-V3.2 with its indexer. */
int aic_sparse_context(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error);
int aic_sparse_generation(const struct adapter_row *row, struct fit_sample *sample,
                          struct ifl_error *error);

/* ---- for adapters: the cells of a row, by the number of the adapter's column ---- */

const char *adapter_text(const struct adapter_row *row, int i);
/* A number of at least `min`. *code keeps the first error; calls after an error read nothing. */
double adapter_number(const struct adapter_row *row, int i, double min, int *code,
                      struct ifl_error *error);

/* All adapters; the last entry has a NULL name. */
const struct adapter *adapters(void);
/* The first adapter that finds all its columns in the table; if none does, an error that names the
 * file. */
const struct adapter *adapter_of(const struct table *table, struct ifl_error *error);
/* Reads one sample for each row into samples[table->n_rows]. */
int adapter_read(const struct adapter *adapter, const struct table *table,
                 struct fit_sample *samples, struct ifl_error *error);

#endif
