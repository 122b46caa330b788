/* The objectives of a search for capacity: metrics of a trial with limits, all of which have to
 * hold. */
#ifndef SIM_RUN_OBJECTIVES_H
#define SIM_RUN_OBJECTIVES_H

#include "config/config.h"
#include "inflight/report.h"

enum { MAX_OBJECTIVES = 29 };

struct objective {
    int32_t row; /* of the table of metrics; see objective_name */
    double limit;
    bool at_least; /* false: at most */
    bool is_gate;  /* it holds or not: how far within it is means nothing */
    size_t offset; /* of the metric in struct ifl_summary; OBJECTIVE_FINISHED: n_finished's share */
};

#define OBJECTIVE_FINISHED SIZE_MAX

/* Those of the criterion, in the order of the keys: their number. Those with limits for latencies
 * alone have that requests finish among them. */
size_t objectives_asked(const struct capacity_config *of, struct objective asked[MAX_OBJECTIVES]);

/* The key below capacity.objectives; "goodput_rps" is none. */
const char *objective_name(const struct objective *objective);

double objective_value(const struct objective *objective, const struct ifl_summary *summary);

/* How far the value is from the limit, as a share of it: negative within, positive beyond; at least
 * -1. */
double objective_margin(const struct objective *objective, double value);

#endif
