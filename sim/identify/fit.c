#include "identify/fit_parts.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

/* Derivatives are differences over this part of a unit to both sides. */
static const double reach = 0.2;

/* A share in a cache is looked for up to this. */
static const double most_found = 0.99;
/* So is a factor of prompts' kernels: twice as fast, or slow, are other kernels than the profile's.
 */
static const double least_frac = 0.6, most_frac = 1.6;

enum latency fit_latency(enum parameter parameter)
{
    return parameter == FRONT_REQUEST || parameter == FRONT_PROMPT_TOKEN || parameter == CACHE_HIT
               ? TTFT
               : TPOT;
}

bool fit_is_profiled(enum parameter parameter)
{
    return parameter == BLOCKS || parameter == CACHE_HIT || parameter == PROMPT_FRAC;
}

enum parameter fit_followed(const struct fit *fit)
{
    return fit->is_free[CACHE_HIT]     ? CACHE_HIT
           : fit->is_free[PROMPT_FRAC] ? PROMPT_FRAC
                                       : N_PARAMETERS;
}

double fit_unit(const struct fit *fit, enum parameter parameter)
{
    const struct recording *r = fit->residuals->recordings;
    switch (parameter) {
    case HOST_STEP:
        return r->tpot_s / 10;
    case HOST_SEQ:
        return r->tpot_s / r->running / 10;
    case FRONT_REQUEST:
        return r->ttft_s / 10;
    case FRONT_PROMPT_TOKEN:
        return r->ttft_s / r->prompt / 10;
    case EXCHANGE_RATE:
        return fit->exchange_unit;
    case ALLREDUCE_RATE:
        return 1; /* a tenth would change no latency by more than chance does */
    default:
        return 0.1; /* of a logarithm */
    }
}

void fit_move(const struct fit *fit, enum parameter p, double units, double value[N_PARAMETERS])
{
    value[p] = parameter_moved(p, value[p], units * fit_unit(fit, p));
}

int fit_open(struct fit *fit, struct residuals *residuals, struct ifl_error *error)
{
    bool room = true;
    *fit = (struct fit){.residuals = residuals};
    for (int l = 0; l < N_LATENCIES; l++)
        room = (fit->predicted_s[l] = malloc((residuals->n + 1) * sizeof(double))) && room;
    return room ? 0 : ifl_fail_nomem(error);
}

void fit_close(struct fit *fit)
{
    for (int l = 0; l < N_LATENCIES; l++)
        free(fit->predicted_s[l]);
}

int fit_predict(struct fit *fit, const double value[N_PARAMETERS], struct ifl_error *error)
{
    fit->n_flights += RESIDUAL_SHIFTS * fit->residuals->n_recordings;
    return residuals_predict(fit->residuals, value, fit->predicted_s, error);
}

int fit_probe_exchange(struct fit *fit, bool *acts, struct ifl_error *error)
{
    const size_t n = fit->residuals->n;
    const double slower = 8, least = 0.01;
    double value[N_PARAMETERS], grown = 0;
    double *log_tpot = malloc((n + 1) * sizeof *log_tpot);
    size_t n_grown = 0;
    int rc = log_tpot ? fit_predict(fit, fit->value, error) : ifl_fail_nomem(error);
    for (size_t i = 0; rc == 0 && i < n; i++)
        log_tpot[i] = log(fit->predicted_s[TPOT][i]);
    memcpy(value, fit->value, sizeof value);
    value[EXCHANGE_RATE] /= slower;
    if (rc == 0)
        rc = fit_predict(fit, value, error);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const double by = log(fit->predicted_s[TPOT][i]) - log_tpot[i];
        grown += isfinite(by) ? expm1(by) : 0;
        n_grown += isfinite(by);
    }
    grown /= (double)(n_grown ? n_grown : 1);
    *acts = grown > least;
    fit->exchange_unit = *acts ? 0.1 / grown * (slower - 1) / fit->value[EXCHANGE_RATE] : 0;
    free(log_tpot);
    return rc;
}

static void fill_residuals(const struct fit *fit, enum latency latency, double *r)
{
    for (size_t i = 0; i < fit->residuals->n; i++)
        r[i] = residual_of(fit->residuals, latency, i, fit->predicted_s[latency][i]);
}

