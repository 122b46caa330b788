/* --dry-run: what a study would fly, what that takes, and what is assumed in it. */
#ifndef SIM_CLI_DRY_RUN_H
#define SIM_CLI_DRY_RUN_H

#include "cli/launch.h"

/* Prints on standard output
 *   - the points, or the searches for a capacity;
 *   - what their flights rest on: K/V blocks with the arithmetic, deployment, durations that no
 *     measurement backs; what several points share is said once;
 *   - the keys that are at their defaults;
 *   - the processor time, from parts of some points that are flown for this, without reports.
 * Writes no file. The launch is loaded. */
int dry_run(struct launch *launch, bool searches);

#endif
