/* A small CSV file with a header line, whole in memory. libcsv does the reading. */
#ifndef INFLIGHT_REPORTS_SHEET_H
#define INFLIGHT_REPORTS_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

struct sheet {
    char *path, *text; /* owned; the cells' text, each ended by a NUL */
    size_t
        *cell; /* [cap_cells] offsets in text, owned: those of the header, then those of each row */
    size_t n_columns, n_rows; /* rows after the header */
    size_t n_cells, cap_cells, n_bytes, cap_bytes;
};

#define SHEET_NO_COLUMN SIZE_MAX

/* Fails on a file that is not a table: bad quotes, or a row that is shorter or longer than others.
 */
int sheet_read(struct sheet *sheet, const char *path, struct ifl_error *error);
/* As sheet_read, for a summary.csv, which has a row for each point. A file without any row is an
 * error. */
int sheet_read_points(struct sheet *sheet, const char *path, struct ifl_error *error);
void sheet_free(struct sheet *sheet);
const char *sheet_header(const struct sheet *sheet, size_t column);
const char *sheet_cell(const struct sheet *sheet, size_t row, size_t column);
/* SHEET_NO_COLUMN if there is no column of that name. */
size_t sheet_find(const struct sheet *sheet, const char *name);
/* As sheet_find, but a missing column is an error that names it and the file. */
int sheet_require(const struct sheet *sheet, const char *name, size_t *column,
                  struct ifl_error *error);
/* NaN for an empty cell; anything that is no number is an error. */
int sheet_number(const struct sheet *sheet, size_t row, size_t column, double *value,
                 struct ifl_error *error);

/* True for equal cells or equal numbers: 4 and 4.0 are the same rate. */
bool sheet_same_value(const char *a, const char *b);

#endif
