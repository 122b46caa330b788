#include "cost/compute_optimal.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <math.h>

enum { MAX_ITERATIONS = 200 };

static double loss(double parameters, double tokens)
{
    return 406.4 / pow(parameters, 0.34) + 410.7 / pow(tokens, 0.29) + 1.69;
}

static double loss_at(double log_parameters, void *context)
{
    const double parameters = exp(log_parameters), flops = *(const double *)context;
    return loss(parameters, flops / (6 * parameters));
}

/* The loss is convex in ln N, as a sum of two exponentials. The bracket is from one parameter to
 * one token, since less than one of either has no meaning. */
static double minimise(gsl_min_fminimizer *minimizer, double flops)
{
    gsl_function function = {loss_at, &flops};
    const double low = 0, high = log(flops / 6);
    gsl_min_fminimizer_set(minimizer, &function, high / 2, low, high);
    for (int i = 0; i < MAX_ITERATIONS; i++) {
        gsl_min_fminimizer_iterate(minimizer);
        if (gsl_min_test_interval(gsl_min_fminimizer_x_lower(minimizer),
                                  gsl_min_fminimizer_x_upper(minimizer), 1e-10, 0) == GSL_SUCCESS)
            break;
    }
    return exp(gsl_min_fminimizer_x_minimum(minimizer));
}

int compute_optimal_find(double flops, struct compute_optimal *optimal, struct ifl_error *error)
{
    if (!(flops >= 1e12 && flops <= 1e36))
        return ifl_fail(error, IFL_E_INPUT,
                        "a compute budget of %g FLOPs, expected a number from 1e12 to 1e36", flops);
    gsl_min_fminimizer *minimizer = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
    if (!minimizer)
        return ifl_fail_nomem(error);
    gsl_error_handler_t *was = gsl_set_error_handler_off();
    const double parameters = minimise(minimizer, flops);
    gsl_set_error_handler(was);
    gsl_min_fminimizer_free(minimizer);
    const double tokens = flops / (6 * parameters);
    *optimal = (struct compute_optimal){flops, parameters, tokens, loss(parameters, tokens)};
    return 0;
}
