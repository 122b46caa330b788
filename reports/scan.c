#include "scan.h"

#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "whole_file.h"

#define CHUNK_BYTES ((size_t)1 << 16)

struct scan {
    const char *path;
    const char *const *names; /* [n_wanted] */
    size_t n_wanted;
    int *wanted_at; /* [n_columns] the place in `value` of each of the file's columns, or -1 */
    size_t n_columns, column, line;
    double value[SCAN_MAX_COLUMNS];
    scan_row_fn *take;
    void *context;
    struct ifl_error *error;
    int code; /* libcsv's callbacks cannot stop the parser: the first trouble is kept */
};

static int place_of(const struct scan *scan, const char *text, size_t n)
{
    for (size_t i = 0; i < scan->n_wanted; i++)
        if (strlen(scan->names[i]) == n && memcmp(scan->names[i], text, n) == 0)
            return (int)i;
    return -1;
}

static void take_title(struct scan *scan, const char *text, size_t n)
{
    int *wanted_at = realloc(scan->wanted_at, (scan->n_columns + 1) * sizeof *wanted_at);
    if (!wanted_at) {
        scan->code = ifl_fail_nomem(scan->error);
        return;
    }
    scan->wanted_at = wanted_at;
    wanted_at[scan->n_columns++] = place_of(scan, text, n);
}

static void take_number(struct scan *scan, const char *text, size_t n, int place)
{
    char number[64], *end;
    const size_t n_kept = n < sizeof number - 1 ? n : sizeof number - 1;
    memcpy(number, text, n_kept);
    number[n_kept] = '\0';
    scan->value[place] = n ? strtod(number, &end) : (double)NAN;
    if (n && (end == number || *end || n > n_kept))
        scan->code =
            ifl_fail_at(scan->error, scan->path, (int)scan->line + 1, (int)scan->column + 1,
                        "%s is \"%s\", expected a number", scan->names[place], number);
}

static void take_field(void *field, size_t n, void *context)
{
    struct scan *scan = context;
    if (scan->code)
        return;
    if (scan->line == 0)
        take_title(scan, field ? field : "", n);
    else if (scan->column < scan->n_columns && scan->wanted_at[scan->column] >= 0)
        take_number(scan, field ? field : "", n, scan->wanted_at[scan->column]);
    scan->column++;
}

static int check_titles(const struct scan *scan)
{
    for (size_t i = 0; i < scan->n_wanted; i++) {
        bool found = false;
        for (size_t c = 0; c < scan->n_columns; c++)
            found |= scan->wanted_at[c] == (int)i;
        if (!found)
            return ifl_fail_at(scan->error, scan->path, 1, 0, "no column %s", scan->names[i]);
    }
    return IFL_OK;
}

static void take_row(int ending, void *context)
{
    (void)ending;
    struct scan *scan = context;
    if (scan->code)
        return;
    if (scan->column != scan->n_columns)
        scan->code =
            ifl_fail_at(scan->error, scan->path, (int)scan->line + 1, 0,
                        "%zu fields, expected %zu as in the header", scan->column, scan->n_columns);
    else if (scan->line == 0)
        scan->code = check_titles(scan);
    else
        scan->code = scan->take(scan->context, scan->value, scan->error);
    scan->line++;
    scan->column = 0;
}

static int parse(struct scan *scan, FILE *file, struct csv_parser *parser)
{
    char chunk[CHUNK_BYTES];
    for (size_t n; !scan->code && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        if (csv_parse(parser, chunk, n, take_field, take_row, scan) != n && !scan->code)
            scan->code = ifl_fail_at(scan->error, scan->path, (int)scan->line + 1, 0, "%s",
                                     csv_strerror(csv_error(parser)));
    if (!scan->code && ferror(file))
        scan->code = whole_fail_on(scan->path, "read", scan->error);
    if (!scan->code && csv_fini(parser, take_field, take_row, scan))
        scan->code = ifl_fail_at(scan->error, scan->path, (int)scan->line + 1, 0, "%s",
                                 csv_strerror(csv_error(parser)));
    if (!scan->code && scan->line == 0)
        scan->code = ifl_fail_at(scan->error, scan->path, 1, 0, "an empty file, expected a header");
    return scan->code;
}

static int scan_open(struct scan *scan, FILE *file)
{
    struct csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI))
        return ifl_fail_nomem(scan->error);
    const int code = parse(scan, file, &parser);
    csv_free(&parser);
    free(scan->wanted_at);
    return code;
}

int scan_csv(const char *path, size_t n, const char *const *names, scan_row_fn *take, void *context,
             struct ifl_error *error)
{
    struct scan scan = {.path = path,
                        .names = names,
                        .n_wanted = n,
                        .take = take,
                        .context = context,
                        .error = error};
    ifl_require(n <= SCAN_MAX_COLUMNS);
    FILE *file = fopen(path, "rb");
    if (!file)
        return ifl_fail_at(error, path, 0, 0, "cannot open: %s", strerror(errno));
    const int code = scan_open(&scan, file);
    fclose(file);
    return code;
}
