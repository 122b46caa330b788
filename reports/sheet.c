#include "sheet.h"

#include <csv.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "whole_file.h"

#define CHUNK_BYTES ((size_t)1 << 16)

/* libcsv's callbacks cannot stop the parser, so the first trouble is kept here. */
struct reading {
    struct sheet *sheet;
    size_t n_in_row, n_lines;
    struct ifl_error *error;
    int code;
};

static int grow_text(struct sheet *sheet, size_t n)
{
    if (sheet->cap_bytes - sheet->n_bytes >= n)
        return 0;
    const size_t cap = 2 * (sheet->cap_bytes + n);
    char *text = realloc(sheet->text, cap);
    if (!text)
        return -1;
    sheet->text = text;
    sheet->cap_bytes = cap;
    return 0;
}

static int grow_cells(struct sheet *sheet)
{
    if (sheet->n_cells < sheet->cap_cells)
        return 0;
    const size_t cap = 2 * sheet->cap_cells + 64;
    size_t *cell = realloc(sheet->cell, cap * sizeof *cell);
    if (!cell)
        return -1;
    sheet->cell = cell;
    sheet->cap_cells = cap;
    return 0;
}

static void take_field(void *field, size_t n, void *context)
{
    struct reading *reading = context;
    struct sheet *sheet = reading->sheet;
    if (reading->code)
        return;
    if (grow_text(sheet, n + 1) || grow_cells(sheet)) {
        reading->code = ifl_fail_nomem(reading->error);
        return;
    }
    sheet->cell[sheet->n_cells++] = sheet->n_bytes;
    if (n)
        memcpy(sheet->text + sheet->n_bytes, field, n);
    sheet->text[sheet->n_bytes + n] = '\0';
    sheet->n_bytes += n + 1;
    reading->n_in_row++;
}

static void take_row(int ending, void *context)
{
    (void)ending;
    struct reading *reading = context;
    struct sheet *sheet = reading->sheet;
    if (reading->code)
        return;
    if (reading->n_lines++ == 0)
        sheet->n_columns = reading->n_in_row;
    else
        sheet->n_rows++;
    if (reading->n_in_row != sheet->n_columns)
        reading->code = ifl_fail_at(reading->error, sheet->path, (int)reading->n_lines, 0,
                                    "%zu fields, expected %zu as in the header", reading->n_in_row,
                                    sheet->n_columns);
    reading->n_in_row = 0;
}

static int parse(FILE *file, struct csv_parser *parser, struct reading *reading)
{
    char chunk[CHUNK_BYTES];
    for (size_t n; !reading->code && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        if (csv_parse(parser, chunk, n, take_field, take_row, reading) != n && !reading->code)
            reading->code =
                ifl_fail_at(reading->error, reading->sheet->path, (int)reading->n_lines + 1, 0,
                            "%s", csv_strerror(csv_error(parser)));
    if (!reading->code && ferror(file))
        reading->code = whole_fail_on(reading->sheet->path, "read", reading->error);
    if (!reading->code && csv_fini(parser, take_field, take_row, reading))
        reading->code = ifl_fail_at(reading->error, reading->sheet->path, (int)reading->n_lines + 1,
                                    0, "%s", csv_strerror(csv_error(parser)));
    if (!reading->code && reading->n_lines == 0)
        reading->code = ifl_fail_at(reading->error, reading->sheet->path, 1, 0,
                                    "an empty file, expected a header");
    return reading->code;
}

static int read_open(struct sheet *sheet, FILE *file, struct ifl_error *error)
{
    struct reading reading = {.sheet = sheet, .error = error};
    struct csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI))
        return ifl_fail_nomem(error);
    const int code = parse(file, &parser, &reading);
    csv_free(&parser);
    return code;
}

int sheet_read(struct sheet *sheet, const char *path, struct ifl_error *error)
{
    *sheet = (struct sheet){.path = strdup(path)};
    if (!sheet->path)
        return ifl_fail_nomem(error);
    FILE *file = fopen(path, "rb");
    if (!file) {
        ifl_fail_at(error, path, 0, 0, "cannot open: %s", strerror(errno));
        sheet_free(sheet);
        return error->code;
    }
    const int code = read_open(sheet, file, error);
    fclose(file);
    if (code)
        sheet_free(sheet);
    return code;
}

void sheet_free(struct sheet *sheet)
{
    free(sheet->path);
    free(sheet->text);
    free(sheet->cell);
    *sheet = (struct sheet){0};
}

const char *sheet_header(const struct sheet *sheet, size_t column)
{
    return sheet->text + sheet->cell[column];
}

const char *sheet_cell(const struct sheet *sheet, size_t row, size_t column)
{
    return sheet->text + sheet->cell[(row + 1) * sheet->n_columns + column];
}

size_t sheet_find(const struct sheet *sheet, const char *name)
{
    for (size_t column = 0; column < sheet->n_columns; column++)
        if (strcmp(sheet_header(sheet, column), name) == 0)
            return column;
    return SHEET_NO_COLUMN;
}

int sheet_require(const struct sheet *sheet, const char *name, size_t *column,
                  struct ifl_error *error)
{
    *column = sheet_find(sheet, name);
    return *column == SHEET_NO_COLUMN ? ifl_fail_at(error, sheet->path, 1, 0, "no column %s", name)
                                      : IFL_OK;
}

int sheet_number(const struct sheet *sheet, size_t row, size_t column, double *value,
                 struct ifl_error *error)
{
    const char *text = sheet_cell(sheet, row, column);
    char *end;
    *value = *text ? strtod(text, &end) : (double)NAN;
    if (!*text || (end != text && !*end))
        return IFL_OK;
    return ifl_fail_at(error, sheet->path, (int)row + 2, (int)column + 1,
                       "%s is \"%s\", expected a number", sheet_header(sheet, column), text);
}
