#include <unistd.h>

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

static int rename_only(const char *from, const char *to, struct ifl_error *error)
{
    return rename(from, to) ? whole_fail_on(from, "rename", error) : IFL_OK;
}

/* Gives the file its name; then its parts have served. */
static int publish(struct whole_file *whole, size_t n, const char *const *parts,
                   struct ifl_error *error)
{
    if (whole_close(whole, error) || whole_publish(whole, error))
        return error->code;
    for (size_t i = 0; i < n; i++)
        unlink(parts[i]);
    return IFL_OK;
}

int ifl_join_csv(const char *path, size_t n, const char *const *parts, struct ifl_error *error)
{
    if (n == 1)
        return rename_only(parts[0], path, error);
    struct whole_file whole;
    if (whole_open(&whole, path, error))
        return error->code;
    int code = IFL_OK;
    for (size_t i = 0; i < n && !code; i++)
        code = append(&whole, parts[i], i == 0, error);
    if (!code)
        code = publish(&whole, n, parts, error);
    whole_discard(&whole);
    return code;
}

int ifl_join_timeline(const char *path, size_t n, const char *const *parts, struct ifl_error *error)
{
    struct whole_file whole;
    if (whole_open(&whole, path, error))
        return error->code;
    int code = whole_write(&whole, "[\n", error);
    for (size_t i = 0; i < n && !code; i++) {
        code = append(&whole, parts[i], true, error);
        if (!code)
            code = whole_write(&whole, i + 1 < n ? ",\n" : "\n]\n", error);
    }
    if (!code)
        code = publish(&whole, n, parts, error);
    whole_discard(&whole);
    return code;
}
