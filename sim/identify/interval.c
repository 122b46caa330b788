/* Scores, their derivatives, and the intervals that follow from both. */
#include <gsl/gsl_blas.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

#include "identify/fit_parts.h"
#include "identify/load.h"

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

/* Requests between first and last token while a request is. */
static int measure_loads(const struct recording *r, double *const of[N_LATENCIES], double from_s[],
                         double to_s[], double load[], struct ifl_error *error)
{
    for (size_t i = 0; i < r->n; i++) {
        const double start_s = ifl_s_from_ns(r->trace.arrival_ns[i]);
        from_s[i] = start_s + of[TTFT][i];
        to_s[i] = start_s + of[E2E][i];
    }
    return load_over(from_s, to_s, r->n, load, error);
}

/* Half the measured and half the simulated load: what is by chance in a request's load is in its
 * time per token, too, and in the difference of the two times it would be of one sign. */
static int add_loads(struct slopes *slopes, const struct residuals *residuals, size_t k,
                     struct ifl_error *error)
{
    const struct recording *r = &residuals->recordings[k];
    double *room = malloc((4 * r->n + 1) * sizeof *room);
    if (!room)
        return ifl_fail_nomem(error);
    double *from_s = room, *to_s = from_s + r->n, *measured = to_s + r->n;
    double *simulated = measured + r->n;
    int rc = measure_loads(r, r->of, from_s, to_s, measured, error);
    if (rc == 0)
        rc = measure_loads(r, residuals->trials[k].of, from_s, to_s, simulated, error);
    for (size_t i = 0; rc == 0 && i < residuals->n; i++) {
        const struct fitted_row *row = &residuals->rows[i];
        if (row->recording == k)
            slopes->load[i] = (measured[row->row] + simulated[row->row]) / 2;
    }
    free(room);
    return rc;
}

static int take_loads(struct slopes *slopes, struct fit *fit, struct ifl_error *error)
{
    struct residuals *residuals = fit->residuals;
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < residuals->n_recordings; k++) {
        rc = trial_fly(residuals->setting, &residuals->recordings[k], fit->value, 0,
                       &residuals->trials[k], error);
        if (rc == 0)
            rc = add_loads(slopes, residuals, k, error);
    }
    fit->n_flights += residuals->n_recordings;
    return rc;
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

/* Adds the scores of a latency, a row a span, and their derivatives; to `levels`, if it is not
 * NULL, those by the logarithm of a factor that all the latencies have. */
static void add_latency(const struct slopes *s, const struct fit *fit, enum latency l,
                        gsl_matrix *scores, gsl_matrix *bread, gsl_matrix *levels)
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
            if (levels)
                *gsl_matrix_ptr(levels, l, j) += curved * z;
        }
    }
}

void slopes_score(const struct slopes *slopes, const struct fit *fit, gsl_matrix *scores,
                  gsl_matrix *bread, gsl_matrix *levels)
{
    for (enum latency l = TTFT; l < N_LATENCIES; l++)
        add_latency(slopes, fit, l, scores, bread, levels);
}

/* Sums of scores, and what is made of them. */
struct sums {
    gsl_matrix *scores;                                      /* [n_spans][k] */
    gsl_matrix *bread, *inverse, *lu, *filling, *half, *cov; /* [k][k] */
    gsl_permutation *order;                                  /* [k] */
};

static int open_sums(struct sums *sums, size_t n_spans, size_t k, struct ifl_error *error)
{
    *sums = (struct sums){gsl_matrix_calloc(n_spans, k), gsl_matrix_calloc(k, k),
                          gsl_matrix_calloc(k, k),       gsl_matrix_calloc(k, k),
                          gsl_matrix_calloc(k, k),       gsl_matrix_calloc(k, k),
                          gsl_matrix_calloc(k, k),       gsl_permutation_alloc(k)};
    return sums->scores && sums->bread && sums->inverse && sums->lu && sums->filling &&
                   sums->half && sums->cov && sums->order
               ? 0
               : ifl_fail_nomem(error);
}

static void close_sums(struct sums *sums)
{
    gsl_matrix_free(sums->scores);
    gsl_matrix_free(sums->bread);
    gsl_matrix_free(sums->inverse);
    gsl_matrix_free(sums->lu);
    gsl_matrix_free(sums->filling);
    gsl_matrix_free(sums->half);
    gsl_matrix_free(sums->cov);
    gsl_permutation_free(sums->order);
}

