/* The columns of summary.csv behind the swept keys: the one list of its names and their order. */
#ifndef INFLIGHT_REPORTS_COLUMNS_H
#define INFLIGHT_REPORTS_COLUMNS_H

#include <stddef.h>

#include "inflight/report.h"

enum column_type { COLUMN_COUNT, COLUMN_REAL, COLUMN_FLAG, COLUMN_TEXT };

struct column {
    const char *name;
    enum column_type type; /* uint64_t, double, bool, char[] */
    size_t offset;         /* offset in struct ifl_summary */
};

static inline bool column_is_number(const struct column *column)
{
    return column->type == COLUMN_COUNT || column->type == COLUMN_REAL;
}

/* Returns the value of a numeric column. */
double column_number(const struct column *column, const struct ifl_summary *summary);

extern const struct column summary_columns[];
extern const size_t n_summary_columns;
/* Number of leading columns, which every file has. The next ones count requests that left early,
 * then retries; they are in files of runs in which there were some. The last ones are about
 * pipelines, and are in files of runs with a pipeline. */
extern const size_t n_common_columns;

/* Writes the number or flag of the column and a comma, as the functions of row.h do; it takes up to
 * ROW_REAL_BYTES. Not for COLUMN_TEXT. */
char *column_put(char *at, const struct column *column, const struct ifl_summary *summary);

/* Returns the number of columns of a file about that summary, or about those points; a negative
 * code if a point could not be read. */
size_t summary_columns_of(const struct ifl_summary *summary);
int summary_columns_of_points(const struct ifl_points *points, size_t *n, struct ifl_error *error);

/* Returns the last part of a swept key, for tables and labels: rate_rps of
 * workload.arrivals.rate_rps. */
const char *column_short_key(const char *key);

#endif
