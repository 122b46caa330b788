/* The residuals of the fitted requests: logarithms of measured over simulated latencies. Their loss
 * bounds the influence of a single request. */
#ifndef SIM_IDENTIFY_RESIDUALS_H
#define SIM_IDENTIFY_RESIDUALS_H

#include "identify/trial.h"

/* Flights with shifted stamps that each request is compared with. One by one, not with their mean:
 * the difference of two draws is symmetric, however skewed the latencies are, so that a loss that
 * bounds it has no bias. */
enum { RESIDUAL_SHIFTS = 4 };

/* A request of a recording, and one of the flights. */
struct fitted_row {
    size_t recording, row;
    unsigned shift; /* from 1 on */
    size_t span;    /* of the time that it arrived in: residuals of a span are not independent */
};

/* Spans that the fitted part of a recording is cut into. */
enum { RESIDUAL_SPANS = 16 };

struct residuals {
    const struct trial_setting *setting;
    const struct recording *recordings; /* [n_recordings] */
    size_t n_recordings;
    struct fitted_row *rows; /* [n] */
    size_t n, n_spans;
    struct trial *trials; /* [n_recordings] scratch */
    double *wait_s;       /* [n] of the last prediction */
};

int residuals_open(struct residuals *residuals, struct ifl_error *error);
void residuals_close(struct residuals *residuals);

/* Fills the simulated latencies of each row in s, front end included; NaN if a request never
 * finished. */
int residuals_predict(struct residuals *residuals, const double value[N_PARAMETERS],
                      double *const predicted_s[N_LATENCIES], struct ifl_error *error);
/* log(measured / predicted) of a row; NaN: the request has no such latency. A request that the
 * simulation could not serve counts as one that took twenty times as long. */
double residual_of(const struct residuals *residuals, enum latency latency, size_t i,
                   double predicted_s);

/* ---- the loss of Cauchy, at 2.385 standard deviations (95% efficient for normal errors) ---- */

double loss(double z);        /* about z^2 / 2 near 0 */
double loss_score(double z);  /* its derivative */
double loss_signed(double z); /* sign(z) sqrt(2 loss(z)): squares sum up to twice the loss */
/* 1.4826 times the median of |r|, NaNs left out; at least 0.002. Overwrites r. */
double robust_scale(double *r, size_t n);

#endif
