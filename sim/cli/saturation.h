/* Notes that explain why points of a sweep are saturated: which resource was full. */
#ifndef SIM_CLI_SATURATION_H
#define SIM_CLI_SATURATION_H

#include "inflight/report.h"

/* Says for each value of each swept key, but for the arrival rate and replications, the first point
 * of that value that is saturated although the one with another value of that key alone is not:
 * which of seats, tokens and blocks was full while its requests waited. */
int saturation_explain(const struct ifl_points *points, const struct ifl_notes *notes,
                       struct ifl_error *error);

#endif
