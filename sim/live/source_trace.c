#include "live/source_trace.h"

#include <csv.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "live/row_fields.h"

/* abort_s stands in a cell of this width, to be filled in later: readers ignore blanks. */
enum { ABORT_CHARS = 20, FLUSH_BYTES = 1 << 16, MOST_NAME_BYTES = 256 };

static const char header[] = "request_id,arrival_s,prompt_tokens,output_tokens,client,priority,"
                             "max_tokens,samples,model,session,abort_s,token_ids\n";

static int fail_on(const struct source_trace *file, const char *doing, struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_IO, "%s: cannot %s: %s", file->path, doing, strerror(errno));
}

int source_trace_open(struct source_trace *file, const char *path, struct ifl_error *error)
{
    *file = (struct source_trace){.fd = -1, .path = strdup(path)};
    if (!file->path)
        return ifl_fail_nomem(error);
    file->fd = open(path, O_WRONLY | O_CLOEXEC);
    if (file->fd < 0)
        return fail_on(file, "open it for writing", error);
    file->flushed_bytes = sizeof header - 1;
    return lseek(file->fd, 0, SEEK_END) == sizeof header - 1
               ? 0
               : ifl_fail_at(error, path, 0, 0, "is not empty, expected a new recording");
}

int source_trace_make(const char *path, struct ifl_error *error)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return ifl_fail_at(error, path, 0, 0,
                           "is there already, expected a folder without a recording (-o DIR)");
    if (fd < 0)
        return ifl_fail(error, IFL_E_IO, "%s: cannot make it: %s", path, strerror(errno));
    const bool written = write(fd, header, sizeof header - 1) == sizeof header - 1;
    if (close(fd) == 0 && written)
        return 0;
    ifl_fail(error, IFL_E_IO, "%s: cannot write: %s", path, strerror(errno));
    unlink(path);
    return error->code;
}

void source_trace_close(struct source_trace *file)
{
    if (file->path && file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file->buffer);
    *file = (struct source_trace){.fd = -1};
}

/* ---- rows ---- */

static char *room(struct source_trace *file, size_t n, struct ifl_error *error)
{
    if (file->n_bytes + n > file->cap_bytes) {
        const size_t cap = 2 * (file->n_bytes + n);
        if (array_grow(&file->buffer, file->n_bytes, cap, 1) < 0) {
            ifl_fail_nomem(error);
            return NULL;
        }
        file->cap_bytes = cap;
    }
    return file->buffer + file->n_bytes;
}

static char *put_name(char *at, const char *name)
{
    at += csv_write(at, 2 * MOST_NAME_BYTES + 2, name, strnlen(name, MOST_NAME_BYTES));
    *at++ = ',';
    return at;
}

static char *put_tokens(char *at, const struct source_row *row)
{
    for (int32_t i = 0; i < row->n_tokens; i++) {
        at = row_put_digits(at, (uint32_t)row->tokens[i], 1);
        *at++ = i + 1 < row->n_tokens ? ' ' : '\n';
    }
    if (row->n_tokens == 0)
        *at++ = '\n';
    return at;
}

int source_trace_add(struct source_trace *file, const struct source_row *row, uint64_t *abort_at,
                     struct ifl_error *error)
{
    const struct ifl_trace *trace = row->trace;
    const size_t i = row->row;
    const uint32_t model = trace->model[i];
    const size_t most = 512 + 3 * (2 * MOST_NAME_BYTES + 3) + (size_t)row->n_tokens * 11;
    char *const begin = room(file, most, error), *at = begin;
    if (!begin)
        return error->code;
    at = row_put_digits(at, row->request_id, 1);
    *at++ = ',';
    at = row_put_time(at, row->sent_ns);
    at += sprintf(at, ",%" PRId32 ",%" PRId32 ",", trace->n_prompt[i], trace->n_output[i]);
    at = put_name(at, row->client);
    at += sprintf(at, "%" PRId32 ",%" PRId32 ",%" PRId32 ",", trace->priority[i],
                  trace->max_tokens[i], trace->samples[i]);
    at = put_name(at, model > 0 ? trace->model_names[model - 1] : "");
    at = put_name(at, row->session);
    *abort_at = file->flushed_bytes + file->n_bytes + (size_t)(at - begin);
    at += sprintf(at, "%*s,", ABORT_CHARS, "");
    at = put_tokens(at, row);
    file->n_bytes += (size_t)(at - begin);
    return file->n_bytes >= FLUSH_BYTES ? source_trace_flush(file, error) : 0;
}

int source_trace_abort(struct source_trace *file, uint64_t abort_at, int64_t abort_ns,
                       struct ifl_error *error)
{
    char text[2 * ABORT_CHARS], cell[2 * ABORT_CHARS];
    *row_put_time(text, abort_ns) = '\0';
    const int n = snprintf(cell, sizeof cell, "%*s", ABORT_CHARS, text);
    ifl_require(n == ABORT_CHARS);
    if (abort_at >= file->flushed_bytes)
        memcpy(file->buffer + (abort_at - file->flushed_bytes), cell, ABORT_CHARS);
    else if (pwrite(file->fd, cell, ABORT_CHARS, (off_t)abort_at) != ABORT_CHARS)
        return fail_on(file, "write", error);
    return 0;
}

/* What is not a whole row of `done` bytes goes. */
static int end_with_row(struct source_trace *file, size_t done, struct ifl_error *error)
{
    fail_on(file, "write", error);
    while (done > 0 && file->buffer[done - 1] != '\n')
        done--;
    if (ftruncate(file->fd, (off_t)(file->flushed_bytes + done)) < 0)
        fail_on(file, "cut off half a row", error);
    file->n_bytes = 0;
    return error->code;
}

int source_trace_flush(struct source_trace *file, struct ifl_error *error)
{
    for (size_t done = 0; done < file->n_bytes;) {
        const ssize_t n = write(file->fd, file->buffer + done, file->n_bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return end_with_row(file, done, error);
        done += (size_t)n;
    }
    file->flushed_bytes += file->n_bytes;
    file->n_bytes = 0;
    return 0;
}
