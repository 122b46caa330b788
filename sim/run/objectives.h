/* The objectives of a search for capacity: limits on metrics of a trial, all of which have to hold.
 */
#ifndef SIM_RUN_OBJECTIVES_H
#define SIM_RUN_OBJECTIVES_H

#include "config/config.h"
#include "inflight/report.h"

enum { MAX_OBJECTIVES = 29 };

struct objective {
    int32_t row; /* row of the table of metrics (objective_name) */
    double limit;
    bool at_least; /* false: at most */
    bool is_gate;  /* only whether it holds counts, not the distance to the limit */
    size_t offset; /* offset of the metric in struct ifl_summary; OBJECTIVE_FINISHED: the share
                      n_finished */
};

#define OBJECTIVE_FINISHED SIZE_MAX

/* Fills the objectives of the criterion, in the order of the keys, and returns their number. If
 * only latencies have limits, one objective is that requests finish. */
size_t objectives_asked(const struct capacity_config *of, struct objective asked[MAX_OBJECTIVES]);

/* Returns the key below capacity.objectives. "goodput_rps" is no such key. */
const char *objective_name(const struct objective *objective);

double objective_value(const struct objective *objective, const struct ifl_summary *summary);

/* Returns the relative distance of the value to the limit: negative if the objective holds,
 * positive if not; at least -1. */
double objective_margin(const struct objective *objective, double value);

#endif
