/* Scores, their derivatives, and the intervals that follow from both. */
#include <gsl/gsl_blas.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

#include "identify/fit_parts.h"

/* Derivatives are differences over this part of a unit to both sides. */
static const double reach = 0.3;

/* ---- slopes ---- */

/* The log of the prediction at both sides of the value. */
static int take_slope(struct fit *fit, enum parameter p, double *slope[N_LATENCIES],
                      struct ifl_error *error)
{
    double value[N_PARAMETERS];
    for (int side = -1; side <= 1; side += 2) {
        memcpy(value, fit->value, sizeof value);
        fit_move(fit, p, side * reach, value);
        if (fit_predict(fit, value, error) < 0)
            return error->code;
        for (int l = 0; l < N_LATENCIES; l++)
            for (size_t i = 0; i < fit->residuals->n; i++)
                slope[l][i] =
                    (side < 0 ? 0 : slope[l][i]) + side * log(fit->predicted_s[l][i]) / (2 * reach);
    }
    return 0;
}

/* Requests between first and last token while row i was, its own included. */
static double load_of(const struct recording *r, double *const of[N_LATENCIES], size_t i)
{
    const double from = ifl_s_from_ns(r->trace.arrival_ns[i]) + of[TTFT][i];
    const double to = from - of[TTFT][i] + of[E2E][i];
    double overlap_s = 0;
    if (!(to > from))
        return 1;
    for (size_t j = 0; j < r->n; j++) {
        const double start = ifl_s_from_ns(r->trace.arrival_ns[j]);
        const double first = start + of[TTFT][j], last = start + of[E2E][j];
        if (first < to && last > from)
            overlap_s += fmin(to, last) - fmax(from, first);
    }
    return overlap_s / (to - from);
}

/* Half the measured and half the simulated load: what is by chance in a request's load is in its
 * time per token, too, and in the difference of the two times it would be of one sign. */
static int take_loads(struct slopes *slopes, struct fit *fit, struct ifl_error *error)
{
    struct residuals *residuals = fit->residuals;
    for (size_t k = 0; k < residuals->n_recordings; k++)
        if (trial_fly(residuals->setting, &residuals->recordings[k], fit->value, 0,
                      &residuals->trials[k], error) < 0)
            return error->code;
    fit->n_flights += residuals->n_recordings;
    for (size_t i = 0; i < residuals->n; i++) {
        const struct fitted_row *row = &residuals->rows[i];
        const struct recording *r = &residuals->recordings[row->recording];
        if (row->shift > 1)
            slopes->load[i] = slopes->load[i - 1];
        else
            slopes->load[i] = (load_of(r, r->of, row->row) +
                               load_of(r, residuals->trials[row->recording].of, row->row)) /
                              2;
    }
    return 0;
}

int slopes_open(struct slopes *slopes, struct fit *fit, const enum parameter of[], size_t k,
                struct ifl_error *error)
{
    const size_t n_bytes = (fit->residuals->n + 1) * sizeof(double);
    *slopes = (struct slopes){.k = k, .load = malloc(n_bytes)};
    int rc = slopes->load ? take_loads(slopes, fit, error) : ifl_fail_nomem(error);
    for (size_t j = 0; rc == 0 && j < k; j++) {
        slopes->of[j] = of[j];
        for (int l = 0; l < N_LATENCIES; l++)
            if (!(slopes->of_row[j][l] = malloc(n_bytes)))
                rc = ifl_fail_nomem(error);
        for (int l = 0; rc == 0 && l < N_LATENCIES; l++)
            memset(slopes->of_row[j][l], 0, n_bytes);
        if (rc == 0 && fit_latency(of[j]) == TPOT)
            rc = take_slope(fit, of[j], slopes->of_row[j], error);
    }
    return rc == 0 ? fit_predict(fit, fit->value, error) : rc;
}

void slopes_close(struct slopes *slopes)
{
    free(slopes->load);
    for (size_t j = 0; j < slopes->k; j++)
        for (int l = 0; l < N_LATENCIES; l++)
            free(slopes->of_row[j][l]);
}

/* ---- scores ---- */

static double tpot_at(const struct fit *fit, size_t i)
{
    return fit->residuals->recordings[fit->residuals->rows[i].recording].tpot_s;
}

/* What a row's score is multiplied by for a parameter: its effect on the row's latency by itself,
 * smooth in the row. 0 for the latencies that the parameter is not fitted to. */
