/* A test of homogeneity: the estimates of each recording alone against those of the others, with
 * the covariances of both.
 *
 * A recording alone may not determine two parameters separately, and its estimates are then far off
 * along a line. So the difference of the estimates is weighted with B = (B1^-1 + B2^-1)^-1, where
 * B1 and B2 are the derivatives of both sums of scores. A direction that one side does not
 * determine then has no weight. Hotelling's T^2 (Annals of Mathematical Statistics 2, 1931) of the
 * result has the F distribution for the number of spans. */
#include "identify/apart.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_eigen.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "identify/fit_parts.h"

static const double refused_at = 0.01;

/* What is compared. */
struct compared {
    const struct identify_options *options;
    const struct fit *fit; /* to all recordings */
    enum parameter of[N_PARAMETERS];
    size_t k;
};

/* Of a recording alone; all in units of the fit to all. */
struct side {
    gsl_vector *sum;      /* [k] scores at the values of the fit to all */
    gsl_matrix *bread;    /* [k][k] their derivatives */
    gsl_matrix *variance; /* [k][k] */
    size_t n_spans;
};

static int open_side(struct side *side, size_t k, struct ifl_error *error)
{
    *side =
        (struct side){gsl_vector_calloc(k), gsl_matrix_calloc(k, k), gsl_matrix_calloc(k, k), 0};
    return side->sum && side->bread && side->variance ? 0 : ifl_fail_nomem(error);
}

static void close_side(struct side *side)
{
    gsl_vector_free(side->sum);
    gsl_matrix_free(side->bread);
    gsl_matrix_free(side->variance);
}

/* ---- a recording alone ---- */

/* What the model is off in a run, as far as other runs say: all times per token by one factor, and
 * all times to the first token by another. */
static void add_model(const gsl_matrix *levels, gsl_matrix *variance)
{
    const double first = judge_model_error(TTFT), token = judge_model_error(TPOT);
    for (size_t i = 0; i < levels->size2; i++)
        for (size_t j = 0; j < levels->size2; j++) {
            const double of_i = gsl_matrix_get(levels, TPOT, i) + gsl_matrix_get(levels, E2E, i);
            const double of_j = gsl_matrix_get(levels, TPOT, j) + gsl_matrix_get(levels, E2E, j);
            *gsl_matrix_ptr(variance, i, j) +=
                token * token * of_i * of_j +
                first * first * gsl_matrix_get(levels, TTFT, i) * gsl_matrix_get(levels, TTFT, j);
        }
}

/* Of the own fit, in the units of its own medians. */
static void take_units(const struct compared *c, const struct fit *own, gsl_matrix *of)
{
    for (size_t i = 0; i < c->k; i++)
        for (size_t j = 0; j < c->k; j++)
            *gsl_matrix_ptr(of, i, j) *= fit_unit(c->fit, c->of[i]) / fit_unit(own, c->of[i]) *
                                         (fit_unit(c->fit, c->of[j]) / fit_unit(own, c->of[j]));
}

/* The own values are where the own scores are 0. */
static void take_sum(const struct compared *c, const struct fit *own, struct side *side)
{
    for (size_t j = 0; j < c->k; j++) {
        const enum parameter p = c->of[j];
        const double units =
            parameter_distance(p, c->fit->value[p], own->value[p]) / fit_unit(c->fit, p);
        gsl_vector_const_view column = gsl_matrix_const_column(side->bread, j);
        gsl_blas_daxpy(units, &column.vector, side->sum);
    }
}

