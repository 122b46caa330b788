#include "live/replay_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "inflight/time.h"

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

/* ---- fields ---- */

static char *put_digits(char *at, uint64_t value, int least)
{
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || n < least);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

char *replay_put_whole(char *at, int64_t value)
{
    if (value < 0)
        *at++ = '-';
    at = put_digits(at, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
    *at++ = ',';
    return at;
}

char *replay_put_count(char *at, int64_t value)
{
    if (value >= 0)
        return replay_put_whole(at, value);
    *at++ = ',';
    return at;
}

char *replay_put_seconds(char *at, int64_t ns)
{
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    if (ns != IFL_NEVER) {
        if (ns < 0)
            *at++ = '-';
        at = put_digits(at, size / IFL_NS_PER_S, 1);
        *at++ = '.';
        at = put_digits(at, size % IFL_NS_PER_S, 9);
    }
    *at++ = ',';
    return at;
}

char *replay_put_text(char *at, const char *text)
{
    const bool quotes = strpbrk(text, ",\"\n\r") != NULL;
    if (quotes)
        *at++ = '"';
    for (; *text; text++) {
        if (*text == '"')
            *at++ = '"';
        *at++ = *text;
    }
    if (quotes)
        *at++ = '"';
    *at++ = ',';
    return at;
}

char *replay_put_end(char *at)
{
    at[-1] = '\n';
    return at;
}
