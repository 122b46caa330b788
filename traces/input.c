/* Bytes and lines of a trace file, from one buffer. It grows only to hold a long line or a JSON
 * object. So pipes work, and no file is in memory as a whole unless it is one JSON object. */
#include "traces.h"

#include <string.h>

enum { FIRST_CAP = 1 << 16 };

static const char byte_order_mark[] = {'\xef', '\xbb', '\xbf'};

int trace_input_fail_long(const struct trace_input *input, int line, struct ifl_error *error)
{
    return ifl_fail_at(error, input->path, line, 0,
                       "a line or JSON object of more than %zu MiB, expected it within "
                       "workload.max_record_mib (--max-record where there is no configuration)",
                       input->most_bytes >> 20);
}

static int make_room(struct trace_input *input, struct ifl_error *error)
{
    if (input->end - input->begin > input->most_bytes)
        return trace_input_fail_long(input, input->line + 1, error);
    memmove(input->bytes, input->bytes + input->begin, input->end - input->begin);
    input->end -= input->begin;
    input->begin = 0;
    if (input->end < input->cap)
        return 0;
    const size_t cap = 2 * input->cap + FIRST_CAP;
    char *bytes = realloc(input->bytes, cap);
    if (!bytes)
        return ifl_fail_nomem(error);
    input->bytes = bytes;
    input->cap = cap;
    return 0;
}

/* Notes whether the n bytes behind `end` have quotes or NULs. If there are none, cells are not
 * searched for them. */
static void look_at(struct trace_input *input, size_t n)
{
    const char *bytes = input->bytes + input->end;
    input->has_quotes = input->has_quotes || memchr(bytes, '"', n);
    input->has_nuls = input->has_nuls || memchr(bytes, '\0', n);
}

/* Appends to the unread bytes; sets at_end at the end of the file. */
static int fill(struct trace_input *input, struct ifl_error *error)
{
    int rc = make_room(input, error);
    if (rc < 0)
        return rc;
    size_t n;
    rc = ifl_unpack(input->file, input->bytes + input->end, input->cap - input->end, &n, error);
    if (rc < 0)
        return rc;
    look_at(input, n);
    input->end += n;
    input->at_end = n == 0;
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
    *input = (struct trace_input){
        .path = path, .cap = cap, .most_bytes = (size_t)IFL_MAX_RECORD_MIB << 20};
    input->bytes = malloc(cap);
    return input->bytes ? 0 : ifl_fail_nomem(error);
}

int trace_input_open(struct trace_input *input, const char *path, struct ifl_error *error)
{
    int rc = allocate(input, path, FIRST_CAP, error);
    if (rc < 0)
        return rc;
    rc = ifl_unpack_open(path, &input->file, error);
    if (rc == 0)
        rc = drop_byte_order_mark(input, error);
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
    look_at(input, n_bytes);
    input->end = n_bytes;
    input->at_end = true;
    return drop_byte_order_mark(input, error);
}

void trace_input_close(struct trace_input *input)
{
    ifl_unpack_close(input->file);
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
        if ((newline || input->at_end) && *n > input->most_bytes)
            return trace_input_fail_long(input, input->line + 1, error);
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

IFL_HOT int trace_input_peek(struct trace_input *input, const char **text, size_t *n,
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
