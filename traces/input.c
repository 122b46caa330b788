/* Bytes and lines of a trace file. One buffer serves both; it grows only to hold a long line, so
 * pipes work and no file but one JSON object is in memory as a whole. */
#include "traces.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { FIRST_CAP = 1 << 16 };

static const char byte_order_mark[] = {'\xef', '\xbb', '\xbf'};

static int fail_read(const struct trace_input *input, struct ifl_error *error)
{
    int code;
    const char *text = gzerror(input->file, &code);
    if (code == Z_BUF_ERROR)
        return ifl_fail_at(error, input->path, 0, 0,
                           "the gzip stream is cut short, expected a complete file");
    if (code == Z_ERRNO)
        return ifl_fail_at(error, input->path, 0, 0, "cannot read: %s", strerror(errno));
    return ifl_fail_at(error, input->path, 0, 0, "cannot decompress: %s", text);
}

static int make_room(struct trace_input *input, struct ifl_error *error)
{
    memmove(input->bytes, input->bytes + input->begin, input->end - input->begin);
    input->end -= input->begin;
    input->begin = 0;
    if (input->end < input->cap)
        return 0;
    char *bytes = realloc(input->bytes, 2 * input->cap);
    if (!bytes)
        return ifl_fail_nomem(error);
    input->bytes = bytes;
    input->cap *= 2;
    return 0;
}

/* Among the n bytes behind the end. */
static void note_quotes(struct trace_input *input, size_t n)
{
    input->has_quotes = input->has_quotes || memchr(input->bytes + input->end, '"', n);
}

/* Appends to the unread bytes; sets at_end where nothing comes. */
static int fill(struct trace_input *input, struct ifl_error *error)
{
    const int rc = make_room(input, error);
    if (rc < 0)
        return rc;
    const size_t room = input->cap - input->end;
    const unsigned wanted = room < INT_MAX ? (unsigned)room : INT_MAX;
    const int got = gzread(input->file, input->bytes + input->end, wanted);
    int code;
    gzerror(input->file, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
        return fail_read(input, error);
    note_quotes(input, (size_t)got);
    input->end += (size_t)got;
    input->at_end = got == 0;
    return 0;
}

static int drop_byte_order_mark(struct trace_input *input, struct ifl_error *error)
{
    while (!input->at_end && input->end < sizeof byte_order_mark) {
        const int rc = fill(input, error);
        if (rc < 0)
            return rc;
    }
    if (input->end >= sizeof byte_order_mark &&
        memcmp(input->bytes, byte_order_mark, sizeof byte_order_mark) == 0)
        input->begin = sizeof byte_order_mark;
    return 0;
}

static int allocate(struct trace_input *input, const char *path, size_t cap,
                    struct ifl_error *error)
{
    *input = (struct trace_input){.path = path, .cap = cap};
    input->bytes = malloc(cap);
    return input->bytes ? 0 : ifl_fail_nomem(error);
}

int trace_input_open(struct trace_input *input, const char *path, struct ifl_error *error)
{
    int rc = allocate(input, path, FIRST_CAP, error);
    if (rc < 0)
        return rc;
    errno = 0;
    input->file = gzopen(path, "rb");
    if (!input->file) {
        rc = errno ? ifl_fail_at(error, path, 0, 0, "cannot open: %s", strerror(errno))
                   : ifl_fail_nomem(error);
    } else {
        gzbuffer(input->file, FIRST_CAP);
        rc = drop_byte_order_mark(input, error);
    }
    if (rc < 0)
        trace_input_close(input);
    return rc;
}

int trace_input_open_memory(struct trace_input *input, const char *path, const void *bytes,
                            size_t n_bytes, struct ifl_error *error)
{
    const int rc = allocate(input, path, n_bytes + 1, error);
    if (rc < 0)
        return rc;
    if (n_bytes > 0)
        memcpy(input->bytes, bytes, n_bytes);
    note_quotes(input, n_bytes);
    input->end = n_bytes;
    input->at_end = true;
    return drop_byte_order_mark(input, error);
}

void trace_input_close(struct trace_input *input)
{
    if (input->file)
        gzclose(input->file);
    free(input->bytes);
    *input = (struct trace_input){0};
}

/* 1: the unread bytes begin with a line of *n bytes. 0: there are none. */
static int find_line(struct trace_input *input, size_t *n, struct ifl_error *error)
{
    for (;;) {
        const char *begin = input->bytes + input->begin;
        const size_t unread = input->end - input->begin;
        const char *newline = memchr(begin, '\n', unread);
        *n = newline ? (size_t)(newline - begin) + 1 : unread;
        if (newline || input->at_end)
            return *n > 0;
        const int rc = fill(input, error);
        if (rc < 0)
            return rc;
    }
}

static bool blank(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n'))
        i++;
    return i == n;
}

int trace_input_peek(struct trace_input *input, const char **text, size_t *n,
                     struct ifl_error *error)
{
    int rc;
    while ((rc = find_line(input, n, error)) > 0) {
        *text = input->bytes + input->begin;
        if (!blank(*text, *n))
            break;
        input->begin += *n;
        input->line++;
    }
    return rc;
}

int trace_input_peek_all(struct trace_input *input, const char **text, size_t *n,
                         struct ifl_error *error)
{
    while (!input->at_end) {
        const int rc = fill(input, error);
        if (rc < 0)
            return rc;
    }
    *text = input->bytes + input->begin;
    *n = input->end - input->begin;
    return *n > 0;
}

int trace_input_line(struct trace_input *input, const char **text, size_t *n,
                     struct ifl_error *error)
{
    const int rc = trace_input_peek(input, text, n, error);
    if (rc > 0) {
        input->begin += *n;
        input->line++;
    }
    return rc;
}

int trace_input_first(struct trace_input *input, char *byte, struct ifl_error *error)
{
    int rc;
    while ((rc = trace_input_byte(input, byte, error)) > 0) {
        if (!blank(byte, 1)) {
            input->begin--;
            break;
        }
        input->line += *byte == '\n';
    }
    return rc;
}

int trace_input_byte(struct trace_input *input, char *byte, struct ifl_error *error)
{
    while (input->begin == input->end) {
        const int rc = input->at_end ? 0 : fill(input, error);
        if (rc < 0 || input->at_end)
            return rc;
    }
    *byte = input->bytes[input->begin++];
    return 1;
}
