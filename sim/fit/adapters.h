/* Foreign tables of measurements as samples. The columns of its header say what a table is. */
#ifndef SIM_FIT_ADAPTERS_H
#define SIM_FIT_ADAPTERS_H

#include "fit/sample.h"
#include "fit/table.h"

enum { ADAPTER_MAX_COLUMNS = 28 };

struct adapter_row {
    const struct table *table;
    const int *columns; /* of the adapter's columns in the table */
    size_t row;
};

struct adapter {
    const char *name, *doc;
    const char
        *columns[ADAPTER_MAX_COLUMNS]; /* that the header must have, in any order; NULL-ended */
    const char *file_has;              /* tables alike are told by their file's name; or NULL */
    /* Everything but table and row. A row without an operation of the cost model is FIT_NONE. */
    int (*sample)(const struct adapter_row *row, struct fit_sample *sample,
                  struct ifl_error *error);
};

/* Of LLMServingSim: in a file of its own. */
int llmservingsim_attention(const struct adapter_row *row, struct fit_sample *sample,
                            struct ifl_error *error);
int llmservingsim_dense(const struct adapter_row *row, struct fit_sample *sample,
                        struct ifl_error *error);
int llmservingsim_per_sequence(const struct adapter_row *row, struct fit_sample *sample,
                               struct ifl_error *error);

/* Logs of forward passes of Qwen3-32B, of AIConfigurator. */
int aic_steps(const struct adapter_row *row, struct fit_sample *sample, struct ifl_error *error);

/* ---- for the adapters: cells of a row by the adapter's column ---- */

const char *adapter_text(const struct adapter_row *row, int i);
/* A number of at least `min`; *code keeps the first error, and then nothing is read. */
double adapter_number(const struct adapter_row *row, int i, double min, int *code,
                      struct ifl_error *error);

/* Ends with a NULL name. */
const struct adapter *adapters(void);
/* The first whose columns are all there; an error names the file if there is none. */
const struct adapter *adapter_of(const struct table *table, struct ifl_error *error);
/* One sample a row into samples[table->n_rows]. */
int adapter_read(const struct adapter *adapter, const struct table *table,
                 struct fit_sample *samples, struct ifl_error *error);

#endif
