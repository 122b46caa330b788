/* Parameters that the fit does not determine: which predictions depend on them, and random draws of
 * them. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <string.h>

#include "identify/identify.h"
#include "inflight/random.h"

static bool is_open(const struct finding *finding)
{
    return finding->state == UNKNOWN && finding->high > finding->low;
}

/* Takes the parameter there. Of one that has a profile the others go with it. */
static void take_to(const struct identified *found, enum parameter p, double to,
                    double value[N_PARAMETERS])
{
    const double units = parameter_distance(p, value[p], to) / found->unit[p];
    value[p] = to;
    for (enum parameter q = 0; q < N_PARAMETERS; q++)
        if (p != q && p != BLOCKS && fit_is_profiled(p) && found->along[q] != 0)
            value[q] = fmax(parameter_moved(q, value[q], found->along[q] * units * found->unit[q]),
                            parameter_rows[q].low);
}

/* ---- what the rest depends on ---- */

static void rest_means(const struct recording *r, const struct trial *trial,
                       double mean[N_LATENCIES])
{
    for (int l = 0; l < N_LATENCIES; l++) {
        double sum = 0;
        size_t n = 0;
        for (size_t i = r->n_fit < r->n ? r->n_fit : 0; i < r->n; i++) {
            sum += isnan(trial->of[l][i]) ? 0 : trial->of[l][i];
            n += !isnan(trial->of[l][i]);
        }
        mean[l] = sum / (double)n;
    }
}

/* The most that a mean of the rest of the recording moves with the parameter. */
static int move(const struct identify_options *options, const struct recording *r,
                struct identified *found, enum parameter p, struct trial *trial,
                struct ifl_error *error)
{
    struct finding *of = &found->of[p];
    const double ends[] = {of->low, of->high};
    double before[N_LATENCIES], after[N_LATENCIES], value[N_PARAMETERS];
    int rc = trial_fly(&options->setting, r, found->value, 0, trial, error);
    rest_means(r, trial, before);
    for (int end = 0; rc == 0 && end < 2; end++) {
        memcpy(value, found->value, sizeof value);
        take_to(found, p, ends[end], value);
        rc = trial_fly(&options->setting, r, value, 0, trial, error);
        rest_means(r, trial, after);
        for (int l = 0; l < N_LATENCIES; l++)
            if (isfinite(before[l]))
                of->moves = fmax(of->moves, fabs(after[l] / before[l] - 1));
    }
    return rc;
}

int identify_depend(const struct identify_options *options, struct identified *found,
                    struct ifl_error *error)
{
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < options->n_recordings; k++) {
        const struct recording *r = &options->recordings[k];
        struct trial trial;
        rc = trial_open(&trial, r->n, error);
        for (enum parameter p = 0; rc == 0 && p < N_PARAMETERS; p++)
            if (is_open(&found->of[p]))
                rc = move(options, r, found, p, &trial, error);
        trial_close(&trial);
    }
    return rc;
}

/* ---- draws ---- */

static double normal(uint64_t draw, uint64_t index)
{
    return gsl_cdf_ugaussian_Pinv(
        ifl_uniform(ifl_draw(1, IFL_DRAW_TRIAL, UINT64_MAX - draw, index)));
}

/* The pool has a number of its own between those of the others. */
static uint64_t number_of(enum parameter p)
{
    const uint64_t number_of_pool = 9;
    return p == BLOCKS ? number_of_pool : (uint64_t)p + ((uint64_t)p >= number_of_pool);
}

/* The covariance is at most N_PARAMETERS wide; parameters that were not fitted have none. */
static int draw_fitted(const struct identified *found, uint64_t draw, double value[],
                       struct ifl_error *error)
{
    gsl_matrix *root = gsl_matrix_calloc(N_PARAMETERS, N_PARAMETERS);
    if (!root)
        return ifl_fail_nomem(error);
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        for (enum parameter q = 0; q < N_PARAMETERS; q++)
            gsl_matrix_set(root, p, q, found->covariance[p][q] + (p == q ? 1e-12 : 0));
    if (gsl_linalg_cholesky_decomp1(root) != 0)
        gsl_matrix_set_zero(root);
    for (enum parameter p = 0; p < N_PARAMETERS; p++) {
        double units = 0;
        for (enum parameter q = 0; q <= p; q++)
            units += gsl_matrix_get(root, p, q) * normal(draw, number_of(q));
        if (found->covariance[p][p] > 0)
            value[p] = parameter_moved(p, value[p], units * found->unit[p]);
    }
    gsl_matrix_free(root);
    return 0;
}

/* Even between the ends of what it may be. A pool acts by the part of it that is in use: in its
 * inverse. */
static double draw_open(const struct identified *found, enum parameter p, uint64_t draw)
{
    const struct finding *f = &found->of[p];
    const double part = gsl_cdf_ugaussian_P(normal(draw, number_of(p)));
    return p == BLOCKS ? 1 / (1 / f->low + part * (1 / f->high - 1 / f->low))
                       : parameter_moved(p, f->low, part * parameter_distance(p, f->low, f->high));
}

int identified_draw(const struct identified *found, uint64_t draw, double value[N_PARAMETERS],
                    struct ifl_error *error)
{
    memcpy(value, found->value, N_PARAMETERS * sizeof *value);
    if (draw == 0)
        return 0;
    if (draw_fitted(found, draw, value, error) < 0)
        return error->code;
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        if (is_open(&found->of[p]))
            take_to(found, p, draw_open(found, p, draw), value);
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        if (p != HOST_STEP)
            value[p] = fmin(fmax(value[p], parameter_rows[p].low), parameter_rows[p].high);
    return 0;
}
