/* A file that gets its name only when it is complete: it is written as PATH.tmp, then renamed. If
 * PATH is a symbolic link, its target is written in this way. Devices, FIFOs and all files in /dev
 * are written directly. A file that this process has read (inflight/inputs.h) is not replaced. */
#ifndef SIM_BASE_NEW_FILE_H
#define SIM_BASE_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "inflight/error.h"
#include "inflight/report.h"

struct new_file {
    FILE *out;
    bool in_place;
    char path[IFL_PATH_BYTES];   /* as given by the caller */
    char target[IFL_PATH_BYTES]; /* with symbolic links resolved */
    char temporary[IFL_PATH_BYTES + 8];
};

int new_file_open(struct new_file *file, const char *path, struct ifl_error *error);
/* Gives the file its name if `code` is 0 and all was written, else removes it. Returns `code`, or
 * the code of the last error. */
int new_file_close(struct new_file *file, int code, struct ifl_error *error);

#endif
