/* The points of one or more runs, grouped into the lines of a figure.
 *
 * The arrival rate, where all runs sweep it, is the axis. The other swept keys, and the run's name
 * where there are several, name the series. Series are numbered in order of appearance; points are
 * ordered by series, then rate. */
#ifndef INFLIGHT_REPORTS_SERIES_H
#define INFLIGHT_REPORTS_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"
#include "tables/sheet.h"

struct series_run {
    const char *dir;        /* borrowed */
    struct sheet summary;   /* replications.csv where there is one, else summary.csv */
    struct sheet quantiles; /* zeroed where the run has none */
    size_t n_keys, rate;    /* SHEET_NO_COLUMN where the rate is not swept */
    size_t n_replications;  /* points of the other files to a row of the summary */
};

struct series_point {
    size_t series, run, row; /* row of summary.csv, without the header */
    double rate_rps;         /* NaN where it is no axis */
    bool saturated;
};

struct series_set {
    struct series_run *runs;     /* [n_runs] */
    struct series_point *points; /* [n_points] */
    char **names;                /* [n_series] */
    size_t n_runs, n_points, n_series;
    bool has_rate;
};

int series_read(struct series_set *set, size_t n_runs, const char *const *run_dirs,
                struct ifl_error *error);
void series_free(struct series_set *set);
/* Chooses one point of each series, for figures at one rate:
 * - at rate_rps, unless it is 0;
 * - otherwise at the median of the rates that all series share (of an even number the lower);
 * - without a shared rate, at the median of the series' own rates.
 * chosen: [n_series] indices of points. */
int series_choose(const struct series_set *set, double rate_rps, size_t *chosen,
                  struct ifl_error *error);
/* The point's number in the run's other files; with replications the number of the first, which the
 * others follow. */
size_t series_number(const struct series_set *set, const struct series_point *point);
/* Sets rows [*from, *to) of the run's quantiles that belong to a replication of the point, counted
 * from 0. False if there are none. */
bool series_quantiles(const struct series_set *set, const struct series_point *point,
                      size_t replication, size_t *from, size_t *to);

#endif