/* ---- the host, by the times per token ---- */

struct descent {
    struct fit *fit;
    enum parameter of[N_PARAMETERS];
    size_t k;
    double start[N_PARAMETERS];
    double *r; /* scratch */
    struct ifl_error *error;
};

static void place(const struct descent *d, const gsl_vector *x, double value[])
{
    memcpy(value, d->start, N_PARAMETERS * sizeof *value);
    for (size_t j = 0; j < d->k; j++)
        fit_move(d->fit, d->of[j], gsl_vector_get(x, j), value);
}

static int descent_f(const gsl_vector *x, void *context, gsl_vector *f)
{
    struct descent *d = context;
    double value[N_PARAMETERS];
    place(d, x, value);
    if (fit_predict(d->fit, value, d->error) < 0)
        return GSL_EFAILED;
    fill_residuals(d->fit, TPOT, d->r);
    for (size_t i = 0; i < d->fit->residuals->n; i++)
        gsl_vector_set(f, i, isnan(d->r[i]) ? 0 : loss_signed(d->r[i] / d->fit->scale[TPOT]));
    return GSL_SUCCESS;
}

static int descent_df(const gsl_vector *x, void *context, gsl_matrix *J)
{
    struct descent *d = context;
    const size_t n = d->fit->residuals->n;
    gsl_vector *at = gsl_vector_alloc(d->k), *up = gsl_vector_alloc(n), *down = gsl_vector_alloc(n);
    int status = at && up && down ? GSL_SUCCESS : GSL_ENOMEM;
    if (status != GSL_SUCCESS)
        ifl_fail_nomem(d->error);
    for (size_t j = 0; status == GSL_SUCCESS && j < d->k; j++) {
        gsl_vector_memcpy(at, x);
        gsl_vector_set(at, j, gsl_vector_get(x, j) + reach);
        status = descent_f(at, d, up);
        gsl_vector_set(at, j, gsl_vector_get(x, j) - reach);
        status = status == GSL_SUCCESS ? descent_f(at, d, down) : status;
        gsl_vector_sub(up, down);
        gsl_vector_scale(up, 1 / (2 * reach));
        gsl_matrix_set_col(J, j, up);
    }
    gsl_vector_free(at);
    gsl_vector_free(up);
    gsl_vector_free(down);
    return status;
}

static int run_descent(struct descent *d, size_t n_iterations)
{
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    const size_t n = d->fit->residuals->n;
    gsl_multifit_nlinear_fdf fdf = {
        .f = descent_f, .df = descent_df, .n = n, .p = d->k, .params = d};
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, n, d->k);
    gsl_vector *x = gsl_vector_calloc(d->k);
    int info = 0, status = w && x ? GSL_SUCCESS : GSL_ENOMEM;
    d->error->code = 0;
    if (status == GSL_SUCCESS)
        status = gsl_multifit_nlinear_init(x, &fdf, w);
    if (status == GSL_SUCCESS)
        gsl_multifit_nlinear_driver(n_iterations, 3e-3, 0, 1e-6, NULL, NULL, &info, w);
    if (w && x)
        place(d, gsl_multifit_nlinear_position(w), d->fit->value);
    else
        ifl_fail_nomem(d->error);
    gsl_multifit_nlinear_free(w);
    gsl_vector_free(x);
    return d->error->code;
}

size_t fit_list_free(const struct fit *fit, enum latency latency, enum parameter of[])
{
    size_t k = 0;
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        if (fit->is_free[p] && !fit_is_profiled(p) && fit_latency(p) == latency)
            of[k++] = p;
    return k;
}

/* r: scratch. The time to the last token is fitted with the times per token. */
static void rescale(struct fit *fit, enum latency latency, double *r)
{
    fill_residuals(fit, latency, r);
    fit->scale[latency] = robust_scale(r, fit->residuals->n);
    if (latency != TPOT)
        return;
    fill_residuals(fit, E2E, r);
    fit->scale[E2E] = robust_scale(r, fit->residuals->n);
}

/* Steps of Newton for the equations sum of instrument x score = 0. The derivatives of single
 * residuals are noisy, since requests meet other steps, and so are least squares with them; their
 * sums with smooth instruments are not. */
