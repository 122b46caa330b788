/* Checks the files that a command will write into a folder before the first of them is opened:
 * whether they exist, and whether this process has read one of them (inflight/inputs.h). */
#ifndef SIM_BASE_OUTPUTS_H
#define SIM_BASE_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

/* True if one of the files exists. `names` ends with NULL. NAME.tmp, under which a file is written,
 * counts as well. */
bool outputs_exist(const char *dir, const char *const *names);
/* Returns a negative code if this process has read one of the files. */
int outputs_check(const char *dir, const char *const *names, struct ifl_error *error);

#endif
