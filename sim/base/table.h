/* A CSV table of measurements, gzipped or plain, in memory: every cell as text, with its line. */
#ifndef SIM_BASE_TABLE_H
#define SIM_BASE_TABLE_H

#include <stddef.h>

#include "inflight/error.h"

struct table {
    char *path; /* owned */
    char *text; /* the cells, each with its NUL */
    size_t n_text, cap_text;
    size_t *cells; /* [n_rows + 1][n_columns], in `text`; row 0 is the header */
    size_t n_cells, cap_cells;
    int *lines; /* [n_rows] line numbers in the file */
    size_t n_columns, n_rows, cap_lines;
    char *remarks; /* the lines with # before the header, newlines included; or NULL */
    size_t n_remarks, cap_remarks;
};

/* Blank lines and lines that begin with # are skipped. A row with another number of cells than the
 * header is an error. */
int table_read(const char *path, struct table *table, struct ifl_error *error);
void table_free(struct table *table);

const char *table_name(const struct table *table, size_t column);
const char *table_cell(const struct table *table, size_t row, size_t column);
/* Copies the rest of the line "# NAME: ..." before the header to `text`; "" if there is no such
 * line. */
const char *table_remark(const struct table *table, const char *name, char text[256]);
/* The column of that name, or -1. */
int table_column(const struct table *table, const char *name);

/* Reads a finite number in [min, max]; anything else is an error at the cell. */
int table_number(const struct table *table, size_t row, size_t column, double min, double max,
                 double *value, struct ifl_error *error);
/* An error at the cell: "COLUMN is "...", expected WHAT". */
int table_fail(const struct table *table, size_t row, size_t column, const char *expected,
               struct ifl_error *error);

#endif
