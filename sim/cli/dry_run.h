/* --dry-run: prints what a study would simulate, how long that takes, and what is assumed. */
#ifndef SIM_CLI_DRY_RUN_H
#define SIM_CLI_DRY_RUN_H

#include "cli/launch.h"

/* Prints on standard output
 *   - the points, or the searches for a capacity;
 *   - what their results rest on: K/V blocks with the arithmetic, deployment, durations without a
 * measurement; what several points share is printed once;
 *   - the keys that have their defaults;
 *   - the processor time, from parts of some points that are simulated for this, without reports.
 *
 * Writes no file. `launch` must be loaded (launch_load). */
int dry_run(struct launch *launch, bool searches);

#endif
