/* Tables for papers and pages, from the summaries of runs. */
#ifndef INFLIGHT_TYPESET_H
#define INFLIGHT_TYPESET_H

#include <stddef.h>
#include <stdio.h>

#include "inflight/error.h"

enum ifl_table_format { IFL_TABLE_LATEX, IFL_TABLE_MARKDOWN, IFL_TABLE_CSV, IFL_N_TABLE_FORMATS };

/* Keys are swept keys, by their full names or the last part of them, or "run", the name of a run's
 * folder where there are several. */
struct ifl_table {
    size_t n_runs;
    const char *const *run_dirs; /* each with a summary.csv */
    size_t n_rows;               /* keys that tell the rows apart; 0: all that are not columns */
    const char *const *rows;
    size_t n_columns; /* metrics of summary.csv, and one key at most: its values are groups of */
    const char *const *columns; /* columns; without a metric there are the usual ones */
    size_t n_where;
    const char *const *where; /* "KEY=VALUE": only the points with that value */
    enum ifl_table_format format;
    int digits; /* significant, 1 to 9, where there is no interval */
    FILE *out;
};

/* Writes the table: of each point its value or, where there are replications, their mean and half
 * the width of its 95% interval (replications.csv). An interval is shown with two digits, and its
 * mean with as many decimals (JCGM 100:2008, 7.2.6). The best value of a column, at each rate if
 * that is a key of the rows, is bold, for metrics of which more or less is better; in a CSV no
 * value is, and all have their nine digits.
 *
 * Unknown keys and metrics, and points that the table cannot tell apart, are IFL_E_INPUT. */
int ifl_table(const struct ifl_table *table, struct ifl_error *error);

#endif
