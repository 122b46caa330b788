/* The profile of a parameter: the loss at each of its values, with the other parameters fitted
 * anew. */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_fit.h>
#include <math.h>
#include <string.h>

#include "identify/fit_parts.h"
#include "inflight/random.h"

enum { PROFILE_DRAWS = 1000 };

struct profile_point {
    double at, value[N_PARAMETERS], sum;
    double low_blocks, high_blocks; /* of the pool that was followed */
    double *of_span;                /* [n_spans] loss */
};

/* What a profile's losses are taken with. */
struct weights {
    double scale[N_LATENCIES][2]; /* of the requests that wait at its start, and of the others */
    bool *is_front;               /* [n] */
};

/* The waits of a request have the errors of all the steps before its own, and of the pool: they are
 * not independent of those of another span, and say little of one step. So a factor of the kernels
 * is looked for in the first tokens and ends of requests that find a free server, and in the times
 * per token of all, each group with its own scale. A group of a few requests has that of all. */
static int weigh(struct fit *fit, enum parameter p, struct weights *weights,
                 struct ifl_error *error)
{
    const size_t n = fit->residuals->n, n_front = fit_n_front(fit);
    const size_t n_of[2] = {n / RESIDUAL_SHIFTS - n_front, n_front};
    double *r = malloc((n + 1) * sizeof *r);
    weights->is_front = malloc(n + 1);
    const bool room = r && weights->is_front;
    for (size_t i = 0; room && i < n; i++)
        weights->is_front[i] = fit_shows_front(fit, i);
    for (int l = 0; room && l < N_LATENCIES; l++)
        for (int g = 0; g < 2; g++) {
            const bool waits = g == 0 && l != TPOT;
            weights->scale[l][g] = p == PROMPT_FRAC && waits ? INFINITY : fit->scale[l];
            if (p != PROMPT_FRAC || waits || n_of[g] < RECORDING_LEAST)
                continue;
            for (size_t i = 0; i < n; i++)
                r[i] = weights->is_front[i] == g
                           ? residual_of(fit->residuals, l, i, fit->predicted_s[l][i])
                           : (double)NAN;
            weights->scale[l][g] = robust_scale(r, n);
        }
    free(r);
    return room ? 0 : ifl_fail_nomem(error);
}

static void lose(const struct fit *fit, const struct weights *weights, struct profile_point *point)
{
    const struct residuals *residuals = fit->residuals;
    memset(point->of_span, 0, residuals->n_spans * sizeof(double));
    point->sum = 0;
    for (size_t i = 0; i < residuals->n; i++)
        for (enum latency l = TTFT; l < N_LATENCIES; l++) {
            const double r = residual_of(residuals, l, i, fit->predicted_s[l][i]);
            const double lost = isnan(r) ? 0 : loss(r / weights->scale[l][weights->is_front[i]]);
            point->of_span[residuals->rows[i].span] += lost;
            point->sum += lost;
        }
}

/* A front end or a sequence that takes time off would stand for prompts that are found in a cache,
 * or computed faster. */
static int keep_possible(struct fit *fit, struct ifl_error *error)
{
    bool moves = false;
    for (enum parameter q = HOST_SEQ; q <= FRONT_PROMPT_TOKEN; q++) {
        const double least = fmax(fit->value[q], parameter_rows[q].low);
        moves = moves || least > fit->value[q];
        fit->value[q] = least;
    }
    return moves ? fit_predict(fit, fit->value, error) : 0;
}

/* With another share in a cache the same waits are those of another pool. */
static int follow_pool(struct fit *fit, struct ifl_error *error)
{
    enum { POINTS = 9 };
    const double ratio = 1.25, middle = fit->value[BLOCKS];
    return fit->is_free[BLOCKS]
               ? profile_search(fit, BLOCKS, POINTS, middle / ratio, middle * ratio, false, error)
               : 0;
}

/* The loss at a point, the other parameters fitted anew if asked. Scales stay. */
static int visit(struct fit *fit, enum parameter p, const struct weights *weights,
                 struct profile_point *point, bool refit, struct ifl_error *error)
{
    double scale[N_LATENCIES];
    memcpy(scale, fit->scale, sizeof scale);
    fit->value[p] = parameter_rows[p].is_whole ? round(point->at) : point->at;
    int rc = refit && p == CACHE_HIT ? follow_pool(fit, error) : 0;
    if (rc == 0)
        rc = fit_predict(fit, fit->value, error);
    if (rc == 0 && refit)
        rc = fit_refit(fit, error);
    if (rc == 0 && (p != BLOCKS || fit_followed(fit) < N_PARAMETERS))
        rc = keep_possible(fit, error);
    memcpy(fit->scale, scale, sizeof scale);
    memcpy(point->value, fit->value, sizeof point->value);
    point->low_blocks = fit->low[BLOCKS];
    point->high_blocks = fit->high[BLOCKS];
    if (rc == 0)
        lose(fit, weights, point);
    return rc;
}

