/* Robust nonlinear least squares of one operation's form, in log space.
 *
 *     minimise  sum rho(ln predicted - ln measured)
 *
 * over parameters kept in their bounds by a transformation. rho is the soft absolute value
 * 2 (sqrt(1 + (r/c)^2) - 1), minimised by iterated weights and GSL's Levenberg-Marquardt. The pull
 * of a row with a residual far beyond c depends on the sign of the residual only. */
#ifndef SIM_FIT_SOLVE_H
#define SIM_FIT_SOLVE_H

#include "fit/forms.h"
#include "inflight/error.h"

struct solution {
    size_t n_rows;
    double cost; /* what was minimised */
    double value[FORM_MAX_PARAMETERS];
    double std_error[FORM_MAX_PARAMETERS]; /* standard error from the covariance, with rows taken
                                              as independent */
    double felt[FORM_MAX_PARAMETERS];      /* relative change of predictions by one std_error */
    bool held[FORM_MAX_PARAMETERS];        /* not fitted: no row depends on it */
    bool at_bound[FORM_MAX_PARAMETERS];    /* on a bound, or near it: std_error means nothing */
};

enum solve_demand {
    SOLVE_ROUGHLY,   /* the best fit, for comparisons only */
    SOLVE_DETERMINED /* an error that names the parameter if the rows do not determine one */
};

/* Fits the form and writes the values into `platform`, whose other numbers, such as peaks, are
 * input to the form. After an error `platform` is unchanged. */
int solve(const struct form *form, const struct fit_sample *const *rows, size_t n_rows,
          enum solve_demand demand, struct platform *platform, struct solution *solution,
          struct ifl_error *error);

#endif
