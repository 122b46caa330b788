/* What --resume takes of an earlier run: the points of this very study whose files are what they
 * were, flown from inputs that are what they are. */
#ifndef SIM_CLI_RESUME_H
#define SIM_CLI_RESUME_H

#include "inflight/trace.h"

#include "cli/run_files.h"

/* Drops the records of all others, each with a note that says why; on one rank, before any point is
 * flown. Negative only without memory, or where a point has no configuration. */
int resume_check(const struct run_files *files, const struct ifl_notes *notes,
                 struct ifl_error *error);
/* Has this very study been finished here, and none of its inputs changed since? */
bool resume_is_whole(const struct run_files *files, const struct ifl_notes *notes);

#endif