static int polish(struct fit *fit, enum latency latency, const enum parameter of[], size_t k,
                  struct ifl_error *error)
{
    enum { MOST_STEPS = 4 };
    struct slopes slopes;
    double by[N_PARAMETERS];
    int rc = slopes_open(&slopes, fit, of, k, error);
    for (int i = 0; rc == 0 && i < MOST_STEPS; i++) {
        double most = 0;
        rc = slopes_newton(&slopes, fit, latency, by, error);
        for (size_t j = 0; rc == 0 && j < k; j++) {
            const double units = fmax(-2, fmin(2, by[j]));
            fit_move(fit, of[j], units, fit->value);
            most = fmax(most, fabs(units));
        }
        if (rc == 0)
            rc = fit_predict(fit, fit->value, error);
        if (most < 0.002)
            break;
    }
    slopes_close(&slopes);
    return rc;
}

/* A descent finds the place and the scale of what is left. */
static int fit_host(struct fit *fit, bool descend, struct ifl_error *error)
{
    struct descent d = {.fit = fit, .error = error};
    d.k = fit_list_free(fit, TPOT, d.of);
    d.r = malloc((fit->residuals->n + 1) * sizeof *d.r);
    int rc = d.r ? fit_predict(fit, fit->value, error) : ifl_fail_nomem(error);
    if (rc == 0)
        rescale(fit, TPOT, d.r);
    if (rc == 0 && d.k > 0 && descend) {
        memcpy(d.start, fit->value, sizeof d.start);
        rc = run_descent(&d, 4);
        rc = rc == 0 ? fit_predict(fit, fit->value, error) : rc;
        rescale(fit, TPOT, d.r);
    }
    if (rc == 0 && d.k > 0)
        rc = polish(fit, TPOT, d.of, d.k, error);
    if (rc == 0)
        rescale(fit, TPOT, d.r);
    free(d.r);
    return rc;
}

/* ---- the front end, by the times to the first token ---- */

struct front {
    struct fit *fit;
    enum parameter of[2];
    size_t k;
    double *engine_s; /* [n] what the front end comes on top of */
    bool *shows;      /* [n] requests that show it */
    double scale;     /* of their residuals */
};

static double prompt_of(const struct fit *fit, size_t i)
{
    const struct fitted_row *row = &fit->residuals->rows[i];
    return recording_prompt(&fit->residuals->recordings[row->recording], row->row);
}

/* By one unit of the parameter, s. */
double fit_front_slope_s(const struct fit *fit, enum parameter p, size_t i)
{
    return fit_unit(fit, p) * (p == FRONT_PROMPT_TOKEN ? prompt_of(fit, i) : 1);
}

static double front_s(const struct front *front, const gsl_vector *x, size_t i)
{
    double s = front->engine_s[i];
    for (size_t j = 0; j < front->k; j++)
        s += gsl_vector_get(x, j) * fit_front_slope_s(front->fit, front->of[j], i);
    return fmax(s, 1e-6);
}

/* Of a request that queues the front end's time shortens the wait, and the first token comes as it
 * would. */
bool fit_shows_front(const struct fit *fit, size_t i)
{
    const struct residuals *residuals = fit->residuals;
    return residuals->wait_s[i] < 2 * residuals->recordings[residuals->rows[i].recording].tpot_s;
}

size_t fit_n_front(const struct fit *fit)
{
    size_t n = 0;
    for (size_t i = 0; i < fit->residuals->n; i++)
        n += fit_shows_front(fit, i);
    return n / RESIDUAL_SHIFTS;
}

static int front_f(const gsl_vector *x, void *context, gsl_vector *f)
{
    const struct front *front = context;
    for (size_t i = 0; i < front->fit->residuals->n; i++) {
        const double r = residual_of(front->fit->residuals, TTFT, i, front_s(front, x, i));
        gsl_vector_set(f, i, front->shows[i] ? loss_signed(r / front->scale) : 0);
    }
    return GSL_SUCCESS;
}

