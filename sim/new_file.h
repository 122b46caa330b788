/* A file that appears under its name only when it is whole: written as PATH.tmp, then renamed. */
#ifndef SIM_NEW_FILE_H
#define SIM_NEW_FILE_H

#include <stdio.h>

#include "inflight/error.h"

struct new_file {
    FILE *out;
    char path[512], temporary[520];
};

int new_file_open(struct new_file *file, const char *path, struct ifl_error *error);
/* Gives the file its name if `code` is 0 and all was taken, else removes it. Returns `code`, or
 * what went wrong last. */
int new_file_close(struct new_file *file, int code, struct ifl_error *error);

#endif
