/* Gaps between tokens: the mean follows from the lives of the requests, percentiles need every gap
 * or the run's quantiles.csv. */
#ifndef INFLIGHT_REPORTS_VALIDATE_ITL_H
#define INFLIGHT_REPORTS_VALIDATE_ITL_H

#include "validate/findings.h"

int find_itl(const struct pairs *pairs, const struct ifl_validation *validation,
             struct findings *findings, struct ifl_error *error);

#endif
