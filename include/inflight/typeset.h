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
    /* Metrics of summary.csv, and one key at most: each of its values is then a group of columns
     * with all the metrics. Without a metric: output throughput, mean and p99 of TTFT, mean TPOT
     * and mean normalized latency. */
    size_t n_columns;
    const char *const *columns;
    size_t n_where;
    const char *const *where; /* "KEY=VALUE": only the points with that value */
    enum ifl_table_format format;
    int digits; /* significant, 1 to 9, where there is no interval */
    FILE *out;
};

/* Writes the table: of each point its value or, where there are replications, their mean and half
 * the width of its 95% interval (replications.csv). An interval is shown with two digits, and its
 * mean with as many decimals (JCGM 100:2008, 7.2.6). Where a metric has a better direction, as
 * latencies and throughputs have, the best value of its column is bold: the best at each rate, if
 * the rate is a key of the rows. A CSV has no bold values, and nine digits of each.
 *
 * 0 or a negative code. Unknown keys and metrics, points that the table cannot tell apart, and
 * folders without a readable summary.csv are IFL_E_INPUT; after an error part of the table may have
 * been written. The caller looks at ferror(out). */
int ifl_table(const struct ifl_table *table, struct ifl_error *error);

#endif
