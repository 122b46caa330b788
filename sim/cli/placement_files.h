/* The answer of `inflight capacity` with capacity.placement:
 *   candidates.csv   a row for each candidate that was searched, or why it cannot run
 *   placements.csv   a row for each placement of the front, the algorithm's and the chosen one
 *   a table, and a figure of the front. */
#ifndef SIM_CLI_PLACEMENT_FILES_H
#define SIM_CLI_PLACEMENT_FILES_H

#include <stdio.h>

#include "cli/placement_choice.h"

/* Simulates the algorithm's placement and the chosen one as a whole, at the target, or at the rate
 * that they should serve. If the chosen one misses the objectives, one replica more is tried. rows:
 * one per candidate. The options give what all simulations share; their configs are not read. */
int placement_settle(const struct study *study, const struct capacity_options *options,
                     const struct capacity_row *rows, struct choices *choices,
                     struct ifl_error *error);

int placement_write(const char *dir, const struct study *study, const struct capacity_row *rows,
                    const struct choices *choices, struct ifl_error *error);
void placement_print(FILE *out, const struct study *study, const struct capacity_row *rows,
                     const struct choices *choices);
int placement_draw(const char *dir, const struct study *study, const struct choices *choices,
                   struct ifl_error *error);
/* Returns a negative code, naming the nearest placement, if none is as asked for. */
int placement_judge(const struct study *study, const struct capacity_row *rows,
                    const struct choices *choices, struct ifl_error *error);

#endif
