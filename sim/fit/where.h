/* Conditions on the rows of tables: "isl>=16", "num_heads!=num_key_value_heads". */
#ifndef SIM_FIT_WHERE_H
#define SIM_FIT_WHERE_H

#include "fit/fit.h"

/* Sets rows that break a condition to FIT_NONE. A condition is COLUMN OP NUMBER-or-COLUMN, with OP
 * one of < <= > >= = !=. A condition applies to the tables that have its columns; it is an error if
 * no table has them. */
int where_keep(struct fit_data *data, const char *const *conditions, size_t n_conditions,
               struct ifl_error *error);

#endif