/* The longest first token of all, or its part of a token. */
static double most_front(const struct fit *fit, enum parameter p)
{
    double most = 0;
    for (size_t i = 0; i < fit->residuals->n; i++) {
        const struct fitted_row *row = &fit->residuals->rows[i];
        const double s = fit->residuals->recordings[row->recording].of[TTFT][row->row];
        most = fmax(most, p == FRONT_PROMPT_TOKEN ? s / prompt_of(fit, i) : s);
    }
    return most;
}

/* Where prompts are nearly of one length, a long time a request with a short one a token, or the
 * contrary, has the same losses: no further than what was measured allows. */
static void keep_in_bounds(struct fit *fit, enum parameter p)
{
    const double most = most_front(fit, p);
    fit->value[p] = fmax(-most, fmin(most, fit->value[p]));
}

/* Least losses over the front end, with the engine's part of the latencies as it was flown. */
static int descend_front(struct front *front, struct ifl_error *error)
{
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    const size_t n = front->fit->residuals->n;
    gsl_multifit_nlinear_fdf fdf = {.f = front_f, .n = n, .p = front->k, .params = front};
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, n, front->k);
    gsl_vector *x = gsl_vector_calloc(front->k);
    int info;
    if (w && x && gsl_multifit_nlinear_init(x, &fdf, w) == GSL_SUCCESS)
        gsl_multifit_nlinear_driver(50, 1e-5, 1e-8, 1e-8, NULL, NULL, &info, w);
    for (size_t j = 0; w && x && j < front->k; j++)
        front->fit->value[front->of[j]] += gsl_vector_get(gsl_multifit_nlinear_position(w), j) *
                                           fit_unit(front->fit, front->of[j]);
    for (size_t j = 0; j < front->k; j++)
        keep_in_bounds(front->fit, front->of[j]);
    const int rc = w && x ? 0 : ifl_fail_nomem(error);
    gsl_multifit_nlinear_free(w);
    gsl_vector_free(x);
    return rc;
}

/* The scale of the requests that show the front end. */
static void take_engine(struct front *front, double *r)
{
    const struct fit *fit = front->fit;
    memcpy(front->engine_s, fit->predicted_s[TTFT], fit->residuals->n * sizeof(double));
    for (size_t i = 0; i < fit->residuals->n; i++) {
        front->shows[i] = fit_shows_front(fit, i) && isfinite(front->engine_s[i]);
        r[i] = front->shows[i] ? residual_of(fit->residuals, TTFT, i, front->engine_s[i])
                               : (double)NAN;
    }
    front->scale = robust_scale(r, fit->residuals->n);
}

static int find_front(struct front *front, size_t n_rounds, double *r, struct ifl_error *error)
{
    struct fit *fit = front->fit;
    int rc = 0;
    for (size_t round = 0; rc == 0 && front->k > 0 && round < n_rounds; round++) {
        take_engine(front, r);
        rc = descend_front(front, error);
        if (rc == 0)
            rc = fit_predict(fit, fit->value, error);
    }
    take_engine(front, r);
    fit->front_scale = front->scale;
    return rc == 0 && front->k > 0 ? polish(fit, TTFT, front->of, front->k, error) : rc;
}

static int fit_front(struct fit *fit, size_t n_rounds, struct ifl_error *error)
{
    const size_t n = fit->residuals->n;
    struct front front = {
        .fit = fit, .engine_s = malloc((n + 1) * sizeof(double)), .shows = malloc(n + 1)};
    double *r = malloc((n + 1) * sizeof *r);
    int rc = front.engine_s && front.shows && r ? 0 : ifl_fail_nomem(error);
    front.k = fit_list_free(fit, TTFT, front.of);
    if (rc == 0)
        rc = find_front(&front, n_rounds, r, error);
    if (rc == 0) {
        take_engine(&front, r);
        fit->front_scale = front.scale;
        rescale(fit, TTFT, r);
    }
    free(front.engine_s);
    free(front.shows);
    free(r);
    return rc;
}

/* ---- all ---- */

int fit_refit(struct fit *fit, struct ifl_error *error)
{
    const int rc = fit_host(fit, false, error);
    return rc == 0 ? fit_front(fit, 1, error) : rc;
}

static int fit_both(struct fit *fit, struct ifl_error *error)
{
    const int rc = fit_host(fit, true, error);
    return rc == 0 ? fit_front(fit, 2, error) : rc;
}

