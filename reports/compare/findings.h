/* All differences of a point, for the CSV and the terminal. */
#ifndef INFLIGHT_REPORTS_COMPARE_FINDINGS_H
#define INFLIGHT_REPORTS_COMPARE_FINDINGS_H

#include <stdio.h>

#include "compare/difference.h"

enum pairing { BY_REPLICATION, BY_REQUEST };

struct finding {
    const char *metric;
    enum pairing paired_by;
    struct difference difference;
};

/* NULL if there is no such metric, or no pair that has it. */
const struct finding *finding_get(const struct finding *findings, size_t n, const char *metric,
                                  enum pairing paired_by);

/* Widest cells of keys on a terminal. */
enum { COMPARE_KEY_CHARS = 24 };

/* Returns in *column the i-th metric of the terminal's table, a column of summary.csv, and in
 * *latency the latency that replaces it if requests are paired, or NULL. Returns false after the
 * last. */
bool compare_shown(size_t i, const char **column, const char **latency);
/* Prints the heads of all metrics, and ends the line. */
void compare_print_titles(FILE *out);
/* Prints a cell of the i-th metric; NaN: no difference, no interval. */
void compare_print_cell(FILE *out, size_t i, double difference, double half_width, bool is_marked);

/* Print a table for a terminal, with one row per point. */
void compare_print_head(FILE *out, const struct matching *matching);
void compare_print_row(FILE *out, const struct matching *matching, size_t group,
                       const struct finding *findings, size_t n);

#endif