/* The variance of the sum has the correction of fill_sandwich. */
static int score_own(const struct compared *c, struct fit *own, struct side *side,
                     struct ifl_error *error)
{
    const size_t n_spans = own->residuals->n_spans;
    const double kept = 1 - (double)c->k / (double)n_spans;
    gsl_matrix *scores = gsl_matrix_calloc(n_spans, c->k);
    gsl_matrix *levels = gsl_matrix_calloc(N_LATENCIES, c->k);
    struct slopes slopes = {0};
    int rc =
        scores && levels ? slopes_open(&slopes, own, c->of, c->k, error) : ifl_fail_nomem(error);
    if (rc == 0) {
        slopes_score(&slopes, own, scores, side->bread, levels);
        gsl_blas_dgemm(CblasTrans, CblasNoTrans, 1 / (kept * kept), scores, scores, 0,
                       side->variance);
        add_model(levels, side->variance);
        take_units(c, own, side->bread);
        take_units(c, own, side->variance);
        take_sum(c, own, side);
        side->n_spans = n_spans;
    }
    slopes_close(&slopes);
    gsl_matrix_free(scores);
    gsl_matrix_free(levels);
    return rc;
}

/* Pool, factors and shares are those of the fit to all. */
static int take_alone(const struct compared *c, size_t recording, struct side *side,
                      double value[N_PARAMETERS], struct ifl_error *error)
{
    struct residuals residuals = {.setting = &c->options->setting,
                                  .recordings = &c->options->recordings[recording],
                                  .n_recordings = 1};
    struct fit own = {0};
    int rc = residuals_open(&residuals, error);
    if (rc == 0)
        rc = fit_open(&own, &residuals, error);
    if (rc == 0) {
        memcpy(own.value, c->fit->value, sizeof own.value);
        own.exchange_unit = c->fit->exchange_unit;
        for (size_t j = 0; j < c->k; j++)
            own.is_free[c->of[j]] = true;
        rc = fit_again(&own, error);
    }
    if (rc == 0)
        rc = score_own(c, &own, side, error);
    memcpy(value, own.value, sizeof own.value);
    fit_close(&own);
    residuals_close(&residuals);
    return rc;
}

/* ---- the test ---- */

/* Scratch of one comparison. */
struct scratch {
    gsl_matrix *both, *inverse, *a, *half, *variance, *axes; /* [k][k] */
    gsl_vector *difference, *squares;                        /* [k] */
    gsl_permutation *order;
    gsl_eigen_symmv_workspace *eigen;
};

static int open_scratch(struct scratch *s, size_t k, struct ifl_error *error)
{
    *s =
        (struct scratch){gsl_matrix_alloc(k, k),  gsl_matrix_alloc(k, k),  gsl_matrix_alloc(k, k),
                         gsl_matrix_alloc(k, k),  gsl_matrix_calloc(k, k), gsl_matrix_alloc(k, k),
                         gsl_vector_calloc(k),    gsl_vector_alloc(k),     gsl_permutation_alloc(k),
                         gsl_eigen_symmv_alloc(k)};
    return s->both && s->inverse && s->a && s->half && s->variance && s->axes && s->difference &&
                   s->squares && s->order && s->eigen
               ? 0
               : ifl_fail_nomem(error);
}

static void close_scratch(struct scratch *s)
{
    gsl_matrix_free(s->both);
    gsl_matrix_free(s->inverse);
    gsl_matrix_free(s->a);
    gsl_matrix_free(s->half);
    gsl_matrix_free(s->variance);
    gsl_matrix_free(s->axes);
    gsl_vector_free(s->difference);
    gsl_vector_free(s->squares);
    gsl_permutation_free(s->order);
    gsl_eigen_symmv_free(s->eigen);
}

static bool invert_both(const struct side *own, const struct side *others, struct scratch *s)
{
    int sign;
    gsl_matrix_memcpy(s->both, own->bread);
    gsl_matrix_add(s->both, others->bread);
    return gsl_linalg_LU_decomp(s->both, s->order, &sign) == 0 &&
           fabs(gsl_linalg_LU_det(s->both, sign)) > 0 &&
           gsl_linalg_LU_invert(s->both, s->order, s->inverse) == 0;
}

