/* The mean number of spans of time that overlap each span, as of requests in flight. */
#ifndef SIM_IDENTIFY_LOAD_H
#define SIM_IDENTIFY_LOAD_H

#include <stddef.h>

#include "inflight/error.h"

/* Fills load[n] with the mean number of spans that run while span i runs, itself included. A span
 * that is empty or NaN does not count for others; its own load is 1. Each overlap is examined once,
 * after a sort: the cost for a run of n requests is proportional to n times the requests in flight.
 */
int load_over(const double from_s[], const double to_s[], size_t n, double load[],
              struct ifl_error *error);

#endif
