#include "cost/correction.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

static const char *const op_names[CORRECTION_OPS] = {"gemm", "gemm_fp8", "prefill", "decode",
                                                     "elementwise"};

const char *correction_op_name(enum correction_op op)
{
    return op_names[op];
}

/* ---- the factor of an operation ---- */

static bool of_one_curve(const struct correction *a, const struct correction *b)
{
    return a->op == b->op && a->n == b->n && a->k == b->k;
}

static double between(const struct correction *low, const struct correction *high, double size)
{
    const double share = log(size / low->size) / log(high->size / low->size);
    return low->factor + share * (high->factor - low->factor);
}

/* `first` is the smallest size of a curve that ends before `end`. */
static double along(const struct correction *first, const struct correction *end, double size)
{
    const struct correction *at = first;
    while (at + 1 < end && of_one_curve(at + 1, first) && at[1].size <= size)
        at++;
    if (size <= at->size || at + 1 == end || !of_one_curve(at + 1, first))
        return at->factor;
    return between(at, at + 1, size);
}

static const struct correction *find(const struct corrections *corrections,
                                     const struct correction *curve)
{
    for (int i = 0; i < corrections->n_of; i++)
        if (of_one_curve(&corrections->of[i], curve))
            return &corrections->of[i];
    return NULL;
}

double correction_factor(const struct corrections *corrections, enum correction_op op, double n,
                         double k, double size)
{
    const struct correction own = {op, n, k, 0, 0}, all = {op, 0, 0, 0, 0};
    if (corrections->n_of == 0 || size <= 0)
        return 1;
    const struct correction *first = find(corrections, &own);
    if (!first)
        first = find(corrections, &all);
    return first ? along(first, corrections->of + corrections->n_of, size) : 1;
}

/* ---- reading ---- */

enum { OP, N, K, SIZE, FACTOR, COLUMNS };

static int find_columns(const struct table *table, int columns[COLUMNS], struct ifl_error *error)
{
    static const char *const names[COLUMNS] = {"op", "n", "k", "size", "factor"};
    for (int i = 0; i < COLUMNS; i++) {
        columns[i] = table_column(table, names[i]);
        if (columns[i] < 0)
            return ifl_fail_at(error, table->path, 1, 0, "no column %s, expected one", names[i]);
    }
    return 0;
}

static int read_op(const struct table *table, size_t row, size_t column, int *op,
                   struct ifl_error *error)
{
    const char *text = table_cell(table, row, column);
    for (*op = 0; *op < CORRECTION_OPS; ++*op)
        if (strcmp(text, op_names[*op]) == 0)
            return 0;
    return table_fail(table, row, column, "gemm, gemm_fp8, prefill, decode or elementwise", error);
}

static int read_shape(const struct table *table, size_t row, size_t column, double *shape,
                      struct ifl_error *error)
{
    *shape = 0;
    if (!*table_cell(table, row, column))
        return 0;
    return table_number(table, row, column, 1, 1e9, shape, error);
}

static int read_row(const struct table *table, const int columns[COLUMNS], size_t row,
                    struct correction *correction, struct ifl_error *error)
{
    *correction = (struct correction){0};
    if (read_op(table, row, (size_t)columns[OP], &correction->op, error) ||
        read_shape(table, row, (size_t)columns[N], &correction->n, error) ||
        read_shape(table, row, (size_t)columns[K], &correction->k, error) ||
        table_number(table, row, (size_t)columns[SIZE], 1e-9, 1e18, &correction->size, error) ||
        table_number(table, row, (size_t)columns[FACTOR], 1e-3, 1e3, &correction->factor, error))
        return error->code;
    return 0;
}

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

int correction_order(const void *a, const void *b)
{
    const struct correction *x = a, *y = b;
    int order = compare(x->op, y->op);
    if (!order)
        order = compare(x->n, y->n);
    if (!order)
        order = compare(x->k, y->k);
    return order ? order : compare(x->size, y->size);
}

static int check_once(const struct table *table, const struct corrections *corrections,
                      struct ifl_error *error)
{
    for (int i = 1; i < corrections->n_of; i++)
        if (correction_order(&corrections->of[i - 1], &corrections->of[i]) == 0)
            return ifl_fail_at(error, table->path, 0, 0,
                               "two rows for %s of n %g, k %g and size %g, expected each once",
                               op_names[corrections->of[i].op], (double)corrections->of[i].n,
                               (double)corrections->of[i].k, corrections->of[i].size);
    return 0;
}

static int read_rows(const struct table *table, struct corrections *corrections,
                     struct ifl_error *error)
{
    int columns[COLUMNS] = {0};
    if (table->n_rows > MAX_CORRECTIONS)
        return ifl_fail_at(error, table->path, 0, 0, "%zu rows, expected at most %d", table->n_rows,
                           MAX_CORRECTIONS);
    int code = find_columns(table, columns, error);
    for (size_t row = 0; row < table->n_rows && !code; row++)
        code = read_row(table, columns, row, &corrections->of[corrections->n_of++], error);
    if (code)
        return code;
    qsort(corrections->of, (size_t)corrections->n_of, sizeof *corrections->of, correction_order);
    return check_once(table, corrections, error);
}

int corrections_read(const char *path, struct corrections *corrections, struct ifl_error *error)
{
    struct table table;
    *corrections = (struct corrections){.n_of = 0};
    int code = table_read(path, &table, error);
    if (code)
        return code;
    code = read_rows(&table, corrections, error);
    table_free(&table);
    return code;
}
