/* The values of swept keys: the first columns of a summary.csv. */
#ifndef INFLIGHT_REPORTS_SWEPT_H
#define INFLIGHT_REPORTS_SWEPT_H

#include "tables/sheet.h"

/* True if the column is called that, by its full name or the last part of it. */
bool swept_is_named(const char *header, const char *name);
/* True for a value of the column that no row before has. */
bool swept_is_new(const struct sheet *sheet, size_t row, size_t column);
/* Returns the first key that is neither a rate nor the replication and has at least two values: the
 * one to compare. SHEET_NO_COLUMN if there is none. */
size_t swept_choice(const struct sheet *sheet, size_t n_keys);

#endif
