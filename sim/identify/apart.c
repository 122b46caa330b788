#include "identify/apart.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

struct pairs {
    const struct identify_options *options;
    const double *value;  /* [N_PARAMETERS] */
    struct trial *trials; /* [n_recordings] */
};

/* By how much a time per token may be off, in the median, when the host was fitted to another run:
 * 15%, more than the load does. */
static const double most_apart = 0.15;

/* The host of recording k alone. */
static int fit_alone(const struct pairs *pairs, size_t k, double value[], struct ifl_error *error)
{
    struct residuals residuals = {.setting = &pairs->options->setting,
                                  .recordings = &pairs->options->recordings[k],
                                  .n_recordings = 1};
    struct fit fit = {0};
    int rc = residuals_open(&residuals, error);
    if (rc == 0)
        rc = fit_open(&fit, &residuals, error);
    if (rc == 0) {
        memcpy(fit.value, pairs->value, sizeof fit.value);
        fit.is_free[HOST_STEP] = !pairs->options->hold[HOST_STEP];
        rc = fit_again(&fit, error);
    }
    memcpy(value, fit.value, sizeof fit.value);
    fit_close(&fit);
    residuals_close(&residuals);
    return rc;
}

/* The median of log(measured / simulated) time per token of recording k. */
static int measure_apart(const struct pairs *pairs, size_t k, const double value[], double *apart,
                         struct ifl_error *error)
{
    const struct recording *r = &pairs->options->recordings[k];
    struct trial *trial = &pairs->trials[k];
    double *e = malloc((r->n_fit + 1) * sizeof *e);
    size_t n = 0;
    int rc =
        e ? trial_fly(&pairs->options->setting, r, value, 0, trial, error) : ifl_fail_nomem(error);
    for (size_t i = 0; rc == 0 && i < r->n_fit; i++) {
        const double one = log(r->of[TPOT][i] / trial->of[TPOT][i]);
        if (isfinite(one))
            e[n++] = one;
    }
    *apart = n ? gsl_stats_median(e, 1, n) : 0;
    free(e);
    return rc;
}

/* Each run's own host must serve for the other one. */
static int check_pair(const struct pairs *pairs, size_t a, size_t b, struct ifl_error *error)
{
    const struct recording *recordings = pairs->options->recordings;
    double of_a[N_PARAMETERS], of_b[N_PARAMETERS], a_by_b, b_by_a;
    int rc = fit_alone(pairs, a, of_a, error);
    if (rc == 0)
        rc = fit_alone(pairs, b, of_b, error);
    if (rc == 0)
        rc = measure_apart(pairs, b, of_a, &b_by_a, error);
    if (rc == 0)
        rc = measure_apart(pairs, a, of_b, &a_by_b, error);
    if (rc != 0 || fabs(a_by_b) < most_apart || fabs(b_by_a) < most_apart || a_by_b * b_by_a > 0)
        return rc;
    return ifl_fail_at(
        error, recordings[b].path, 0, 0,
        "a step takes %.3g ms %s than in %s (%+.0f%% in the time per token): not of one deployment",
        1e3 * fabs(of_b[HOST_STEP] - of_a[HOST_STEP]), b_by_a > 0 ? "more" : "less",
        recordings[a].path, 100 * (exp(b_by_a) - 1));
}

int apart_check(const struct identify_options *options, const double value[N_PARAMETERS],
                struct trial *trials, struct ifl_error *error)
{
    const struct pairs pairs = {options, value, trials};
    int rc = 0;
    for (size_t k = 1; rc == 0 && k < options->n_recordings; k++)
        rc = check_pair(&pairs, 0, k, error);
    return rc;
}
