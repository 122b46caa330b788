#include "live/replay_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "inflight/inputs.h"

static int fail(const struct replay_rows *rows, const char *what, struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_IO, "%s: %s: %s; the rows before are there", rows->path, what,
                    strerror(errno));
}

int replay_rows_open(struct replay_rows *rows, const char *path, const char *header,
                     struct ifl_error *error)
{
    rows->n = 0;
    rows->n_written = 0;
    snprintf(rows->path, sizeof rows->path, "%s", path);
    if (ifl_output_check(path, error))
        return error->code;
    rows->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (rows->fd < 0)
        return ifl_fail_at(error, path, 0, 0, "cannot write: %s", strerror(errno));
    rows->n = strlen(header);
    memcpy(rows->bytes, header, rows->n);
    return replay_rows_flush(rows, error);
}

/* Of the first n bytes, those in whole rows. */
static size_t whole_rows(const char *bytes, size_t n)
{
    while (n > 0 && bytes[n - 1] != '\n')
        n--;
    return n;
}

int replay_rows_flush(struct replay_rows *rows, struct ifl_error *error)
{
    size_t at = 0;
    while (at < rows->n) {
        const ssize_t n = write(rows->fd, rows->bytes + at, rows->n - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            const int why = errno;
            const size_t whole = whole_rows(rows->bytes, at);
            const bool is_cut =
                whole == at || ftruncate(rows->fd, rows->n_written + (off_t)whole) == 0;
            rows->n = 0;
            errno = why;
            return fail(rows, is_cut ? "cannot write" : "cannot write all of a row", error);
        }
        at += (size_t)n;
    }
    rows->n_written += (int64_t)rows->n;
    rows->n = 0;
    return 0;
}

char *replay_rows_room(struct replay_rows *rows, size_t n_bytes, struct ifl_error *error)
{
    ifl_require(n_bytes <= REPLAY_ROWS_BYTES / 2);
    if (rows->n + n_bytes > REPLAY_ROWS_BYTES && replay_rows_flush(rows, error) < 0)
        return NULL;
    return rows->bytes + rows->n;
}

int replay_rows_close(struct replay_rows *rows, int code, struct ifl_error *error)
{
    if (rows->fd < 0)
        return code;
    struct ifl_error late;
    int rc = replay_rows_flush(rows, &late);
    if (close(rows->fd) < 0 && rc == 0)
        rc = fail(rows, "cannot write", &late);
    rows->fd = -1;
    if (code == 0 && rc < 0)
        *error = late;
    return code < 0 ? code : rc;
}
