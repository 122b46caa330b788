/* The uncertainty of a fit: profiles drawn around the fitted one.
 *
 * A draw varies
 *   - each fitted parameter, by its standard error. Parameters are drawn independently, since a
 *     profile keeps no covariances;
 *   - the time of each operation class, by one lognormal factor. Its median absolute error is that
 *     of the means of shapes that were held out (fit/errors.h), or of the rows if a profile has no
 *     errors of shapes. The few shapes of a model recur in every step, so their error does not
 *     average out over a run; the part that depends on the number of rows does;
 *   - with other_software, kernels and messages a second time, by the differences between tables of
 *     different software on one GPU: products, reading weights, attention of prompts and of
 *     decodes, latency and rate between GPUs, one lognormal factor each;
 *   - the memory for K/V, if an engine's rule computes it (cost/memory_engine.h);
 *   - the numbers of the deployment that have intervals there, such as blocks, times of the host
 *     and the front end, each by itself or as its correlations say;
 *   - the other times of the host, by host_error_frac, one factor for all.
 *
 * Operations that no table covers (element-wise work in most profiles) are not drawn, so intervals
 * do not contain their error. */
#ifndef SIM_FIT_SPREAD_H
#define SIM_FIT_SPREAD_H

#include "cost/hardware.h"

struct spread {
    uint64_t seed, member;
    double host_error_frac; /* median relative error of all times of the host; 0: none is drawn */
    bool other_software;    /* the engine's kernels are not those of the profile's tables */
};

/* Draws a member of the ensemble. `platform` must be the profile loaded by that name. The draw
 * depends only on the spread and the profile. Returns IFL_E_INPUT if the profile has no errors of a
 * fit and its deployment has no intervals. */
int spread_draw(const char *name, const struct spread *spread, struct platform *platform,
                struct ifl_error *error);

#endif
