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

/* The i-th metric of the table for a terminal: a column of summary.csv, and the latency that is
 * shown in its place where requests are paired, or NULL. False behind the last. */
bool compare_shown(size_t i, const char **column, const char **latency);
/* The heads of all metrics, and the end of the line. */
void compare_print_titles(FILE *out);
/* A cell of the i-th metric; NaN: there is no difference, no interval. */
void compare_print_cell(FILE *out, size_t i, double difference, double half_width, bool is_marked);

/* A table for a terminal: a row a point. */
void compare_print_head(FILE *out, const struct matching *matching);
void compare_print_row(FILE *out, const struct matching *matching, size_t group,
                       const struct finding *findings, size_t n);

#endif
