/* The columns of summary.csv behind the swept keys: the one list of its names and their order. */
#ifndef INFLIGHT_REPORTS_COLUMNS_H
#define INFLIGHT_REPORTS_COLUMNS_H

#include <stddef.h>

enum column_type { COLUMN_COUNT, COLUMN_REAL, COLUMN_FLAG, COLUMN_TEXT };

struct column {
    const char *name;
    enum column_type type; /* uint64_t, double, bool, char[] */
    size_t offset;         /* in struct ifl_summary */
};

extern const struct column summary_columns[];
extern const size_t n_summary_columns;

/* The last part of a swept key, for tables and labels: rate_rps of workload.arrivals.rate_rps. */
const char *column_short_key(const char *key);

#endif