/* B2 (B1 + B2)^-1 takes the sum of scores of the first side to that of the difference. */
static void add_difference(const struct side *side, const struct side *others, double by,
                           struct scratch *s)
{
    gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1, others->bread, s->inverse, 0, s->a);
    gsl_blas_dgemv(CblasNoTrans, by, s->a, side->sum, 1, s->difference);
    gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1, s->a, side->variance, 0, s->half);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1, s->half, s->a, 1, s->variance);
}

/* The difference in standard deviations, and its correlations. False: one is no number. */
static bool standardise(struct scratch *s)
{
    const size_t k = s->difference->size;
    bool is_finite = true;
    for (size_t i = 0; i < k; i++) {
        const double sd = sqrt(gsl_matrix_get(s->variance, i, i));
        gsl_vector_view row = gsl_matrix_row(s->variance, i);
        gsl_vector_view column = gsl_matrix_column(s->variance, i);
        gsl_vector_scale(&row.vector, 1 / sd);
        gsl_vector_scale(&column.vector, 1 / sd);
        *gsl_vector_ptr(s->difference, i) /= sd;
    }
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++)
            is_finite = is_finite && isfinite(gsl_matrix_get(s->variance, i, j)) &&
                        isfinite(gsl_vector_get(s->difference, i));
    return is_finite;
}

/* T^2, along the axes of the variance that are not lost in rounding. */
static double sum_squares(struct scratch *s, size_t *rank)
{
    const double least = 1e-3;
    double sum = 0;
    *rank = 0;
    gsl_eigen_symmv(s->variance, s->squares, s->axes, s->eigen);
    for (size_t i = 0; i < s->difference->size; i++) {
        gsl_vector_const_view axis = gsl_matrix_const_column(s->axes, i);
        double along;
        gsl_blas_ddot(&axis.vector, s->difference, &along);
        if (gsl_vector_get(s->squares, i) < least)
            continue;
        sum += along * along / gsl_vector_get(s->squares, i);
        ++*rank;
    }
    return sum;
}

/* How often two of one deployment differ as much; 1 where the spans do not say. */
static int find_chance(const struct side *own, const struct side *others, double *chance,
                       struct ifl_error *error)
{
    struct scratch s;
    size_t rank = 0;
    const int rc = open_scratch(&s, own->sum->size, error);
    *chance = 1;
    if (rc == 0 && invert_both(own, others, &s)) {
        add_difference(own, others, 1, &s);
        add_difference(others, own, -1, &s);
        const double squares = standardise(&s) ? sum_squares(&s, &rank) : 0;
        const double n = (double)(own->n_spans + others->n_spans - 2), k = (double)rank;
        if (rank > 0 && n >= k)
            *chance = gsl_cdf_fdist_Q(squares * (n - k + 1) / (n * k), k, n - k + 1);
    }
    close_scratch(&s);
    return rc;
}

/* ---- does it matter? ---- */

/* The median of log(measured / simulated) over the recording's fitted requests, with another's
 * values. */
static int measure_off(const struct compared *c, size_t recording, const double value[],
                       double off[N_LATENCIES], struct ifl_error *error)
{
    const struct recording *r = &c->options->recordings[recording];
    struct trial trial;
    double *e = malloc((r->n_fit + 1) * sizeof *e);
    int rc = e ? trial_open(&trial, r->n, error) : ifl_fail_nomem(error);
    if (rc == 0)
        rc = trial_fly_fitted(&c->options->setting, r, value, 0, &trial, error);
    for (int l = 0; rc == 0 && l < N_LATENCIES; l++) {
        size_t n = 0;
        for (size_t i = 0; i < r->n_fit; i++)
            if (isfinite(log(r->of[l][i] / trial.of[l][i])))
                e[n++] = log(r->of[l][i] / trial.of[l][i]);
        off[l] = n ? gsl_stats_median(e, 1, n) : 0;
    }
    if (e)
        trial_close(&trial);
    free(e);
    return rc;
}

