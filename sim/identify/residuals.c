#include "identify/residuals.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>

/* Requests that run at once share their steps: a span is longer than they are many. */
static size_t spans_of(const struct recording *r)
{
    const double n = (double)r->n_fit / (1.5 * r->running);
    return (size_t)fmin(RESIDUAL_SPANS, fmax(RESIDUAL_SPANS / 2.0, n));
}

int residuals_open(struct residuals *residuals, struct ifl_error *error)
{
    int rc = 0;
    residuals->trials = calloc(residuals->n_recordings, sizeof *residuals->trials);
    for (size_t k = 0; k < residuals->n_recordings; k++)
        residuals->n += residuals->recordings[k].n_fit * RESIDUAL_SHIFTS;
    residuals->rows = malloc((residuals->n + 1) * sizeof *residuals->rows);
    residuals->wait_s = malloc((residuals->n + 1) * sizeof *residuals->wait_s);
    if (!residuals->trials || !residuals->rows || !residuals->wait_s)
        return ifl_fail_nomem(error);
    size_t n = 0;
    for (size_t k = 0; rc == 0 && k < residuals->n_recordings; k++) {
        const struct recording *r = &residuals->recordings[k];
        rc = trial_open(&residuals->trials[k], r->n, error);
        const size_t n_spans = spans_of(r);
        for (size_t i = 0; i < r->n_fit * RESIDUAL_SHIFTS; i++) {
            const size_t row = i / RESIDUAL_SHIFTS;
            residuals->rows[n++] =
                (struct fitted_row){k, row, 1 + (unsigned)(i % RESIDUAL_SHIFTS),
                                    residuals->n_spans + row * n_spans / r->n_fit};
        }
        residuals->n_spans += n_spans;
    }
    return rc;
}

void residuals_close(struct residuals *residuals)
{
    for (size_t k = 0; residuals->trials && k < residuals->n_recordings; k++)
        trial_close(&residuals->trials[k]);
    free(residuals->trials);
    free(residuals->rows);
    free(residuals->wait_s);
}

static void take(struct residuals *residuals, unsigned shift, double *const predicted_s[])
{
    for (size_t i = 0; i < residuals->n; i++) {
        const struct fitted_row *row = &residuals->rows[i];
        const struct trial *trial = &residuals->trials[row->recording];
        if (row->shift != shift)
            continue;
        for (int l = 0; l < N_LATENCIES; l++)
            predicted_s[l][i] = trial->of[l][row->row];
        residuals->wait_s[i] = trial->wait_s[row->row];
    }
}

int residuals_predict(struct residuals *residuals, const double value[N_PARAMETERS],
                      double *const predicted_s[N_LATENCIES], struct ifl_error *error)
{
    for (unsigned shift = 1; shift <= RESIDUAL_SHIFTS; shift++) {
        for (size_t k = 0; k < residuals->n_recordings; k++)
            if (trial_fly_fitted(residuals->setting, &residuals->recordings[k], value, shift,
                                 &residuals->trials[k], error) < 0)
                return error->code;
        take(residuals, shift, predicted_s);
    }
    return 0;
}

double residual_of(const struct residuals *residuals, enum latency latency, size_t i,
                   double predicted_s)
{
    const struct fitted_row *row = &residuals->rows[i];
    const double measured_s = residuals->recordings[row->recording].of[latency][row->row];
    if (isnan(measured_s) || isfinite(predicted_s))
        return log(measured_s / predicted_s);
    return -log(20);
}

static const double knee = 2.385;

double loss(double z)
{
    return knee * knee / 2 * log1p(z * z / (knee * knee));
}

double loss_score(double z)
{
    return z / (1 + z * z / (knee * knee));
}

double loss_signed(double z)
{
    return copysign(sqrt(2 * loss(z)), z);
}

double robust_scale(double *r, size_t n)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(r[i]))
            r[m++] = fabs(r[i]);
    return fmax(m ? 1.4826 * gsl_stats_median(r, 1, m) : 0, 0.002);
}
