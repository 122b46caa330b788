/* A CSV table of measurements, gzipped or plain, in memory: every cell as text, with its line. */
#ifndef SIM_FIT_TABLE_H
#define SIM_FIT_TABLE_H

#include <stddef.h>

#include "inflight/error.h"

struct table {
    char *path; /* owned */
    char *text; /* the cells, each with its NUL */
    size_t n_text, cap_text;
    size_t *cells; /* [n_rows + 1][n_columns], in `text`; row 0 is the header */
    size_t n_cells, cap_cells;
    int *lines; /* [n_rows] of the file */
    size_t n_columns, n_rows, cap_lines;
    char *remarks; /* the lines before the header that begin with #, each with its end; or NULL */
    size_t n_remarks, cap_remarks;
};

/* Blank lines and lines that begin with # are no rows. A row with other than the header's
 * number of cells is an error. */
int table_read(const char *path, struct table *table, struct ifl_error *error);
void table_free(struct table *table);

const char *table_name(const struct table *table, size_t column);
const char *table_cell(const struct table *table, size_t row, size_t column);
/* What stands behind "# NAME: " before the header, up to the end of its line, in `text`; "" where
 * nobody says so. */
const char *table_remark(const struct table *table, const char *name, char text[256]);
/* The column of that name, or -1. */
int table_column(const struct table *table, const char *name);

/* A finite number in [min, max], or an error at the cell. */
int table_number(const struct table *table, size_t row, size_t column, double min, double max,
                 double *value, struct ifl_error *error);
/* Points at the cell: "COLUMN is "...", expected WHAT". */
int table_fail(const struct table *table, size_t row, size_t column, const char *expected,
               struct ifl_error *error);

#endif
