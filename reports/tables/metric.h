/* What a metric of summary.csv is called in a head, its unit there, and which values are good. */
#ifndef INFLIGHT_REPORTS_METRIC_H
#define INFLIGHT_REPORTS_METRIC_H

struct metric {
    char label[64];   /* "TTFT, p99" */
    const char *unit; /* "ms"; empty: none */
    double scale;     /* the column's value times this is in that unit */
    int better;       /* 1: more is better, -1: less, 0: neither */
};

/* Of a column's name, such as "p99_ttft_s". */
struct metric metric_of(const char *column);

#endif