/* The latency in which each is off with the other's values, to contrary sides and by more than a
 * model is off in two runs of a hundred; N_LATENCIES: none. The profile's own errors move
 * parameters that stand for them from one load to another, and the latencies hardly. */
static enum latency find_off(const double of_a[N_LATENCIES], const double of_b[N_LATENCIES])
{
    static const enum latency order[] = {TPOT, TTFT};
    for (size_t i = 0; i < 2; i++) {
        const enum latency l = order[i];
        const double most = M_SQRT2 * judge_model_error(l) *
                            gsl_cdf_tdist_Pinv(1 - refused_at / 2, JUDGE_MODEL_RUNS);
        if (fmin(fabs(of_a[l]), fabs(of_b[l])) > most && of_a[l] * of_b[l] < 0)
            return l;
    }
    return N_LATENCIES;
}

static int refuse(const struct compared *c, size_t a, size_t b, const double of_a[],
                  const double of_b[], enum latency latency, double off, struct ifl_error *error)
{
    char text[400] = "";
    for (size_t j = 0; j < c->k; j++) {
        const struct parameter_row *row = &parameter_rows[c->of[j]];
        const size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s %.3g, not %.3g %s", j ? ", " : "", row->key,
                 of_b[c->of[j]] * row->shown, of_a[c->of[j]] * row->shown, row->unit);
    }
    return ifl_fail_at(error, c->options->recordings[b].path, 0, 0,
                       "alone it asks for %s, as %s does, with which its median %s is %+.0f%% off: "
                       "not of one deployment",
                       text, c->options->recordings[a].path, latency_names[latency],
                       100 * expm1(-off));
}

static int check_pair(const struct compared *c, const struct side sides[],
                      double (*const values)[N_PARAMETERS], size_t a, size_t b,
                      struct ifl_error *error)
{
    const double n = (double)c->options->n_recordings;
    double chance, of_a[N_LATENCIES], of_b[N_LATENCIES];
    int rc = find_chance(&sides[a], &sides[b], &chance, error);
    if (rc < 0 || chance > refused_at / (n * (n - 1) / 2))
        return rc;
    rc = measure_off(c, a, values[b], of_a, error);
    if (rc == 0)
        rc = measure_off(c, b, values[a], of_b, error);
    const enum latency latency = rc == 0 ? find_off(of_a, of_b) : N_LATENCIES;
    if (latency < N_LATENCIES)
        rc = refuse(c, a, b, values[a], values[b], latency, of_b[latency], error);
    return rc;
}

/* Host times stand for each other where one is not determined: both are compared. */
static void list(struct compared *c)
{
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        if ((c->fit->is_free[p] && !fit_is_profiled(p)) ||
            ((p == HOST_STEP || p == HOST_SEQ) && !c->options->hold[p]))
            c->of[c->k++] = p;
}

int apart_check(const struct identify_options *options, const struct fit *fit,
                struct ifl_error *error)
{
    const size_t n = options->n_recordings;
    struct compared c = {.options = options, .fit = fit};
    list(&c);
    if (n < 2 || c.k == 0)
        return 0;
    struct side *sides = calloc(n, sizeof *sides);
    double(*values)[N_PARAMETERS] = calloc(n, sizeof *values);
    int rc = sides && values ? 0 : ifl_fail_nomem(error);
    for (size_t r = 0; rc == 0 && r < n; r++) {
        rc = open_side(&sides[r], c.k, error);
        if (rc == 0)
            rc = take_alone(&c, r, &sides[r], values[r], error);
    }
    for (size_t b = 1; rc == 0 && b < n; b++)
        for (size_t a = 0; rc == 0 && a < b; a++)
            rc = check_pair(&c, sides, values, a, b, error);
    for (size_t r = 0; sides && r < n; r++)
        close_side(&sides[r]);
    free(sides);
    free(values);
    return rc;
}