static double instrument(const struct slopes *s, const struct fit *fit, size_t j, enum latency l,
                         size_t i)
{
    const enum parameter p = s->of[j];
    if ((fit_latency(p) == TTFT) != (l == TTFT))
        return 0;
    if (l == TTFT)
        return fit_front_slope_s(fit, p, i) / fit->residuals->recordings->ttft_s;
    if (p == HOST_STEP || p == HOST_SEQ)
        return fit_unit(fit, p) * (p == HOST_SEQ ? s->load[i] : 1) / tpot_at(fit, i);
    return s->of_row[j][l][i];
}

static double slope_of(const struct slopes *s, const struct fit *fit, size_t j, enum latency l,
                       size_t i)
{
    const bool known = l != TPOT && fit_latency(s->of[j]) == TTFT;
    const double slope =
        known ? fit_front_slope_s(fit, s->of[j], i) / fit->predicted_s[l][i] : s->of_row[j][l][i];
    return isfinite(slope) ? slope : 0;
}

/* NaN where the row's latency says nothing of the parameters that are fitted to it. */
static double residual_used(const struct fit *fit, enum latency l, size_t i)
{
    if (l == TTFT && !fit_shows_front(fit, i))
        return (double)NAN;
    return residual_of(fit->residuals, l, i, fit->predicted_s[l][i]);
}

static double curvature(double z)
{
    const double step = 1e-4;
    return (loss_score(z + step) - loss_score(z - step)) / (2 * step);
}

static double mean_curvature(const struct fit *fit, enum latency l, double scale)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < fit->residuals->n; i++) {
        const double r = residual_used(fit, l, i);
        sum += isnan(r) ? 0 : curvature(r / scale);
        n += !isnan(r);
    }
    return sum / (double)(n ? n : 1);
}

/* Adds the scores of a latency, a row a span, and their derivatives. */
static void add_latency(const struct slopes *s, const struct fit *fit, enum latency l,
                        gsl_matrix *scores, gsl_matrix *bread)
{
    const double scale = l == TTFT ? fit->front_scale : fit->scale[l];
    const double curved = mean_curvature(fit, l, scale) / (scale * scale);
    for (size_t i = 0; i < fit->residuals->n; i++) {
        const double r = residual_used(fit, l, i);
        if (isnan(r))
            continue;
        for (size_t j = 0; j < s->k; j++) {
            const double z = instrument(s, fit, j, l, i);
            *gsl_matrix_ptr(scores, fit->residuals->rows[i].span, j) +=
                z * loss_score(r / scale) / scale;
            for (size_t m = 0; z != 0 && m < s->k; m++)
                *gsl_matrix_ptr(bread, j, m) += curved * z * slope_of(s, fit, m, l, i);
        }
    }
}

static bool invert(const gsl_matrix *of, gsl_matrix *inverse)
{
    gsl_permutation *order = gsl_permutation_alloc(of->size1);
    gsl_matrix *lu = gsl_matrix_alloc(of->size1, of->size1);
    int sign;
    gsl_matrix_memcpy(lu, of);
    const bool ok = gsl_linalg_LU_decomp(lu, order, &sign) == GSL_SUCCESS &&
                    fabs(gsl_linalg_LU_det(lu, sign)) > 0 &&
                    gsl_linalg_LU_invert(lu, order, inverse) == GSL_SUCCESS;
    gsl_permutation_free(order);
    gsl_matrix_free(lu);
    return ok;
}

void slopes_newton(const struct slopes *slopes, const struct fit *fit, enum latency latency,
                   double by[])
{
    const size_t k = slopes->k, n_spans = fit->residuals->n_spans;
    gsl_matrix *scores = gsl_matrix_calloc(n_spans, k), *bread = gsl_matrix_calloc(k, k);
    gsl_matrix *inverse = gsl_matrix_calloc(k, k);
    add_latency(slopes, fit, latency, scores, bread);
    if (latency == TPOT)
        add_latency(slopes, fit, E2E, scores, bread);
    const bool ok = invert(bread, inverse);
    for (size_t j = 0; j < k; j++) {
        by[j] = 0;
        for (size_t m = 0; ok && m < k; m++)
            for (size_t s = 0; s < n_spans; s++)
                by[j] += gsl_matrix_get(inverse, j, m) * gsl_matrix_get(scores, s, m);
    }
    gsl_matrix_free(scores);
    gsl_matrix_free(bread);
    gsl_matrix_free(inverse);
}

/* ---- intervals ---- */

