/* What a fit leaves open: profiles drawn around the fitted one.
 *
 * Two things vary. Each fitted parameter, by its standard error (a profile keeps those, not the
 * covariances, so parameters are drawn apart from each other). And the time of each operation class
 * as a whole, by the residuals of rows that were held out: one factor a class and draw, lognormal,
 * whose median absolute error is that of the held-out rows. A model's products have a few shapes
 * that recur in every step, so a class's error does not average out over a run. The host is a
 * deployment's: its error comes from who describes that. What no table covers (in most profiles
 * element-wise work) is not drawn: the intervals do not know its error. */
#ifndef SIM_FIT_SPREAD_H
#define SIM_FIT_SPREAD_H

#include "cost/hardware.h"

struct spread {
    uint64_t seed, member;
    double host_error_frac; /* median relative error of all times of the host; 0: none is drawn */
};

/* Draw a member of the profile, which was loaded by that name. Depends on the spread and the
 * profile alone. A profile without errors of a fit is IFL_E_INPUT. */
int spread_draw(const char *name, const struct spread *spread, struct hardware *hardware,
                struct ifl_error *error);

#endif
