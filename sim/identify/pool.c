/* The profile of the pool: the loss at each number of blocks, the other parameters fitted anew. */
#include <math.h>
#include <string.h>

#include "identify/fit_parts.h"
#include "inflight/random.h"

enum { POOL_DRAWS = 1000 };

struct profile_point {
    double blocks, value[N_PARAMETERS], sum;
    double *of_span; /* [n_spans] loss */
};

static int lose(struct fit *fit, struct profile_point *point)
{
    const struct residuals *residuals = fit->residuals;
    memset(point->of_span, 0, residuals->n_spans * sizeof(double));
    point->sum = 0;
    for (size_t i = 0; i < residuals->n; i++)
        for (enum latency l = TTFT; l < N_LATENCIES; l++) {
            const double r = residual_of(residuals, l, i, fit->predicted_s[l][i]);
            const double lost = isnan(r) ? 0 : loss(r / fit->scale[l]);
            point->of_span[residuals->rows[i].span] += lost;
            point->sum += lost;
        }
    return 0;
}

/* The loss at a number of blocks, the other parameters fitted anew if asked. Scales stay. */
static int visit(struct fit *fit, struct profile_point *point, bool refit, struct ifl_error *error)
{
    double scale[N_LATENCIES];
    memcpy(scale, fit->scale, sizeof scale);
    fit->value[BLOCKS] = round(point->blocks);
    int rc = fit_predict(fit, fit->value, error);
    if (rc == 0 && refit)
        rc = fit_refit(fit, error);
    memcpy(fit->scale, scale, sizeof scale);
    memcpy(point->value, fit->value, sizeof point->value);
    return rc < 0 ? rc : lose(fit, point);
}

static size_t least(const struct profile_point *points, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (points[i].sum < points[best].sum)
            best = i;
    return best;
}

static int search(struct fit *fit, struct profile_point *points, size_t n, double low, double high,
                  bool refit, struct ifl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        points[i].blocks = low * pow(high / low, (double)i / (double)(n - 1));
        if (visit(fit, &points[i], refit, error) < 0)
            return error->code;
    }
    const size_t best = least(points, n);
    memcpy(fit->value, points[best].value, sizeof fit->value);
    return 0;
}

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Spans are drawn with replacement; the least of the drawn profile is a draw of the estimate. */
static double draw_pool(const struct fit *fit, const struct profile_point *points, size_t n,
                        uint64_t draw)
{
    const size_t n_spans = fit->residuals->n_spans;
    size_t best = 0;
    double least_sum = INFINITY;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t s = 0; s < n_spans; s++)
            sum += points[i].of_span[ifl_draw(0, IFL_DRAW_TRIAL, UINT64_MAX - draw, s) % n_spans];
        if (sum < least_sum) {
            least_sum = sum;
            best = i;
        }
    }
    return points[best].blocks;
}

/* The profile is known between its points only: half a distance to both sides. */
static void bound_pool(struct fit *fit, const struct profile_point *points, size_t n)
{
    double draws[POOL_DRAWS];
    const double half = sqrt(points[1].blocks / points[0].blocks);
    for (uint64_t i = 0; i < POOL_DRAWS; i++)
        draws[i] = draw_pool(fit, points, n, i);
    qsort(draws, POOL_DRAWS, sizeof *draws, by_size);
    fit->low[BLOCKS] = floor(draws[POOL_DRAWS / 20] / half);
    fit->high[BLOCKS] = ceil(draws[POOL_DRAWS - 1 - POOL_DRAWS / 20] * half);
}

static int open_points(const struct fit *fit, struct profile_point points[POOL_FINE],
                       struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < POOL_FINE; i++)
        if (!(points[i].of_span = malloc(fit->residuals->n_spans * sizeof(double))))
            rc = ifl_fail_nomem(error);
    return rc;
}

int pool_search(struct fit *fit, size_t n, double low, double high, bool refit,
                struct ifl_error *error)
{
    struct profile_point points[POOL_FINE] = {{0}};
    int rc = open_points(fit, points, error);
    if (rc == 0)
        rc = search(fit, points, n, low, high, refit, error);
    if (rc == 0)
        bound_pool(fit, points, n);
    if (rc == 0)
        rc = fit_predict(fit, fit->value, error);
    for (size_t i = 0; i < POOL_FINE; i++)
        free(points[i].of_span);
    return rc;
}
