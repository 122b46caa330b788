/* The name of a metric of summary.csv in a table's head, its unit there, and whether more is
 * better. */
#ifndef INFLIGHT_REPORTS_METRIC_H
#define INFLIGHT_REPORTS_METRIC_H

#include <stdbool.h>

struct metric {
    char label[64];                       /* "TTFT, p99" */
    const char *unit;                     /* "ms"; empty: none */
    const char *in_words, *unit_in_words; /* the same for a line of its own: "output throughput";
                                           * "% of the pool" */
    double scale;                         /* the column's value times this is in that unit */
    int better;                           /* 1: more is better, -1: less, 0: neither */
};

/* Returns the metric of a column's name, such as "p99_ttft_s". */
struct metric metric_of(const char *column);

/* Returns the unit of the column in files: seconds, shares. */
const char *metric_unit_in_files(const struct metric *metric);
/* True for a mean or a percentile of a latency. */
bool metric_is_latency(const struct metric *metric);

#endif