/* V = B^-1 M B^-T. Scores at the fitted values are too small, as the fit has followed each span in
 * part. The jackknife's correction divides the score of span s by 1 - h_s (MacKinnon and White,
 * Journal of Econometrics 29, 1985, HC3; Cameron and Miller, Journal of Human Resources 50, 2015,
 * section VI, for groups of rows); h_s, which add up to k, are taken as equal. */
static void fill_sandwich(const gsl_matrix *scores, const gsl_matrix *inverse, gsl_matrix *cov)
{
    const size_t k = inverse->size1, n_spans = scores->size1;
    const double kept = 1 - (double)k / (double)n_spans, small = 1 / (kept * kept);
    gsl_matrix *filling = gsl_matrix_alloc(k, k), *half = gsl_matrix_alloc(k, k);
    gsl_blas_dgemm(CblasTrans, CblasNoTrans, small, scores, scores, 0, filling);
    gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1, inverse, filling, 0, half);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1, half, inverse, 0, cov);
    gsl_matrix_free(filling);
    gsl_matrix_free(half);
}

/* Of a parameter with a profile, whose interval is that of a normal number. */
static double sd_of_profile(const struct fit *fit, enum parameter p)
{
    return fabs(parameter_distance(p, fit->low[p], fit->high[p])) / fit_unit(fit, p) / 2 /
           gsl_cdf_ugaussian_Pinv(0.95);
}

/* What the parameter that is followed leaves open moves the others along its profile. */
static void add_along(struct fit *fit, const enum parameter of[], size_t k)
{
    const enum parameter p = fit_followed(fit);
    const double sd = p < N_PARAMETERS ? sd_of_profile(fit, p) : 0;
    if (p == N_PARAMETERS)
        return;
    fit->covariance[p][p] = sd * sd;
    for (size_t j = 0; j < k; j++) {
        const double by = fit->along[of[j]] * sd;
        fit->covariance[of[j]][p] = fit->covariance[p][of[j]] = by * sd;
        for (size_t m = 0; m < k; m++)
            fit->covariance[of[j]][of[m]] += by * fit->along[of[m]] * sd;
    }
}

static void store(struct fit *fit, const enum parameter of[], size_t k, const gsl_matrix *cov,
                  bool ok)
{
    for (size_t j = 0; j < k; j++)
        for (size_t m = 0; m < k; m++)
            fit->covariance[of[j]][of[m]] = ok ? gsl_matrix_get(cov, j, m) : (double)NAN;
}

static void bound_all(struct fit *fit, const enum parameter of[], size_t k)
{
    const double t = gsl_cdf_tdist_Pinv(0.95, (double)(fit->residuals->n_spans - k));
    for (size_t j = 0; j < k; j++) {
        const enum parameter p = of[j];
        const double variance = fit->covariance[p][p];
        const double sd = isnan(variance) ? INFINITY : sqrt(variance);
        double low[N_PARAMETERS], high[N_PARAMETERS];
        memcpy(low, fit->value, sizeof low);
        memcpy(high, fit->value, sizeof high);
        fit_move(fit, p, -t * sd, low);
        fit_move(fit, p, t * sd, high);
        fit->low[p] = fmin(low[p], high[p]); /* an inverse falls as the value grows */
        fit->high[p] = fmax(low[p], high[p]);
    }
}

int interval_bound(struct fit *fit, struct ifl_error *error)
{
    enum parameter of[N_PARAMETERS];
    struct slopes slopes;
    size_t k = fit_list_free(fit, TPOT, of);
    k += fit_list_free(fit, TTFT, of + k);
    if (k == 0) {
        add_along(fit, of, k);
        return 0;
    }
    gsl_matrix *scores = gsl_matrix_calloc(fit->residuals->n_spans, k);
    gsl_matrix *bread = gsl_matrix_calloc(k, k), *inverse = gsl_matrix_calloc(k, k);
    gsl_matrix *cov = gsl_matrix_calloc(k, k);
    const int rc = slopes_open(&slopes, fit, of, k, error);
    if (rc == 0) {
        for (enum latency l = TTFT; l < N_LATENCIES; l++)
            add_latency(&slopes, fit, l, scores, bread);
        const bool ok = invert(bread, inverse);
        fill_sandwich(scores, inverse, cov);
        store(fit, of, k, cov, ok);
        add_along(fit, of, k);
        bound_all(fit, of, k);
    }
    slopes_close(&slopes);
    gsl_matrix_free(scores);
    gsl_matrix_free(bread);
    gsl_matrix_free(inverse);
    gsl_matrix_free(cov);
    return rc;
}
