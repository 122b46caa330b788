/* The points of one or more runs, grouped into the lines of a figure.
 *
 * The axis is a swept key with numbers, of which the arrival rate is the usual one. The other swept
 * keys, and the run's name where there are several, name the series. Series are numbered in order
 * of appearance; points are ordered by series, then along the axis. */
#ifndef INFLIGHT_REPORTS_SERIES_H
#define INFLIGHT_REPORTS_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"
#include "tables/sheet.h"

/* Options for the axis and the names of the lines; zeroed: the arrival rate is the axis, and no
 * names are changed. */
struct series_options {
    const char *x; /* swept key of the axis, by its full name or the last part of it; NULL: the
                    * rate, or the factor on a trace's rate */
    size_t n_labels;
    const char *const *labels; /* "NAME=TEXT": the text stands for that name */
};

struct series_run {
    const char *dir;        /* borrowed */
    struct sheet summary;   /* replications.csv where there is one, else summary.csv; or
                             * capacity.csv */
    struct sheet quantiles; /* zeroed where the run has none */
    struct sheet pools;     /* pools.csv; zeroed if the run has none */
    size_t n_keys, x;       /* the key of the axis; SHEET_NO_COLUMN: it is not swept */
    double *rate_rps;       /* [rows of the summary] where the axis is the factor on a trace's rate:
                             * what it made of the arrivals; else NULL */
    size_t n_replications;  /* points of the other files per row of the summary */
};

struct series_point {
    size_t series, run, row; /* row of summary.csv, without the header */
    double x;                /* NaN without an axis */
    bool saturated;          /* capacities: no rate was found that is too high */
};

struct series_set {
    struct series_run *runs;     /* [n_runs] */
    struct series_point *points; /* [n_points] */
    char **names;                /* [n_series] */
    size_t n_runs, n_points, n_series;
    bool of_capacities;  /* the sheets are capacity.csv: a row a deployment */
    bool has_x, is_rate; /* has_x: there is an axis; is_rate: it is in requests per second */
    char x_name[64];     /* its column in a figure's CSV: rate_rps, or the last part of the key;
                          * rate_rps where there is no axis */
    const struct series_options *options;
    bool *label_used; /* [options->n_labels] */
};

/* Reads folders of `inflight run`, or folders of `inflight capacity`. options may be NULL. Returns
 * IFL_E_INPUT for a key that no run sweeps, a key with values that are no numbers, and a label for
 * a name that does not occur. */
int series_read(struct series_set *set, size_t n_runs, const char *const *run_dirs,
                const struct series_options *options, struct ifl_error *error);
/* True if every run has that column behind its keys, with numbers. */
bool series_has_numbers(const struct series_set *set, const char *column);
/* The text that a label gives to the name, or the name itself. */
const char *series_label(const struct series_set *set, const char *name);
void series_free(struct series_set *set);
/* Chooses one point of each series, for figures at one value of the axis:
 * - at `x`, unless it is 0;
 * - otherwise at the median of the values that all series share (of an even number the lower);
 * - without a shared one, at the median of the series' own.
 * chosen: [n_series] indices of points. */
int series_choose(const struct series_set *set, double x, size_t *chosen, struct ifl_error *error);
/* Returns the point's number in the run's other files; with replications, that of the first one,
 * which the others follow. */
size_t series_number(const struct series_set *set, const struct series_point *point);
/* Sets rows [*from, *to) of the run's quantiles that belong to a replication of the point, counted
 * from 0. False if there are none. */
bool series_quantiles(const struct series_set *set, const struct series_point *point,
                      size_t replication, size_t *from, size_t *to);

#endif