/* With scales of what is left where the fit stands. */
static int find_profiled(struct fit *fit, enum parameter p, size_t n, double low, double high,
                         bool refit, struct ifl_error *error)
{
    double *r = malloc((fit->residuals->n + 1) * sizeof *r);
    int rc = r ? fit_predict(fit, fit->value, error) : ifl_fail_nomem(error);
    if (rc == 0) {
        rescale(fit, TPOT, r);
        rescale(fit, TTFT, r);
        rc = profile_search(fit, p, n, low, high, refit, error);
    }
    free(r);
    return rc;
}

/* Between the ends of its interval: the neighbours of the best point that was looked at. */
static int narrow_pool(struct fit *fit, struct ifl_error *error)
{
    return find_profiled(fit, BLOCKS, PROFILE_FEW, fit->low[BLOCKS], fit->high[BLOCKS], true,
                         error);
}

/* A pool that is found beside a host that is far off is far off, too, and the contrary: each of its
 * values is judged with the others fitted anew. */
static int find_pool(struct fit *fit, struct ifl_error *error)
{
    const double ratio = 1.3, middle = fit->value[BLOCKS];
    int rc = find_profiled(fit, BLOCKS, PROFILE_FEW, middle / ratio, middle * ratio, true, error);
    if (rc == 0)
        rc = narrow_pool(fit, error);
    return rc == 0 ? fit_both(fit, error) : rc;
}

/* A pool that is far off makes the host look faster or slower than it is, so it comes first; and a
 * share in a cache that is far off makes the server look as if it had no time to spare. */
int fit_find(struct fit *fit, double least_blocks, double most_blocks, struct ifl_error *error)
{
    int rc = 0;
    if (fit->is_free[CACHE_HIT])
        rc = find_profiled(fit, CACHE_HIT, PROFILE_COARSE, 0, most_found, false, error);
    if (rc == 0 && fit->is_free[BLOCKS])
        rc = find_profiled(fit, BLOCKS, PROFILE_COARSE, least_blocks, most_blocks, false, error);
    if (rc == 0)
        rc = fit_both(fit, error);
    if (rc == 0 && fit->is_free[CACHE_HIT])
        rc = profile_search(fit, CACHE_HIT, PROFILE_FINE, 0, most_found, true, error);
    if (rc == 0 && fit->is_free[PROMPT_FRAC])
        rc = profile_search(fit, PROMPT_FRAC, PROFILE_FINE, least_frac, most_frac, true, error);
    if (rc == 0 && fit->is_free[BLOCKS])
        rc = find_pool(fit, error);
    if (rc == 0 && fit_followed(fit) < N_PARAMETERS)
        rc = profile_zoom(fit, fit_followed(fit), error);
    if (rc == 0 && fit_followed(fit) < N_PARAMETERS)
        rc = fit_both(fit, error);
    return rc == 0 ? interval_bound(fit, error) : rc;
}

int fit_again(struct fit *fit, struct ifl_error *error)
{
    const int rc = fit_both(fit, error);
    return rc == 0 ? interval_bound(fit, error) : rc;
}

double fit_lost_by(const struct fit *fit, enum latency latency, size_t row)
{
    const double r = residual_of(fit->residuals, latency, row, fit->predicted_s[latency][row]);
    return isnan(r) ? 0 : loss(r / fit->scale[latency]) + log(fit->scale[latency]);
}

double fit_lost(const struct fit *fit)
{
    double sum = 0;
    for (size_t i = 0; i < fit->residuals->n; i++)
        for (enum latency l = TTFT; l <= TPOT; l++)
            sum += fit_lost_by(fit, l, i);
    return sum;
}

int fit_refine(struct fit *fit, struct ifl_error *error)
{
    int rc = fit->is_free[BLOCKS] ? narrow_pool(fit, error) : 0;
    if (rc == 0 && fit->is_free[BLOCKS])
        rc = profile_zoom(fit, BLOCKS, error);
    if (rc == 0 && fit_followed(fit) < N_PARAMETERS)
        rc = profile_zoom(fit, fit_followed(fit), error);
    if (rc == 0)
        rc = fit_both(fit, error);
    return rc == 0 ? interval_bound(fit, error) : rc;
}
