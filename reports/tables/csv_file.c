#include "tables/csv_file.h"

#include <csv.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/inputs.h"
#include "tables/whole_file.h"

#define CHUNK_BYTES ((size_t)1 << 16)
#define MOST_CELL_BYTES ((size_t)1 << 20)

/* libcsv's callbacks cannot stop the parser; the first error is kept here. */
struct reading {
    const char *path;
    const struct csv_taker *taker;
    size_t row, column, n_columns;
    struct ifl_error *error;
    int code;
};

static void take_cell(void *field, size_t n, void *context)
{
    struct reading *reading = context;
    if (reading->code)
        return;
    if (n > 0 && memchr(field, '\0', n)) {
        reading->code =
            ifl_fail_at(reading->error, reading->path, (int)reading->row + 1,
                        (int)reading->column + 1, "a cell with a NUL character, expected text");
        return;
    }
    reading->code = reading->taker->cell(reading->taker->context, reading->row, reading->column,
                                         field ? field : "", n, reading->error);
    reading->column++;
}

static void take_row(int ending, void *context)
{
    (void)ending;
    struct reading *reading = context;
    if (reading->code)
        return;
    if (reading->row == 0)
        reading->n_columns = reading->column;
    if (reading->column != reading->n_columns)
        reading->code = ifl_fail_at(reading->error, reading->path, (int)reading->row + 1, 0,
                                    "%zu fields, expected %zu as in the header", reading->column,
                                    reading->n_columns);
    else
        reading->code = reading->taker->row(reading->taker->context, reading->row, reading->error);
    reading->row++;
    reading->column = 0;
}

/* libcsv puts no limit on the length of a cell; this does. */
static void *grow_cell(void *cell, size_t n)
{
    return n <= MOST_CELL_BYTES ? realloc(cell, n) : NULL;
}

static int fail_csv(const struct reading *reading, struct csv_parser *parser)
{
    const bool too_long = csv_error(parser) == CSV_ENOMEM;
    return ifl_fail_at(reading->error, reading->path, (int)reading->row + 1, 0, "%s",
                       too_long ? "a cell of more than a MiB" : csv_strerror(csv_error(parser)));
}

static int parse(struct reading *reading, FILE *file, struct csv_parser *parser)
{
    char chunk[CHUNK_BYTES];
    for (size_t n; !reading->code && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        if (csv_parse(parser, chunk, n, take_cell, take_row, reading) != n && !reading->code)
            reading->code = fail_csv(reading, parser);
    if (!reading->code && ferror(file))
        reading->code = whole_fail_on(reading->path, "read", reading->error);
    if (!reading->code && csv_fini(parser, take_cell, take_row, reading) && !reading->code)
        reading->code = fail_csv(reading, parser);
    if (!reading->code && reading->row == 0)
        reading->code =
            ifl_fail_at(reading->error, reading->path, 1, 0, "an empty file, expected a header");
    return reading->code;
}

int csv_file_read(const char *path, const struct csv_taker *taker, struct ifl_error *error)
{
    struct reading reading = {.path = path, .taker = taker, .error = error};
    struct csv_parser parser;
    FILE *file = fopen(path, "rb");
    if (!file)
        return ifl_fail_at(error, path, 0, 0, "cannot open: %s", strerror(errno));
    ifl_input_note(path);
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) == 0) {
        csv_set_realloc_func(&parser, grow_cell);
        parse(&reading, file, &parser);
        csv_free(&parser);
    } else {
        reading.code = ifl_fail_nomem(error);
    }
    fclose(file);
    if (reading.code == IFL_E_NOMEM)
        ifl_blame_file(error, path);
    return reading.code;
}
