/* Conditions on the rows of tables: "isl>=16", "num_heads!=num_key_value_heads". */
#ifndef SIM_FIT_WHERE_H
#define SIM_FIT_WHERE_H

#include "fit/fit.h"

/* Rows that break a condition become FIT_NONE. COLUMN OP NUMBER-or-COLUMN, OP one of
 * < <= > >= = !=; a condition holds for the tables that have its columns, and some table must. */
int where_keep(struct fit_data *data, const char *const *conditions, size_t n_conditions,
               struct ifl_error *error);

#endif