static bool invert(struct sums *sums)
{
    int sign;
    gsl_matrix_memcpy(sums->lu, sums->bread);
    return gsl_linalg_LU_decomp(sums->lu, sums->order, &sign) == GSL_SUCCESS &&
           fabs(gsl_linalg_LU_det(sums->lu, sign)) > 0 &&
           gsl_linalg_LU_invert(sums->lu, sums->order, sums->inverse) == GSL_SUCCESS;
}

int slopes_newton(const struct slopes *slopes, const struct fit *fit, enum latency latency,
                  double by[], struct ifl_error *error)
{
    const size_t k = slopes->k, n_spans = fit->residuals->n_spans;
    struct sums sums;
    const int rc = open_sums(&sums, n_spans, k, error);
    if (rc == 0) {
        add_latency(slopes, fit, latency, sums.scores, sums.bread, NULL);
        if (latency == TPOT)
            add_latency(slopes, fit, E2E, sums.scores, sums.bread, NULL);
        const bool ok = invert(&sums);
        for (size_t j = 0; j < k; j++) {
            by[j] = 0;
            for (size_t m = 0; ok && m < k; m++)
                for (size_t s = 0; s < n_spans; s++)
                    by[j] += gsl_matrix_get(sums.inverse, j, m) * gsl_matrix_get(sums.scores, s, m);
        }
    }
    close_sums(&sums);
    return rc;
}

/* ---- intervals ---- */

/* V = B^-1 M B^-T. Scores at the fitted values are too small, as the fit has followed each span in
 * part. The jackknife's correction divides the score of span s by 1 - h_s (MacKinnon and White,
 * Journal of Econometrics 29, 1985, HC3; Cameron and Miller, Journal of Human Resources 50, 2015,
 * section VI, for groups of rows); h_s, which add up to k, are taken as equal. */
static void fill_sandwich(struct sums *sums)
{
    const size_t k = sums->bread->size1, n_spans = sums->scores->size1;
    const double kept = 1 - (double)k / (double)n_spans, small = 1 / (kept * kept);
    gsl_blas_dgemm(CblasTrans, CblasNoTrans, small, sums->scores, sums->scores, 0, sums->filling);
    gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1, sums->inverse, sums->filling, 0, sums->half);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1, sums->half, sums->inverse, 0, sums->cov);
}

/* Of a parameter with a profile: its interval is read as that of a normal number. */
static double sd_of_profile(const struct fit *fit, enum parameter p)
{
    return fabs(parameter_distance(p, fit->low[p], fit->high[p])) / fit_unit(fit, p) / 2 /
           gsl_cdf_ugaussian_Pinv(0.95);
}

/* What a parameter with a profile leaves open moves the others along it. */
static void add_along(struct fit *fit, enum parameter p, double sd,
                      const double along[N_PARAMETERS])
{
    double by[N_PARAMETERS] = {0};
    for (enum parameter q = 0; q < N_PARAMETERS; q++)
        by[q] = q == p ? sd : fit->is_free[q] ? along[q] * sd : 0;
    for (enum parameter q = 0; q < N_PARAMETERS; q++)
        for (enum parameter o = 0; o < N_PARAMETERS; o++)
            fit->covariance[q][o] += by[q] * by[o];
}

/* A pool and another parameter with a profile. */
static void add_profiles(struct fit *fit)
{
    const enum parameter followed = fit_followed(fit);
    if (followed < N_PARAMETERS)
        add_along(fit, followed, sd_of_profile(fit, followed), fit->along);
    if (fit->is_free[BLOCKS])
        add_along(fit, BLOCKS, fit->pool_sd, fit->along_pool);
}

static void store(struct fit *fit, const enum parameter of[], size_t k, const gsl_matrix *cov,
                  bool ok)
{
    memset(fit->covariance, 0, sizeof fit->covariance);
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
    struct sums sums;
    size_t k = fit_list_free(fit, TPOT, of);
    k += fit_list_free(fit, TTFT, of + k);
    if (k == 0) {
        memset(fit->covariance, 0, sizeof fit->covariance);
        add_profiles(fit);
        return 0;
    }
    int rc = open_sums(&sums, fit->residuals->n_spans, k, error);
    if (rc == 0) {
        rc = slopes_open(&slopes, fit, of, k, error);
        if (rc == 0) {
            slopes_score(&slopes, fit, sums.scores, sums.bread, NULL);
            const bool ok = invert(&sums);
            fill_sandwich(&sums);
            store(fit, of, k, sums.cov, ok);
            add_profiles(fit);
            bound_all(fit, of, k);
        }
        slopes_close(&slopes);
    }
    close_sums(&sums);
    return rc;
}
