/* K/V that moved between replicas: moves.csv, and its sums for the summary. */
#ifndef INFLIGHT_REPORTS_MOVES_H
#define INFLIGHT_REPORTS_MOVES_H

#include "inflight/report.h"
#include "record/exact_sum.h"
#include "tables/whole_file.h"

struct move_sums {
    uint64_t n;
    struct exact_sum bytes, time_ns, hidden_ns;
};

struct move_log {
    struct whole_file file; /* moves.csv */
    int32_t point;
    struct move_sums sums;
};

/* Opens the file, if `path` is not NULL. Zeroed memory is valid and has none. */
int move_log_open(struct move_log *log, const char *path, int32_t point, struct ifl_error *error);
/* Adds a move. counts: also to the sums for the summary. */
int move_log_add(struct move_log *log, const struct ifl_move_record *record, bool counts,
                 struct ifl_error *error);
void move_sums_add(struct move_sums *sums, const struct ifl_move_record *record);
/* Fills the summary's numbers of moves; without moves they are not changed. */
void move_sums_describe(const struct move_sums *sums, struct ifl_summary *summary);

#endif
