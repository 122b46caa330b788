#include "tables/scan.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "tables/csv_file.h"

struct scan {
    const char *path;
    const char *const *names;  /* [n_wanted] */
    size_t n_wanted, n_needed; /* the file may lack the names behind n_needed */
    int *wanted_at; /* [n_columns] the place in `value` of each of the file's columns, or -1 */
    size_t n_columns;
    const char *const *words; /* [n_words] of the last column wanted, if there are any */
    size_t n_words;
    bool sparse; /* a cell that is no number is NaN */
    double value[SCAN_MAX_COLUMNS];
    scan_row_fn *take;
    void *context;
};

static int place_of(const struct scan *scan, const char *text, size_t n)
{
    for (size_t i = 0; i < scan->n_wanted; i++)
        if (strlen(scan->names[i]) == n && memcmp(scan->names[i], text, n) == 0)
            return (int)i;
    return -1;
}

static int take_title(struct scan *scan, const char *text, size_t n, struct ifl_error *error)
{
    int *wanted_at = realloc(scan->wanted_at, (scan->n_columns + 1) * sizeof *wanted_at);
    if (!wanted_at)
        return ifl_fail_nomem(error);
    scan->wanted_at = wanted_at;
    wanted_at[scan->n_columns++] = place_of(scan, text, n);
    return IFL_OK;
}

static int take_word(struct scan *scan, size_t row, size_t column, const char *text, size_t n,
                     struct ifl_error *error)
{
    for (size_t i = 0; i < scan->n_words; i++)
        if (strlen(scan->words[i]) == n && memcmp(scan->words[i], text, n) == 0) {
            scan->value[scan->n_wanted - 1] = (double)i;
            return IFL_OK;
        }
    return ifl_fail_at(error, scan->path, (int)row + 1, (int)column + 1,
                       "%s is \"%.*s\", expected a word such as %s",
                       scan->names[scan->n_wanted - 1], (int)ifl_min(n, (size_t)60), text,
                       scan->words[0]);
}

static int take_cell(void *context, size_t row, size_t column, const char *text, size_t n,
                     struct ifl_error *error)
{
    struct scan *scan = context;
    if (row == 0)
        return take_title(scan, text, n, error);
    if (column >= scan->n_columns || scan->wanted_at[column] < 0)
        return IFL_OK;
    char number[64], *end;
    const int place = scan->wanted_at[column];
    if (scan->n_words > 0 && (size_t)place + 1 == scan->n_wanted)
        return take_word(scan, row, column, text, n, error);
    const size_t n_kept = ifl_min(n, sizeof number - 1);
    memcpy(number, text, n_kept);
    number[n_kept] = '\0';
    scan->value[place] = n ? strtod(number, &end) : (double)NAN;
    if (n == 0 || (end != number && !*end && n == n_kept && isfinite(scan->value[place])))
        return IFL_OK;
    if (scan->sparse) {
        scan->value[place] = (double)NAN;
        return IFL_OK;
    }
    return ifl_fail_at(error, scan->path, (int)row + 1, (int)column + 1,
                       "%s is \"%s\", expected a number", scan->names[place], number);
}

static int check_titles(const struct scan *scan, struct ifl_error *error)
{
    for (size_t i = 0; i < scan->n_needed; i++) {
        bool found = false;
        for (size_t c = 0; c < scan->n_columns; c++)
            found |= scan->wanted_at[c] == (int)i;
        if (!found)
            return ifl_fail_at(error, scan->path, 1, 0, "no column %s", scan->names[i]);
    }
    return IFL_OK;
}

static int take_row(void *context, size_t row, struct ifl_error *error)
{
    struct scan *scan = context;
    return row == 0 ? check_titles(scan, error) : scan->take(scan->context, scan->value, error);
}

int scan_csv(const char *path, size_t n, const char *const *names, scan_row_fn *take, void *context,
             struct ifl_error *error)
{
    return scan_csv_some(path, n, n, names, take, context, error);
}

static int read_rows(struct scan *scan, struct ifl_error *error)
{
    const struct csv_taker taker = {take_cell, take_row, scan};
    ifl_require(scan->n_needed <= scan->n_wanted && scan->n_wanted <= SCAN_MAX_COLUMNS);
    for (size_t i = 0; i < SCAN_MAX_COLUMNS; i++)
        scan->value[i] = (double)NAN;
    const int code = csv_file_read(scan->path, &taker, error);
    free(scan->wanted_at);
    return code;
}

int scan_csv_some(const char *path, size_t n, size_t n_needed, const char *const *names,
                  scan_row_fn *take, void *context, struct ifl_error *error)
{
    struct scan scan = {.path = path,
                        .names = names,
                        .n_wanted = n,
                        .n_needed = n_needed,
                        .take = take,
                        .context = context};
    return read_rows(&scan, error);
}

int scan_csv_sparse(const char *path, size_t n, const char *const *names, scan_row_fn *take,
                    void *context, struct ifl_error *error)
{
    struct scan scan = {.path = path,
                        .names = names,
                        .n_wanted = n,
                        .n_needed = n,
                        .sparse = true,
                        .take = take,
                        .context = context};
    return read_rows(&scan, error);
}

int scan_csv_words(const char *path, size_t n, const char *const *names, const char *const *words,
                   size_t n_words, scan_row_fn *take, void *context, struct ifl_error *error)
{
    struct scan scan = {.path = path,
                        .names = names,
                        .n_wanted = n,
                        .n_needed = n,
                        .words = words,
                        .n_words = n_words,
                        .take = take,
                        .context = context};
    return read_rows(&scan, error);
}
