/* The common part of all figures of runs: the points to draw, and the CSV that each writes.
 *
 * A figure is a row of the table in plot.c: a function that tells what data the runs lack for it, a
 * function that writes the data, and a gnuplot script of the figure's name. The first columns are
 *
 *     number,series,rate_rps,saturated,...    the number of the series from 1, its name, and the
 *                                             arrival rate, or the key of the axis in its place;
 *                                             empty where none is swept
 *
 * They give a script the number of lines, their names, and the points to mark as saturated; only in
 * kv_shares `saturated` is the last column. A metric that is a mean over replications is followed
 * by METRIC_ci95, half the width of its 95% interval, empty if there is one run. */
#ifndef INFLIGHT_REPORTS_PLOT_FIGURES_H
#define INFLIGHT_REPORTS_PLOT_FIGURES_H

#include <stdbool.h>

#include "inflight/report.h"
#include "plot/series.h"
#include "tables/whole_file.h"

/* The note below a figure's legend: data left out, data averaged. */
struct figure_note {
    char text[512];
};

struct plot {
    const struct ifl_plot_options *options;
    const struct series_set *set;
    struct figure_note *note; /* note of the current figure */
    const size_t *chosen; /* [set->n_series] a point a series, all at one place of the axis if there
                           * is one */
    const char *y;        /* column of the current figure, if one was requested */
};

enum { FIGURE_EMPTY = 1 }; /* instead of IFL_OK: there is nothing to draw */

typedef int figure_write_fn(struct whole_file *file, const struct plot *plot,
                            struct ifl_error *error);
/* NULL if the runs have all data for the figure, otherwise the name of the missing data. */
typedef const char *figure_lacks_fn(const struct plot *plot);

/* ---- cells ---- */

int figure_write_row(struct whole_file *file, const char *const *cells, size_t n,
                     struct ifl_error *error);

/* Writes the header: the first four columns, then these. */
int figure_write_head(struct whole_file *file, const struct plot *plot, const char *rest,
                      struct ifl_error *error);

struct figure_number {
    char text[32];
};
struct figure_number figure_number(double value); /* empty for NaN */
/* The first and the fourth cell of a point's row. */
struct figure_number figure_series_number(const struct series_point *point);
const char *figure_saturated(const struct series_point *point);

/* Adds a part to the note. */
IFL_PRINTF(2, 3)
void figure_say(const struct plot *plot, const char *format, ...);

/* ---- rows of the chosen points: figure_scan.c ---- */

enum { MAX_CURVES = 6 }; /* more curves in one panel cannot be told apart */
size_t figure_n_curves(const struct plot *plot);

/* True if every run has a file of that name. */
bool figure_has_file(const struct plot *plot, const char *name);

/* The largest number of replications of any point, at least 1. */
size_t figure_n_replications(const struct plot *plot);

/* value: [n] as scan.h says. series is below figure_n_curves, replication below
 * figure_n_replications. */
typedef int figure_row_fn(void *context, size_t series, size_t replication, const double *value,
                          struct ifl_error *error);
/* Calls `take` for the rows of every run's file that belong to a replication of a chosen point;
 * each file is read once. The first column must be "point". */
int figure_scan(const struct plot *plot, const char *name, size_t n, const char *const *columns,
                figure_row_fn *take, void *context, struct ifl_error *error);
/* As figure_scan; files may lack the columns from n_needed on, which are then NaN. */
int figure_scan_some(const struct plot *plot, const char *name, size_t n, size_t n_needed,
                     const char *const *columns, figure_row_fn *take, void *context,
                     struct ifl_error *error);
/* As figure_scan; a run may lack the file, and a cell that is no number is NaN. */
int figure_scan_sparse(const struct plot *plot, const char *name, size_t n,
                       const char *const *columns, figure_row_fn *take, void *context,
                       struct ifl_error *error);

/* ---- from summary.csv: metrics.c ---- */

figure_lacks_fn metrics_lack_curve, metrics_lack_x, metrics_lack_series, metrics_lack_pool,
    metrics_lack_slo;
figure_write_fn metrics_latency_vs_rate, metrics_latency_by_series, metrics_percentiles,
    metrics_throughput, metrics_attainment, metrics_any, metrics_kv_shares;

/* ---- from capacity.csv: capacities.c ---- */

figure_lacks_fn capacities_lack_series, capacities_lack_curve, capacities_lack_costs;
figure_write_fn capacities_write, capacities_costs;

/* ---- from quantiles.csv: distributions.c ---- */

figure_lacks_fn distributions_lack;
figure_write_fn distributions_write;

/* ---- from requests.csv: attainment.c ---- */

figure_lacks_fn attainment_lacks;
figure_write_fn attainment_write;

/* ---- from steps.csv: over_time.c ---- */

figure_lacks_fn over_time_lacks;
figure_write_fn over_time_batch, over_time_kv;

/* ---- from requests.csv, by replica: replicas.c ---- */

figure_lacks_fn replicas_lack;
figure_write_fn replicas_load, replicas_outstanding, replicas_shares;

/* ---- from work.csv: slot_grid.c ---- */

figure_lacks_fn slot_grid_lacks;
figure_write_fn slot_grid_write;

#endif
