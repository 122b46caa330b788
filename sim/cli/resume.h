/* What --resume keeps of an earlier run. A point is kept if
 *   - its record is of this study;
 *   - its files have not changed since they were written;
 *   - its inputs have not changed since it was simulated. */
#ifndef SIM_CLI_RESUME_H
#define SIM_CLI_RESUME_H

#include "inflight/trace.h"

#include "cli/run_files.h"

/* Drops the records of all other points, each with a note that says why. Call it on one rank,
 * before any point is simulated. Returns a negative code only if memory is short, or if a point's
 * configuration cannot be read. */
int resume_check(const struct run_files *files, const struct ifl_notes *notes,
                 struct ifl_error *error);
/* True if this study has been finished here and none of its inputs has changed since. */
bool resume_is_whole(const struct run_files *files, const struct ifl_notes *notes);

#endif
