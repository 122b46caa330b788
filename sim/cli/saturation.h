/* Notes that explain why points of a sweep are saturated: which resource was full. */
#ifndef SIM_CLI_SATURATION_H
#define SIM_CLI_SATURATION_H

#include "inflight/report.h"

/* Gives a note for each value of each swept key, except the arrival rate and replications. The note
 * is about the first point with this value that is saturated although the point that differs only
 * in this key is not. It says which of seats, tokens and blocks was full while requests of the
 * point waited. */
int saturation_explain(const struct ifl_points *points, const struct ifl_notes *notes,
                       struct ifl_error *error);

#endif
