/* Tables for papers and pages, from the summaries of runs. */
#ifndef INFLIGHT_TYPESET_H
#define INFLIGHT_TYPESET_H

#include <stddef.h>
#include <stdio.h>

#include "inflight/error.h"

enum ifl_table_format { IFL_TABLE_LATEX, IFL_TABLE_MARKDOWN, IFL_TABLE_CSV, IFL_N_TABLE_FORMATS };

/* Keys are swept keys, by their full names or the last part of them, or, with several runs, "run",
 * the name of a run's folder. */
struct ifl_table {
    size_t n_runs;
    const char *const *run_dirs; /* each with a summary.csv */
    size_t n_rows;               /* keys that distinguish the rows; 0: all that are not columns */
    const char *const *rows;
    /* Metrics of summary.csv, and one key at most: each of its values is then a group of columns
     * with all the metrics. Without a metric: output throughput, mean and p99 of TTFT, mean TPOT
     * and mean normalized latency. */
    size_t n_columns;
    const char *const *columns;
    size_t n_where;
    const char *const *where; /* "KEY=VALUE": only the points with that value */
    enum ifl_table_format format;
    int digits; /* significant, 1 to 9, if there is no interval */
    FILE *out;
};

/* Writes the table: for each point its value or, with replications, their mean and half the width
 * of its 95% interval (replications.csv). An interval has two digits, and its mean as many decimals
 * (JCGM 100:2008, 7.2.6). If a metric has a better direction, as latencies and throughputs have,
 * the best value of its column is bold: the best at each rate, if the rate is a key of the rows. A
 * CSV has no bold values, and nine digits of each.
 *
 * Returns 0 or a negative code. Unknown keys and metrics, points that the table cannot distinguish,
 * and folders without a readable summary.csv are IFL_E_INPUT; after an error part of the table may
 * have been written. The caller checks ferror(out). */
int ifl_table(const struct ifl_table *table, struct ifl_error *error);

#endif
