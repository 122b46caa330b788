/* The mean number of spans of time that overlap each span, as of requests in flight. */
#ifndef SIM_IDENTIFY_LOAD_H
#define SIM_IDENTIFY_LOAD_H

#include <stddef.h>

#include "inflight/error.h"

/* Fills load[n] with the mean number of spans that run while span i does, itself included. A span
 * that is empty or NaN counts for none; its own load is 1. Each overlap is looked at once, after a
 * sort: what a run of n requests costs grows with n times the requests in flight. */
int load_over(const double from_s[], const double to_s[], size_t n, double load[],
              struct ifl_error *error);

#endif
