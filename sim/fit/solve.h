/* Robust nonlinear least squares of one operation's form, in log space.
 *
 *     minimise  sum rho(ln predicted - ln measured)
 *
 * over parameters kept in their bounds by a transformation. rho is the soft absolute value
 * 2 (sqrt(1 + (r/c)^2) - 1), by iterated weights: a row that is off by far more than c pulls like
 * its sign, not like its size. Levenberg-Marquardt of GSL. */
#ifndef SIM_FIT_SOLVE_H
#define SIM_FIT_SOLVE_H

#include "fit/forms.h"
#include "inflight/error.h"

struct solution {
    size_t n_rows;
    double cost; /* what was minimised */
    double value[FORM_MAX_PARAMETERS];
    double std_error[FORM_MAX_PARAMETERS]; /* from the covariance, of rows taken as independent */
    double felt[FORM_MAX_PARAMETERS];      /* by how much that moves the predictions, relatively */
    bool held[FORM_MAX_PARAMETERS];        /* not fitted: no row shows it */
    bool at_bound[FORM_MAX_PARAMETERS];    /* as good as on it; then its std_error says nothing */
};

enum solve_demand {
    SOLVE_ROUGHLY,   /* whatever fits best: to compare with, not to keep */
    SOLVE_DETERMINED /* rows that do not determine a parameter are refused, and it is named */
};

/* Writes the values into `hardware`, whose other numbers (peaks) the form takes; a refusal leaves
 * it as it is. */
int solve(const struct form *form, const struct fit_sample *const *rows, size_t n_rows,
          enum solve_demand demand, struct hardware *hardware, struct solution *solution,
          struct ifl_error *error);

#endif
