/* The files that a command will write into a folder, checked before the first of them is opened: do
 * they exist, and has this process read one of them (inflight/inputs.h)? */
#ifndef SIM_BASE_OUTPUTS_H
#define SIM_BASE_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

/* Names end with NULL. NAME.tmp, under which a file is written, counts as well. */
bool outputs_exist(const char *dir, const char *const *names);
/* Negative if one of them was read. */
int outputs_check(const char *dir, const char *const *names, struct ifl_error *error);

#endif
