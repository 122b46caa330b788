/* Files that are read as a whole, such as configurations and checkpoints.
 *
 * A path may name a pipe, which may block for ever, or a device, which may never end: both are
 * refused before anything is read. The header needs POSIX.1-2008: with -std=c17 define
 * _POSIX_C_SOURCE as 200809L. */
#ifndef INFLIGHT_REGULAR_FILE_H
#define INFLIGHT_REGULAR_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inflight/error.h"

/* Opens a regular file of at most max_bytes for reading, from its beginning. Returns a descriptor,
 * 0 or more, which the caller closes, and sets *n_bytes, unless NULL, to the file's size. Any
 * failure returns IFL_E_INPUT and leaves *n_bytes as it was; `expected` says in its line what the
 * file should be, such as "a JSON object". */
static inline int ifl_open_regular(const char *path, int64_t max_bytes, const char *expected,
                                   int64_t *n_bytes, struct ifl_error *error)
{
    struct stat status = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = 0;
    if (fd < 0 || fstat(fd, &status) < 0)
        rc = ifl_fail_at(error, path, 0, 0, "cannot be opened: %s, expected %s", strerror(errno),
                         expected);
    else if (!S_ISREG(status.st_mode))
        rc = ifl_fail_at(error, path, 0, 0, "not a regular file, expected %s", expected);
    else if (status.st_size > max_bytes)
        rc = ifl_fail_at(error, path, 0, 0, "%lld bytes, expected %s of at most %lld",
                         (long long)status.st_size, expected, (long long)max_bytes);
    if (rc == 0 && n_bytes)
        *n_bytes = status.st_size;
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

#endif