static size_t least(const struct profile_point *points, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (points[i].sum < points[best].sum)
            best = i;
    return best;
}

static void swap(struct profile_point *a, struct profile_point *b)
{
    const struct profile_point kept = *a;
    *a = *b;
    *b = kept;
}

/* Visits the points first.. of a window that moves on, each from its neighbour's values. */
static int go_on(struct fit *fit, enum parameter p, const struct weights *weights,
                 struct profile_point *points, size_t first, size_t n, bool up,
                 struct ifl_error *error)
{
    const double by = parameter_distance(p, points[up ? 0 : n - 2].at, points[up ? 1 : n - 1].at);
    for (size_t i = first; i < n; i++) {
        struct profile_point *point = &points[up ? i : n - 1 - i];
        const struct profile_point *from = &points[up ? i - 1 : n - i];
        memcpy(fit->value, from->value, sizeof fit->value);
        point->at = parameter_moved(p, from->at, up ? by : -by);
        if (visit(fit, p, weights, point, true, error) < 0)
            return error->code;
    }
    return 0;
}

/* The least loss at an end of the window says that the best value lies beyond: the window moves by
 * half its width to that side, until the least lies within. */
static int slide(struct fit *fit, enum parameter p, const struct weights *weights,
                 struct profile_point *points, size_t n, struct ifl_error *error)
{
    enum { MOST_MOVES = 10 };
    const size_t n_kept = (n + 1) / 2;
    for (int move = 0; move < MOST_MOVES; move++) {
        const size_t best = least(points, n);
        const bool up = best == n - 1;
        if (!up && best != 0)
            break;
        for (size_t i = 0; i < n_kept; i++)
            swap(&points[up ? i : n - 1 - i], &points[up ? n - n_kept + i : n_kept - 1 - i]);
        if (go_on(fit, p, weights, points, n_kept, n, up, error) < 0)
            return error->code;
    }
    return 0;
}

/* The points are even in what a fit moves of the parameter. The ends of a pool that is refined are
 * none of the pool's own. */
static int search(struct fit *fit, enum parameter p, const struct weights *weights,
                  struct profile_point *points, size_t n, double low, double high, bool refit,
                  struct ifl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        const double part = (double)i / (double)(n - 1);
        points[i].at = parameter_rows[p].moved == LOGARITHM ? low * pow(high / low, part)
                                                            : low + (high - low) * part;
        if (visit(fit, p, weights, &points[i], refit, error) < 0)
            return error->code;
    }
    if (p == BLOCKS && refit && slide(fit, p, weights, points, n, error) < 0)
        return error->code;
    const size_t best = least(points, n);
    memcpy(fit->value, points[best].value, sizeof fit->value);
    fit->low[BLOCKS] = points[best].low_blocks;
    fit->high[BLOCKS] = points[best].high_blocks;
    return 0;
}

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* The loss at a point where spans are drawn with replacement. */
static double draw_sum(const struct fit *fit, const struct profile_point *point, uint64_t draw)
{
    const size_t n = fit->residuals->n_spans;
    double sum = 0;
    for (size_t s = 0; s < n; s++)
        sum += point->of_span[ifl_draw(0, IFL_DRAW_TRIAL, UINT64_MAX - draw, s) % n];
    return sum;
}

/* The least of a drawn profile is a draw of the estimate. */
static double draw_best(const struct fit *fit, const struct profile_point *points, size_t n,
                        uint64_t draw)
{
    size_t best = 0;
    double least_sum = INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double sum = draw_sum(fit, &points[i], draw);
        if (sum < least_sum) {
            least_sum = sum;
            best = i;
        }
    }
    return points[best].at;
}

/* The part of a span's score that a fit of k parameters leaves: fill_sandwich's correction. */
static double kept(const struct fit *fit)
{
    size_t k = 0;
    for (enum parameter q = 0; q < N_PARAMETERS; q++)
        k += fit->is_free[q];
    return 1 - (double)k / (double)fit->residuals->n_spans;
}

/* A bootstrap of n spans has the variance of n - 1 and the tails of a normal number: as Student's t
 * for n - 1. Scores of a factor of the kernels are smooth, and too small as those of the host are.
 */
