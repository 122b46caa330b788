/* A file that appears under its name only when it is complete.
 *
 * It is written as PATH.tmp. whole_close flushes it and checks that every byte was written,
 * whole_publish gives it its name, whole_discard closes and removes an unpublished file. A zeroed
 * struct is a valid closed file, on which every function except whole_open does nothing.
 *
 * A file opened by whole_open_growing has its name from the beginning, and keeps it: whole_flush
 * adds what was committed, whole_discard closes it. If the disk is full, it ends with the last line
 * that fits.
 *
 * If PATH is a symbolic link, its target is written. A device or FIFO is written as it is.
 *
 * A file that was read (inflight/inputs.h) is not replaced: whole_open refuses. */
#ifndef INFLIGHT_REPORTS_WHOLE_FILE_H
#define INFLIGHT_REPORTS_WHOLE_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "inflight/error.h"

struct whole_file {
    char *path, *temporary; /* owned; NULL when there is nothing on disk to publish or discard.
                             * temporary NULL: the file is written under its name */
    char *buffer;           /* [cap_bytes], owned; NULL when closed */
    size_t n_bytes, cap_bytes;
    uint64_t flushed_bytes;
    int fd;
    bool grows; /* opened by whole_open_growing */
};

int whole_open(struct whole_file *file, const char *path, struct ifl_error *error);
int whole_open_growing(struct whole_file *file, const char *path, struct ifl_error *error);
int whole_flush(struct whole_file *file, struct ifl_error *error);
/* Returns room for n bytes at the end of the file, NULL on an error; whole_commit keeps the bytes
 * up to `end`. */
char *whole_room(struct whole_file *file, size_t n, struct ifl_error *error);
void whole_commit(struct whole_file *file, const char *end);
int whole_write(struct whole_file *file, const char *text, struct ifl_error *error);
int whole_close(struct whole_file *file, struct ifl_error *error);
int whole_publish(struct whole_file *file, struct ifl_error *error);
void whole_discard(struct whole_file *file);
/* Closes and publishes if code is 0, discards otherwise. Returns the first error, or 0. */
int whole_finish(struct whole_file *file, int code, struct ifl_error *error);

/* Fails with IFL_E_IO and the text "PATH: cannot DOING: " followed by the meaning of errno. */
static inline int whole_fail_on(const char *path, const char *doing, struct ifl_error *error)
{
    (void)ifl_fail(error, IFL_E_IO, "%s: cannot %s: %s", path, doing, strerror(errno));
    return IFL_E_IO;
}

static inline bool whole_is_open(const struct whole_file *file)
{
    return file->buffer != NULL;
}

static inline bool whole_grows(const struct whole_file *file)
{
    return whole_is_open(file) && file->grows;
}

#endif
