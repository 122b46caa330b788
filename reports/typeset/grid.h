/* A table before it is written: its rows, its columns, and the value of each cell. */
#ifndef INFLIGHT_REPORTS_TYPESET_GRID_H
#define INFLIGHT_REPORTS_TYPESET_GRID_H

#include <stdbool.h>

#include "inflight/typeset.h"
#include "tables/metric.h"
#include "tables/sheet.h"

enum { GRID_MAX_KEYS = 33, GRID_MAX_METRICS = 32, GRID_MAX_GROUPS = 64, GRID_NO_KEY = -1 };

/* A run: its replications.csv if it has one, else its summary.csv. */
struct grid_run {
    const char *dir, *name; /* borrowed; the name is the path where two runs have the same */
    struct sheet sheet;
    size_t n_keys;
};

struct grid_cell {
    double value, half_width; /* NaN where there is none; in the unit of the column */
    bool is_best;
};

struct grid {
    const struct ifl_table *of;
    struct grid_run *runs;           /* [of->n_runs], owned */
    const char *keys[GRID_MAX_KEYS]; /* all keys that some run sweeps; "run" is the first */
    size_t n_keys;
    int heads[GRID_MAX_KEYS]; /* indices of the keys that head the rows */
    size_t n_heads;
    int pivot; /* key of the groups of columns; GRID_NO_KEY: there is one group */
    const char *groups[GRID_MAX_GROUPS];
    size_t n_groups;
    const char *columns[GRID_MAX_METRICS];
    struct metric metrics[GRID_MAX_METRICS];
    size_t n_metrics;
    const char **names;      /* [n_lines][n_heads], owned; the texts are borrowed */
    struct grid_cell *cells; /* [n_lines][n_groups][n_metrics], owned */
    size_t n_lines;
    bool has_intervals;
};

int grid_read(struct grid *grid, const struct ifl_table *of, struct ifl_error *error);
void grid_free(struct grid *grid);

static inline struct grid_cell *grid_cell(const struct grid *grid, size_t line, size_t group,
                                          size_t metric)
{
    return &grid->cells[(line * grid->n_groups + group) * grid->n_metrics + metric];
}

#endif
