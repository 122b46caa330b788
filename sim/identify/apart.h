/* Tests whether all recordings are of one deployment. */
#ifndef SIM_IDENTIFY_APART_H
#define SIM_IDENTIFY_APART_H

#include "identify/fit.h"
#include "identify/identify.h"

/* Returns IFL_E_INPUT if two recordings, fitted separately, differ in their hosts or front ends, in
 * a test of 1% (divided by the number of pairs), and the latencies of each are wrong with the
 * other's values by more than a model's usual error. `fit` must be fitted to all recordings. */
int apart_check(const struct identify_options *options, const struct fit *fit,
                struct ifl_error *error);

#endif