static void widen(const struct fit *fit, enum parameter p, double middle, double *low, double *high)
{
    const double n = (double)fit->residuals->n_spans;
    const double by = sqrt(n / (n - 1)) * gsl_cdf_tdist_Pinv(0.95, n - 1) /
                      gsl_cdf_ugaussian_Pinv(0.95) / (p == PROMPT_FRAC ? kept(fit) : 1);
    *low = parameter_moved(p, middle, by * parameter_distance(p, middle, *low));
    *high = parameter_moved(p, middle, by * parameter_distance(p, middle, *high));
}

/* Half of what a step of the parameter is that no request shows: a share finds whole blocks. */
static double half_grain(const struct fit *fit, enum parameter p)
{
    const struct residuals *residuals = fit->residuals;
    const int32_t block_tokens = residuals->setting->config->serving.kv.block_tokens;
    return p == CACHE_HIT ? block_tokens / residuals->recordings->prompt / 2 : 0;
}

/* What spans leave open, and between the neighbours of the best point the density of a triangle. */
static double sd_of_pool(const struct fit *fit, const double draws[PROFILE_DRAWS], double step)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < PROFILE_DRAWS; i++) {
        const double x = parameter_distance(BLOCKS, fit->value[BLOCKS], draws[i]);
        sum += x;
        squares += x * x;
    }
    const double mean = sum / PROFILE_DRAWS;
    return sqrt(squares / PROFILE_DRAWS - mean * mean + step * step / 6) / fit_unit(fit, BLOCKS);
}

/* The profile is known at its points only. The least of a pool's, which falls to one place from
 * both sides and may fall faster on one, lies between the neighbours of the best point; others are
 * smooth: half a distance to both sides. */
static void bound(struct fit *fit, enum parameter p, const struct profile_point *points, size_t n)
{
    const struct parameter_row *row = &parameter_rows[p];
    double draws[PROFILE_DRAWS];
    const double step = parameter_distance(p, points[0].at, points[1].at);
    const double around = fmax(p == BLOCKS ? step : step / 2, half_grain(fit, p));
    for (uint64_t i = 0; i < PROFILE_DRAWS; i++)
        draws[i] = draw_best(fit, points, n, i);
    qsort(draws, PROFILE_DRAWS, sizeof *draws, by_size);
    double low = parameter_moved(p, draws[PROFILE_DRAWS / 20], -around);
    double high = parameter_moved(p, draws[PROFILE_DRAWS - 1 - PROFILE_DRAWS / 20], around);
    if (p != BLOCKS)
        widen(fit, p, draws[PROFILE_DRAWS / 2], &low, &high);
    else
        fit->pool_sd = sd_of_pool(fit, draws, step);
    fit->low[p] = fmax(row->low, row->is_whole ? floor(low) : low);
    fit->high[p] = fmin(row->high, row->is_whole ? ceil(high) : high);
}

/* How the others' best values go with the parameter's, by least squares over the points within its
 * interval and next to it. */
static void take_along(struct fit *fit, enum parameter p, const struct profile_point *points,
                       size_t n)
{
    double x[PROFILE_FINE], y[PROFILE_FINE], c0, c1, v00, v01, v11, sum;
    const double step = points[1].at - points[0].at;
    double *along = p == BLOCKS ? fit->along_pool : fit->along;
    for (enum parameter q = 0; q < N_PARAMETERS; q++) {
        size_t m = 0;
        along[q] = 0;
        for (size_t i = 0; i < n; i++)
            if (points[i].at > fit->low[p] - step && points[i].at < fit->high[p] + step) {
                x[m] = parameter_distance(p, fit->value[p], points[i].at) / fit_unit(fit, p);
                y[m++] = parameter_distance(q, fit->value[q], points[i].value[q]);
            }
        if (q == p || !fit->is_free[q] || m < 3)
            continue;
        gsl_fit_linear(x, 1, y, 1, m, &c0, &c1, &v00, &v01, &v11, &sum);
        along[q] = c1 / fit_unit(fit, q);
    }
}

static int open_points(const struct fit *fit, struct profile_point points[PROFILE_FINE],
                       struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < PROFILE_FINE; i++)
        if (!(points[i].of_span = malloc(fit->residuals->n_spans * sizeof(double))))
            rc = ifl_fail_nomem(error);
    return rc;
}

static void close_points(struct profile_point points[PROFILE_FINE], struct weights *weights)
{
    for (size_t i = 0; i < PROFILE_FINE; i++)
        free(points[i].of_span);
    free(weights->is_front);
}

/* The caller owes close_points, also after an error. */
static int sweep(struct fit *fit, enum parameter p, struct weights *weights,
                 struct profile_point points[PROFILE_FINE], size_t n, double low, double high,
                 bool refit, struct ifl_error *error)
{
    int rc = open_points(fit, points, error);
    if (rc == 0)
        rc = weigh(fit, p, weights, error);
    return rc == 0 ? search(fit, p, weights, points, n, low, high, refit, error) : rc;
}

