/* Fits a hardware profile to tables of measurements, and tests a profile on such tables. */
#ifndef SIM_FIT_FIT_H
#define SIM_FIT_FIT_H

#include <stdatomic.h>

#include "fit/adapters.h"
#include "fit/errors.h"
#include "fit/solve.h"

/* ---- the measurements ---- */

struct fit_data {
    struct table *tables; /* [n_tables] */
    const struct adapter **adapters;
    size_t n_tables;
    struct fit_sample *samples; /* [n], in the order of tables and rows */
    size_t n;
};

int fit_data_read(const char *const *paths, size_t n_paths, struct fit_data *data,
                  struct ifl_error *error);
void fit_data_free(struct fit_data *data);
/* Weights the rows so that each octave of a product's number of rows (m) counts the same. Without
 * it, a table with equally spaced m has far more sizes between two and four thousand than between
 * one and two, while most steps of a server have few rows. */
void fit_data_even_octaves(struct fit_data *data);

/* ---- fitting ---- */

/* A parameter SECTION.FIELD that keeps a given value, to compare a form with a simpler one. */
struct fit_hold {
    char name[64];
    double value;
};

struct fit_options {
    /* Groups to fit on. The other groups of an operation that has one of them are held out to test
     * it. NULL: all groups are fitted; for the test the groups are divided into folds, and each
     * fold is held out once. */
    const char *const *train;
    size_t n_train;
    const struct fit_hold *hold;
    size_t n_hold;
    atomic_ullong *n_fitted; /* rows of fitted operations, for a progress line; or NULL */
};

struct fit_op_report {
    const struct form *form; /* NULL: no rows of this operation */
    struct form free_form;   /* `form` points here: the form without the held parameters */
    struct solution solution;
    struct error_summary fitted, held_out, held_out_layers, held_out_shapes;
};

struct fit_report {
    struct fit_op_report of[FIT_OPS];
    struct fit_sample const **rows; /* [n] all rows with an operation */
    double *predicted_s;            /* predictions of the final fit */
    size_t n;
};

/* Overwrites in `platform` the sections that the data covers. The peaks are not changed. */
int fit_profile(const struct fit_data *data, const struct fit_options *options,
                struct platform *platform, struct fit_report *report, struct ifl_error *error);
/* Fits only the host's part again, for a profile that has got corrections after its fit. After an
 * error the report is freed. */
int fit_host_again(const struct fit_data *data, const struct fit_options *options,
                   struct platform *platform, struct fit_report *report, struct ifl_error *error);
void fit_report_free(struct fit_report *report);

/* ---- judging ---- */

struct fit_verdict {
    struct error_summary rows[FIT_OPS], layers;
    double *predicted_s; /* [data->n]; NaN for rows without an operation or a prediction */
};

int fit_judge(const struct fit_data *data, const struct platform *platform,
              struct fit_verdict *verdict, struct ifl_error *error);
/* evaluation.csv: the tables' columns, then op_class, measured_s, predicted_s. */
int fit_write_evaluation(const struct fit_data *data, const struct fit_verdict *verdict,
                         const char *path, struct ifl_error *error);
/* Writes the CSV of sim/cost/correction.h that brings the profile's predictions to these
 * measurements: for each product, and for all attention or element-wise rows of one size, the
 * geometric mean of measured over predicted. */
int fit_write_corrections(const struct fit_data *data, const struct fit_verdict *verdict,
                          const char *path, struct ifl_error *error);
void fit_verdict_free(struct fit_verdict *verdict);

/* True if the profile has numbers for the operation. */
bool fit_covers(const struct platform *platform, const struct form *form);

#endif
