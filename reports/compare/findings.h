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

/* A table for a terminal: a row a point. */
void compare_print_head(FILE *out, const struct matching *matching);
void compare_print_row(FILE *out, const struct matching *matching, size_t group,
                       const struct finding *findings, size_t n);

#endif
