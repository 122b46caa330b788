/* The folder that receives what a command writes. */
#ifndef SIM_CLI_OUT_DIR_H
#define SIM_CLI_OUT_DIR_H

#include <stdbool.h>

#include "inflight/error.h"

enum { OUT_DIR_BYTES = 512 };

/* A folder, and which of those on its path were made for it. Zeroed: none was. */
struct out_dir {
    char path[OUT_DIR_BYTES];
    bool made[OUT_DIR_BYTES]; /* [n]: the folder that the first n characters name */
};

/* Makes the folder, and those above it, if they do not exist. Negative if that fails, or if the
 * folder cannot be written to; then none of them is left. */
int out_dir_make(struct out_dir *out, const char *dir, struct ifl_error *error);
/* To be called at the end of the command, however it ends: removes the folders that were made and
 * have stayed empty. */
void out_dir_tidy(struct out_dir *out);

#endif
