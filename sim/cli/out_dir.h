/* The folder that receives what a command writes. */
#ifndef SIM_CLI_OUT_DIR_H
#define SIM_CLI_OUT_DIR_H

#include <stdbool.h>

#include "inflight/error.h"

enum { OUT_DIR_BYTES = 512 };

/* A folder, and which folders on its path were created for it. Zeroed: none. */
struct out_dir {
    char path[OUT_DIR_BYTES];
    bool made[OUT_DIR_BYTES]; /* made[n]: the folder named by the first n characters was created */
};

/* Creates the folder and its parents if they do not exist. Returns a negative code if that fails or
 * if the folder is not writable; then no created folder is left. */
int out_dir_make(struct out_dir *out, const char *dir, struct ifl_error *error);
/* Removes the folders that were created and are still empty. Call it at the end of the command,
 * also after an error. */
void out_dir_tidy(struct out_dir *out);

#endif
