/* The folder that receives what a command writes. */
#ifndef SIM_CLI_OUT_DIR_H
#define SIM_CLI_OUT_DIR_H

#include "inflight/error.h"

/* Makes the folder, and those above it, if they do not exist. Negative if that fails, or if the
 * folder cannot be written to. */
int out_dir_make(const char *dir, struct ifl_error *error);

#endif
