#include "tables/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "inflight/inputs.h"
#include "inflight/report.h"

/* The larger a write, the larger the pieces in which the system keeps the file in memory: with a
 * quarter of this a run of a million requests takes 2 to 3 % more processor time. */
#define BUFFER_BYTES ((size_t)1 << 20)

static void forget(struct whole_file *file)
{
    free(file->path);
    free(file->temporary);
    free(file->buffer);
    *file = (struct whole_file){0};
}

static char *temporary_name(const char *path)
{
    const size_t n = strlen(path) + sizeof ".tmp";
    char *name = malloc(n);
    if (name)
        snprintf(name, n, "%s.tmp", path);
    return name;
}

static int make(struct whole_file *file, const char *target, bool in_place, struct ifl_error *error)
{
    *file = (struct whole_file){.path = strdup(target),
                                .temporary = in_place ? NULL : temporary_name(target),
                                .buffer = malloc(BUFFER_BYTES),
                                .cap_bytes = BUFFER_BYTES};
    if (file->path && (in_place || file->temporary) && file->buffer)
        return IFL_OK;
    forget(file);
    return ifl_fail_nomem(error);
}

static int open_as(struct whole_file *file, const char *path, bool grows, struct ifl_error *error)
{
    char target[IFL_PATH_BYTES];
    bool in_place;
    *file = (struct whole_file){0};
    if (ifl_output_find(path, target, sizeof target, &in_place, error) < 0 ||
        make(file, target, in_place || grows, error) < 0)
        return error->code;
    if (file->temporary && ifl_output_check(file->temporary, error) < 0) {
        forget(file);
        return error->code;
    }
    file->grows = grows;
    file->fd = open(file->temporary ? file->temporary : file->path,
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->fd >= 0)
        return IFL_OK;
    whole_fail_on(path, "open it for writing", error);
    forget(file);
    return error->code;
}

int whole_open(struct whole_file *file, const char *path, struct ifl_error *error)
{
    return open_as(file, path, false, error);
}

int whole_open_growing(struct whole_file *file, const char *path, struct ifl_error *error)
{
    return open_as(file, path, true, error);
}

/* Of the buffer, `done` bytes are in the file: what is not a whole line of them goes. */
static void drop_torn_line(struct whole_file *file, size_t done)
{
    while (done > 0 && file->buffer[done - 1] != '\n')
        done--;
    if (file->grows && ftruncate(file->fd, (off_t)(file->flushed_bytes + done)) < 0)
        return; /* the error of the write is told */
}

static int flush(struct whole_file *file, struct ifl_error *error)
{
    for (size_t done = 0; done < file->n_bytes;) {
        const ssize_t n = write(file->fd, file->buffer + done, file->n_bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            whole_fail_on(file->path, "write", error);
            drop_torn_line(file, done);
            file->n_bytes = 0;
            return error->code;
        }
        done += (size_t)n;
    }
    file->flushed_bytes += file->n_bytes;
    file->n_bytes = 0;
    return IFL_OK;
}

int whole_flush(struct whole_file *file, struct ifl_error *error)
{
    return whole_is_open(file) ? flush(file, error) : IFL_OK;
}

static int widen(struct whole_file *file, size_t n, struct ifl_error *error)
{
    char *buffer = realloc(file->buffer, n);
    if (!buffer)
        return ifl_fail_nomem(error);
    file->buffer = buffer;
    file->cap_bytes = n;
    return IFL_OK;
}

IFL_HOT char *whole_room(struct whole_file *file, size_t n, struct ifl_error *error)
{
    if (IFL_RARE(file->cap_bytes - file->n_bytes < n && flush(file, error)))
        return NULL;
    if (IFL_RARE(file->cap_bytes < n && widen(file, n, error)))
        return NULL;
    return file->buffer + file->n_bytes;
}

void whole_commit(struct whole_file *file, const char *end)
{
    ifl_assert(!file->buffer ||
               (end >= file->buffer + file->n_bytes && end <= file->buffer + file->cap_bytes));
    file->n_bytes = (size_t)(end - file->buffer);
}

int whole_write(struct whole_file *file, const char *text, struct ifl_error *error)
{
    char *at = whole_room(file, strlen(text) + 1, error);
    if (!at)
        return error->code;
    whole_commit(file, stpcpy(at, text));
    return IFL_OK;
}

int whole_close(struct whole_file *file, struct ifl_error *error)
{
    if (!whole_is_open(file))
        return IFL_OK;
    int code = flush(file, error);
    if (close(file->fd) && !code)
        code = whole_fail_on(file->path, "write", error);
    free(file->buffer);
    file->buffer = NULL;
    return code;
}

int whole_publish(struct whole_file *file, struct ifl_error *error)
{
    if (!file->temporary) {
        forget(file);
        return IFL_OK;
    }
    if (ifl_output_check(file->path, error)) /* it may have been read since */
        return error->code;
    if (rename(file->temporary, file->path))
        return whole_fail_on(file->path, "give the finished file its name", error);
    forget(file);
    return IFL_OK;
}

void whole_discard(struct whole_file *file)
{
    if (whole_is_open(file))
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    forget(file);
}

int whole_finish(struct whole_file *file, int code, struct ifl_error *error)
{
    if (!code)
        code = whole_close(file, error);
    if (!code)
        code = whole_publish(file, error);
    if (code)
        whole_discard(file);
    return code;
}
