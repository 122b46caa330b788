#include <stdio.h>

#include "inflight/report.h"
#include "whole_file.h"

#define CHUNK_BYTES ((size_t)1 << 18)

/* The points share their columns, so one header speaks for all. */
static void skip_header(FILE *part)
{
    for (int c = getc(part); c != EOF && c != '\n'; c = getc(part))
        continue;
}

static int append_rest(struct whole_file *whole, FILE *part, const char *path,
                       struct ifl_error *error)
{
    size_t n = 1;
    while (n > 0) {
        char *at = whole_room(whole, CHUNK_BYTES, error);
        if (!at)
            return error->code;
        n = fread(at, 1, CHUNK_BYTES, part);
        whole_commit(whole, at + n);
    }
    return ferror(part) ? whole_fail_on(path, "read", error) : IFL_OK;
}

static int append(struct whole_file *whole, const char *path, bool with_header,
                  struct ifl_error *error)
{
    FILE *part = fopen(path, "rb");
    if (!part)
        return whole_fail_on(path, "open", error);
    if (!with_header)
        skip_header(part);
    const int code = append_rest(whole, part, path, error);
    fclose(part);
    return code;
}

static int publish(struct whole_file *whole, struct ifl_error *error)
{
    return whole_close(whole, error) || whole_publish(whole, error) ? error->code : IFL_OK;
}

static int append_tables(struct whole_file *whole, const struct ifl_parts *parts,
                         struct ifl_error *error)
{
    char part[IFL_PATH_BYTES];
    bool first = true;
    int code = IFL_OK;
    for (size_t i = 0; i < parts->n && !code; i++) {
        if (!parts->path(parts->context, i, part))
            continue;
        code = append(whole, part, first, error);
        first = false;
    }
    return code;
}

int ifl_join_csv(const char *path, const struct ifl_parts *parts, struct ifl_error *error)
{
    char part[IFL_PATH_BYTES];
    if (parts->n == 1 && parts->path(parts->context, 0, part))
        return rename(part, path) ? whole_fail_on(part, "rename", error) : IFL_OK;
    struct whole_file whole;
    if (whole_open(&whole, path, error))
        return error->code;
    int code = append_tables(&whole, parts, error);
    if (!code)
        code = publish(&whole, error);
    whole_discard(&whole);
    return code;
}

static int append_events(struct whole_file *whole, const struct ifl_parts *parts,
                         struct ifl_error *error)
{
    char part[IFL_PATH_BYTES];
    const char *between = "[\n";
    int code = IFL_OK;
    for (size_t i = 0; i < parts->n && !code; i++) {
        if (!parts->path(parts->context, i, part))
            continue;
        code = whole_write(whole, between, error);
        if (!code)
            code = append(whole, part, true, error);
        between = ",\n";
    }
    return code ? code : whole_write(whole, "\n]\n", error);
}

int ifl_join_timeline(const char *path, const struct ifl_parts *parts, struct ifl_error *error)
{
    struct whole_file whole;
    if (whole_open(&whole, path, error))
        return error->code;
    int code = append_events(&whole, parts, error);
    if (!code)
        code = publish(&whole, error);
    whole_discard(&whole);
    return code;
}
