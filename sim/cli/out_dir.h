/* The folder that receives what a command writes. */
#ifndef SIM_CLI_OUT_DIR_H
#define SIM_CLI_OUT_DIR_H

#include "inflight/error.h"

/* Makes it, and the folders above it, where they are not there yet. Negative where that cannot be
 * done, or nothing can be written there. */
int out_dir_make(const char *dir, struct ifl_error *error);

#endif
