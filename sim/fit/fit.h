/* Fitting a hardware profile to tables of measurements, and judging one on them. */
#ifndef SIM_FIT_FIT_H
#define SIM_FIT_FIT_H

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
/* Lets each octave of a product's number of rows count the same. A table that goes through them by
 * equal steps has a hundred sizes between two and four thousand for one between one and two; most
 * steps of a server have few. */
void fit_data_even_octaves(struct fit_data *data);

/* ---- fitting ---- */

/* A parameter that is not fitted, to compare a form with a simpler one: SECTION.FIELD. */
struct fit_hold {
    char name[64];
    double value;
};

struct fit_options {
    /* Groups to fit on; all others of an operation that has one of them test it. NULL: everything
     * is fitted, and for the test the groups are dealt into folds and each is left out once. */
    const char *const *train;
    size_t n_train;
    const struct fit_hold *hold;
    size_t n_hold;
};

struct fit_op_report {
    const struct form *form; /* NULL: no rows of this operation */
    struct form free_form;   /* what `form` points at: without the parameters that are held */
    struct solution solution;
    struct error_summary fitted, held_out, held_out_layers;
};

struct fit_report {
    struct fit_op_report of[FIT_OPS];
    struct fit_sample const **rows; /* all with an operation, [n] */
    double *predicted_s;            /* by the final fit */
    size_t n;
};

/* Overwrites in `hardware` the sections that the data covers; its peaks are taken as they are. */
int fit_profile(const struct fit_data *data, const struct fit_options *options,
                struct hardware *hardware, struct fit_report *report, struct ifl_error *error);
/* The host's part alone, of a profile that has got corrections since. On an error the report is
 * freed. */
int fit_host_again(const struct fit_data *data, const struct fit_options *options,
                   struct hardware *hardware, struct fit_report *report, struct ifl_error *error);
void fit_report_free(struct fit_report *report);

/* ---- judging ---- */

struct fit_verdict {
    struct error_summary rows[FIT_OPS], layers;
    double *predicted_s; /* [data->n]; NaN for rows without an operation or a prediction */
};

int fit_judge(const struct fit_data *data, const struct hardware *hardware,
              struct fit_verdict *verdict, struct ifl_error *error);
/* evaluation.csv: the tables' columns, then op_class, measured_s, predicted_s. */
int fit_write_evaluation(const struct fit_data *data, const struct fit_verdict *verdict,
                         const char *path, struct ifl_error *error);
/* The CSV of sim/cost/correction.h that would bring the profile's predictions to these
 * measurements: for each product, or for all attention and element-wise rows of one size, the
 * geometric mean of measured over predicted. */
int fit_write_corrections(const struct fit_data *data, const struct fit_verdict *verdict,
                          const char *path, struct ifl_error *error);
void fit_verdict_free(struct fit_verdict *verdict);

/* True if the profile has numbers for the operation. */
bool fit_covers(const struct hardware *hardware, const struct form *form);

#endif
