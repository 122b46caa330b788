/* Tests whether all recordings are of one deployment. */
#ifndef SIM_IDENTIFY_APART_H
#define SIM_IDENTIFY_APART_H

#include "identify/fit.h"
#include "identify/identify.h"

/* IFL_E_INPUT where two recordings by themselves ask for other hosts or front ends, in a test of 1%
 * (divided by the pairs), and each is off with what the other asks for by more than a model is.
 * `fit` is fitted to all. */
int apart_check(const struct identify_options *options, const struct fit *fit,
                struct ifl_error *error);

#endif
