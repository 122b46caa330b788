/* The files that this process has read, none of which its outputs may replace.
 *
 * What opens a file that the user named, or that such a file names, notes it; what is about to
 * open, rename or remove a file of an output asks. Files are told apart by device and inode, so
 * that links and other spellings of a path are seen. What the process writes for itself and reads
 * again is not noted. Any thread may call both. */
#ifndef INFLIGHT_INPUTS_H
#define INFLIGHT_INPUTS_H

#include "inflight/error.h"

/* Notes a regular file; anything else, or nothing of that name, has no content to lose. Of a file
 * that is noted twice the first path is kept. Without memory the file is not noted. */
void ifl_input_note(const char *path);

/* 0 if an output may take this path: there is no file, or none that was noted. Otherwise
 * IFL_E_INPUT and a line with both paths. */
int ifl_output_check(const char *path, struct ifl_error *error);

#endif
