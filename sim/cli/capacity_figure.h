/* The figure of `inflight capacity`: a dot for each deployment, with its interval as a line.
 *
 *     struct capacity_figure figure;
 *     if (capacity_figure_open(&figure, dir, "plan_figure", "bill", error) < 0)
 *         return error->code;
 *     capacity_figure_put(&figure, study, 0, &bar);    for each deployment
 *     return capacity_figure_draw(&figure, "at 4 requests/s", error);
 *
 * NAME.csv, and the figure NAME from it, are written into the folder. */
#ifndef SIM_CLI_CAPACITY_FIGURE_H
#define SIM_CLI_CAPACITY_FIGURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/new_file.h"

struct study;

struct capacity_bar {
    const char *status;      /* cell_status */
    double value, low, high; /* above 0; NaN: no dot or no end of the line */
    int32_t replicas;        /* 0: not counted; n_gpus is then that of all replicas together */
    int32_t n_gpus;          /* of a replica */
    bool cheapest;
    const char *unit; /* of the value */
};

struct capacity_figure {
    const char *dir, *name; /* not owned */
    struct new_file file;
};

/* `column` names the value's column; its ends are column_low and column_high. After an error
 * nothing is open. */
int capacity_figure_open(struct capacity_figure *figure, const char *dir, const char *name,
                         const char *column, struct ifl_error *error);
/* Writes the row of deployment i of the study, from 0. */
void capacity_figure_put(struct capacity_figure *figure, const struct study *study, size_t i,
                         const struct capacity_bar *bar);
/* Closes the data and draws them, the note below the figure. Without gnuplot there is no figure, as
 * ifl_figure says. */
int capacity_figure_draw(struct capacity_figure *figure, const char *note, struct ifl_error *error);

#endif
