/* Reads a CSV file of any length row by row and passes on the named columns as numbers. */
#ifndef INFLIGHT_REPORTS_SCAN_H
#define INFLIGHT_REPORTS_SCAN_H

#include <stddef.h>

#include "inflight/error.h"

enum { SCAN_MAX_COLUMNS = 20 };

/* value: [n] in the order of the names, NaN for an empty cell. A negative code ends the scan. */
typedef int scan_row_fn(void *context, const double *value, struct ifl_error *error);

/* Fails on a missing column, a cell that is no number, or a row without one of the columns. */
int scan_csv(const char *path, size_t n, const char *const *names, scan_row_fn *take, void *context,
             struct ifl_error *error);

/* As scan_csv; the file may lack the columns from n_needed on, which are then NaN. */
int scan_csv_some(const char *path, size_t n, size_t n_needed, const char *const *names,
                  scan_row_fn *take, void *context, struct ifl_error *error);

/* As scan_csv; a cell that is no number is NaN. */
int scan_csv_sparse(const char *path, size_t n, const char *const *names, scan_row_fn *take,
                    void *context, struct ifl_error *error);

/* As scan_csv; the last name is that of a column of words, with the index of the cell's word as
 * value. Any other word is an error. */
int scan_csv_words(const char *path, size_t n, const char *const *names, const char *const *words,
                   size_t n_words, scan_row_fn *take, void *context, struct ifl_error *error);

#endif
