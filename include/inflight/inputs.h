/* The files that this process has read: its outputs must not replace them.
 *
 * Code that opens a file that the user named, or that such a file names, calls ifl_input_note. Code
 * that is about to open, rename or remove an output file calls ifl_output_check. Files are
 * identified by device and inode, so that links and other spellings of a path are recognised. Files
 * that the process writes for itself and reads again are not noted. Any thread may call both. */
#ifndef INFLIGHT_INPUTS_H
#define INFLIGHT_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

/* Notes a regular file, and ignores other kinds of files and missing ones, which have no content to
 * lose. If a file is noted twice, the first path is kept. Without memory the file is not noted. */
void ifl_input_note(const char *path);

/* Returns 0 if an output may have this path: there is no file, or it was not noted. Otherwise
 * IFL_E_INPUT and a line with both paths. */
int ifl_output_check(const char *path, struct ifl_error *error);

/* Finds where an output with this path is written, before it is opened. A symbolic link leads to
 * its target, which may be missing: a file that is to replace it is renamed over `target`, of
 * n_bytes at most, and the link stays. in_place: a device or FIFO, or in /dev or /proc; it is
 * opened and written as it is, and nothing is renamed over it. IFL_E_INPUT if it is a directory, a
 * socket or an input, or a path is too long. */
int ifl_output_find(const char *path, char *target, size_t n_bytes, bool *in_place,
                    struct ifl_error *error);

#endif
