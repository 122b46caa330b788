/* Pairs the points of two runs: equal in every swept key except the compared one. */
#ifndef INFLIGHT_REPORTS_COMPARE_MATCHING_H
#define INFLIGHT_REPORTS_COMPARE_MATCHING_H

#include <stdbool.h>

#include "inflight/compare.h"
#include "tables/sheet.h"

enum run { BASE, OTHER, N_RUNS };
enum { MATCHING_MAX_KEYS = 32 };

/* A point's row in summary.csv, which is also its number in the other files. */
struct row_pair {
    size_t row[N_RUNS];
};

struct matching {
    const struct ifl_comparison *of;
    struct sheet summary[N_RUNS];
    /* The swept keys except the compared one; the replication, if there is one, is the last. */
    size_t n_keys, column[N_RUNS][MATCHING_MAX_KEYS];
    bool has_replications;
    size_t compared[N_RUNS]; /* column of the key compared, or SHEET_NO_COLUMN */
    struct row_pair *pairs;  /* [n_pairs], in the base's order */
    size_t n_pairs;
    size_t *first; /* [n_groups + 1]: pairs of one point's replications, first[g] to first[g + 1] */
    size_t n_groups;
};

const char *matching_dir(const struct ifl_comparison *of, enum run run);
int matching_read(struct matching *matching, const struct ifl_comparison *of,
                  struct ifl_error *error);
void matching_free(struct matching *matching);

/* The keys that name a group: all but the replication. */
size_t matching_n_names(const struct matching *matching);
const char *matching_name(const struct matching *matching, size_t key);
const char *matching_value(const struct matching *matching, size_t group, size_t key);

#endif