int profile_search(struct fit *fit, enum parameter p, size_t n, double low, double high, bool refit,
                   struct ifl_error *error)
{
    struct profile_point points[PROFILE_FINE] = {{0}};
    struct weights weights = {0};
    int rc = sweep(fit, p, &weights, points, n, low, high, refit, error);
    if (rc == 0)
        bound(fit, p, points, n);
    if (rc == 0 && (p != BLOCKS || refit))
        take_along(fit, p, points, n);
    if (rc == 0)
        rc = fit_predict(fit, fit->value, error);
    close_points(points, &weights);
    return rc;
}

/* The part of the draws of spans in which the best point explains more than the last one does. A
 * row stands for a flight: so many say the same of a request. */
static double share_that_shows(const struct fit *fit, const struct profile_point *points, size_t n)
{
    const double shown = 2 * RESIDUAL_SHIFTS; /* half of the likelihood ratio's 95%, 1.9 */
    const struct profile_point *best = &points[least(points, n)], *last = &points[n - 1];
    size_t shows = 0;
    for (uint64_t i = 0; i < PROFILE_DRAWS; i++)
        shows += draw_sum(fit, last, i) - draw_sum(fit, best, i) > shown;
    return last->sum - best->sum > shown ? (double)shows / PROFILE_DRAWS : 0;
}

int profile_least(struct fit *fit, enum parameter p, double low, double high,
                  struct profile_end *end, struct ifl_error *error)
{
    const struct fit kept = *fit;
    struct profile_point points[PROFILE_FINE] = {{0}};
    struct weights weights = {0};
    int rc = sweep(fit, p, &weights, points, PROFILE_FINE, low, high, false, error);
    if (rc == 0) {
        bound(fit, p, points, PROFILE_FINE);
        *end = (struct profile_end){fit->low[p], points[least(points, PROFILE_FINE)].at,
                                    share_that_shows(fit, points, PROFILE_FINE)};
    }
    memcpy(fit->value, kept.value, sizeof fit->value);
    fit->low[p] = kept.low[p];
    fit->high[p] = kept.high[p];
    fit->pool_sd = kept.pool_sd;
    close_points(points, &weights);
    return rc == 0 ? fit_predict(fit, fit->value, error) : rc;
}

/* Of the losses at both sides, the spans' shares of their difference are sums of independent
 * scores: the other parameters' scores are 0 in their sum. */
static double sds_of(const struct fit *fit, const struct profile_point points[2])
{
    const size_t n = fit->residuals->n_spans;
    double sum = 0, squares = 0;
    for (size_t s = 0; s < n; s++)
        sum += points[0].of_span[s] - points[1].of_span[s];
    for (size_t s = 0; s < n; s++)
        squares += pow(points[0].of_span[s] - points[1].of_span[s] - sum / (double)n, 2);
    return squares > 0 ? kept(fit) * sum / sqrt(squares * (double)n / (double)(n - 1)) : 0;
}

int profile_test(struct fit *fit, enum parameter p, struct profile_test *test,
                 struct ifl_error *error)
{
    const double reach = 0.5;
    struct profile_point points[PROFILE_FINE] = {{0}};
    struct weights weights = {0};
    double value[N_PARAMETERS];
    int rc = open_points(fit, points, error);
    memcpy(value, fit->value, sizeof value);
    if (rc == 0)
        rc = weigh(fit, p, &weights, error);
    for (int side = 0; rc == 0 && side < 2; side++) {
        memcpy(fit->value, value, sizeof value);
        points[side].at = parameter_moved(p, value[p], (side ? reach : -reach) * fit_unit(fit, p));
        rc = visit(fit, p, &weights, &points[side], true, error);
    }
    *test = (struct profile_test){.sds = rc == 0 ? sds_of(fit, points) : 0};
    for (enum parameter q = 0; rc == 0 && q < N_PARAMETERS; q++)
        test->along[q] =
            parameter_distance(q, points[0].value[q], points[1].value[q]) / (2 * reach);
    memcpy(fit->value, value, sizeof value);
    close_points(points, &weights);
    return rc == 0 ? fit_predict(fit, fit->value, error) : rc;
}

int profile_zoom(struct fit *fit, enum parameter p, struct ifl_error *error)
{
    const struct parameter_row *row = &parameter_rows[p];
    const double around = (fit->high[p] - fit->low[p]) / 2;
    return profile_search(fit, p, PROFILE_FINE, fmax(fit->low[p] - around, row->low),
                          fmin(fit->high[p] + around, row->high), true, error);
}
