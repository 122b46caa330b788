/* Are the recordings of one deployment? */
#ifndef SIM_IDENTIFY_APART_H
#define SIM_IDENTIFY_APART_H

#include "identify/identify.h"

/* IFL_E_INPUT where the first recording and another one have hosts that do not serve for each
 * other. `value` is fitted to all of them; trials are scratch, [n_recordings]. */
int apart_check(const struct identify_options *options, const double value[N_PARAMETERS],
                struct trial *trials, struct ifl_error *error);

#endif
