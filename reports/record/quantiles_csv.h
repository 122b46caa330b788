/* Quantiles of a latency, read from a run's quantiles.csv. */
#ifndef INFLIGHT_REPORTS_QUANTILES_CSV_H
#define INFLIGHT_REPORTS_QUANTILES_CSV_H

#include <stddef.h>

#include "inflight/error.h"

/* found_s[i] is the quantile wanted[i] of the column; NAN if it or the file is missing. */
int quantiles_csv_read(const char *dir, const char *column, const double *wanted, size_t n_wanted,
                       double *found_s, struct ifl_error *error);

#endif
