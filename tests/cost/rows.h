/* Rows of a table of start-up logs, for the tests of rules that count memory. */
#ifndef TESTS_COST_ROWS_H
#define TESTS_COST_ROWS_H

#include <math.h>

#include "base/table.h"
#include "loading.h"

struct row {
    const struct table *table;
    size_t i;
};

static inline double number(const struct row *row, const char *column)
{
    const int at = table_column(row->table, column);
    double value = NAN;
    struct ifl_error error = {0};
    cr_assert_geq(at, 0, "no column %s", column);
    cr_assert_eq(table_number(row->table, row->i, (size_t)at, 0, 1e9, &value, &error), 0, "%s",
                 error.text);
    return value;
}

static inline const char *word(const struct row *row, const char *column)
{
    return table_cell(row->table, row->i, (size_t)table_column(row->table, column));
}

/* The table is freed by the caller. */
static inline struct table read_logs(const char *path)
{
    struct table table;
    struct ifl_error error = {0};
    cr_assert_eq(table_read(path, &table, &error), 0, "%s", error.text);
    return table;
}

#endif
