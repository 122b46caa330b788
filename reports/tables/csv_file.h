/* Reads a CSV file with a header line and passes on each cell and row; the common part of sheets
 * and scans. The parser is libcsv. */
#ifndef INFLIGHT_REPORTS_CSV_FILE_H
#define INFLIGHT_REPORTS_CSV_FILE_H

#include <stddef.h>

#include "inflight/error.h"

/* Row 0 is the header. A negative code ends the reading. `text` is [n], without a NUL. */
struct csv_taker {
    int (*cell)(void *context, size_t row, size_t column, const char *text, size_t n,
                struct ifl_error *error);
    int (*row)(void *context, size_t row, struct ifl_error *error); /* called after the row's
                                                                       cells */
    void *context;
};

/* Fails on bad quotes, on a row that is shorter or longer than the header, and on an empty file. */
int csv_file_read(const char *path, const struct csv_taker *taker, struct ifl_error *error);

#endif
