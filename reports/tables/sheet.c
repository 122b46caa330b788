#include "tables/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/csv_file.h"

static int grow_text(struct sheet *sheet, size_t n)
{
    if (sheet->cap_bytes - sheet->n_bytes >= n)
        return 0;
    const size_t cap = 2 * (sheet->cap_bytes + n);
    char *text = realloc(sheet->text, cap);
    if (!text)
        return IFL_E_NOMEM;
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
        return IFL_E_NOMEM;
    sheet->cell = cell;
    sheet->cap_cells = cap;
    return 0;
}

static int take_cell(void *context, size_t row, size_t column, const char *text, size_t n,
                     struct ifl_error *error)
{
    (void)row;
    (void)column;
    struct sheet *sheet = context;
    if (grow_text(sheet, n + 1) || grow_cells(sheet))
        return ifl_fail_nomem(error);
    sheet->cell[sheet->n_cells++] = sheet->n_bytes;
    memcpy(sheet->text + sheet->n_bytes, text, n);
    sheet->text[sheet->n_bytes + n] = '\0';
    sheet->n_bytes += n + 1;
    return IFL_OK;
}

static int take_row(void *context, size_t row, struct ifl_error *error)
{
    (void)error;
    struct sheet *sheet = context;
    sheet->n_rows = row;
    if (row == 0)
        sheet->n_columns = sheet->n_cells;
    return IFL_OK;
}

int sheet_read(struct sheet *sheet, const char *path, struct ifl_error *error)
{
    const struct csv_taker taker = {take_cell, take_row, sheet};
    *sheet = (struct sheet){.path = strdup(path)};
    if (!sheet->path)
        return ifl_fail_nomem(error);
    const int code = csv_file_read(path, &taker, error);
    if (code)
        sheet_free(sheet);
    return code;
}

int sheet_read_points(struct sheet *sheet, const char *path, struct ifl_error *error)
{
    const int rc = sheet_read(sheet, path, error);
    if (rc < 0 || sheet->n_rows > 0)
        return rc;
    sheet_free(sheet);
    return ifl_fail_at(error, path, 0, 0, "there is no row of a point, expected at least one");
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
    ifl_assert(column < sheet->n_columns);
    return sheet->text + sheet->cell[column];
}

const char *sheet_cell(const struct sheet *sheet, size_t row, size_t column)
{
    ifl_assert(row < sheet->n_rows && column < sheet->n_columns);
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
    if (!*text || (end != text && !*end && isfinite(*value)))
        return IFL_OK;
    return ifl_fail_at(error, sheet->path, (int)row + 2, (int)column + 1,
                       "%s is \"%s\", expected a number", sheet_header(sheet, column), text);
}

bool sheet_same_value(const char *a, const char *b)
{
    char *a_end, *b_end;
    if (strcmp(a, b) == 0)
        return true;
    const double x = strtod(a, &a_end), y = strtod(b, &b_end);
    return *a && *b && !*a_end && !*b_end && x >= y && x <= y;
}
