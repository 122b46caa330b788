/* The answer of `inflight capacity` with capacity.placement:
 *   candidates.csv   a row for each candidate that was searched, or why it cannot run
 *   placements.csv   a row for each placement of the front, the algorithm's and the chosen one
 *   a table, and a figure of the front. */
#ifndef SIM_CLI_PLACEMENT_FILES_H
#define SIM_CLI_PLACEMENT_FILES_H

#include <stdio.h>

#include "cli/placement_choice.h"

/* rows: one a candidate. The algorithm's placement and the chosen one are flown as a whole at the
 * target, or at what they are said to carry. Where the chosen one misses the objectives then, one
 * replica more is tried. The options give what all flights share; their configs are not read. */
int placement_settle(const struct study *study, const struct capacity_options *options,
                     const struct capacity_row *rows, struct choices *choices,
                     struct ifl_error *error);

int placement_write(const char *dir, const struct study *study, const struct capacity_row *rows,
                    const struct choices *choices, struct ifl_error *error);
void placement_print(FILE *out, const struct study *study, const struct capacity_row *rows,
                     const struct choices *choices);
int placement_draw(const char *dir, const struct study *study, const struct choices *choices,
                   struct ifl_error *error);
/* Negative, with what comes nearest, if there is no placement that was asked for. */
int placement_judge(const struct study *study, const struct capacity_row *rows,
                    const struct choices *choices, struct ifl_error *error);

#endif
