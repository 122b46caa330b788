#include "record/quantile.h"

#include <math.h>

#include "inflight/minmax.h"
#include "record/selection.h"
#include "tables/sort.h"

/* Walks up the samples: `below` of them lie under value[i]. */
struct walk {
    const int64_t *value;
    const uint32_t *count;
    size_t i;
    uint64_t below;
};

static uint32_t weight(const uint32_t *count, size_t i)
{
    return count ? count[i] : 1;
}

static int64_t climb(struct walk *walk, uint64_t rank)
{
    while (walk->below + weight(walk->count, walk->i) <= rank)
        walk->below += weight(walk->count, walk->i++);
    return walk->value[walk->i];
}

/* From the nearer end, as numpy does, so that the result never leaves [low, high]. */
static double between(double low, double high, double fraction)
{
    const double gap = high - low;
    return fraction < 0.5 ? low + gap * fraction : high - gap * (1 - fraction);
}

static double quantile_at(struct walk *walk, uint64_t n_samples, double q)
{
    const double position = (double)(n_samples - 1) * q, below = floor(position);
    const uint64_t rank = (uint64_t)below;
    const double low = (double)climb(walk, rank);
    if (rank + 1 >= n_samples)
        return low;
    struct walk ahead = *walk;
    return between(low, (double)climb(&ahead, rank + 1), position - below);
}

void quantile_find(const int64_t *value, const uint32_t *count, size_t n, const double *wanted,
                   size_t n_wanted, double *found)
{
    ifl_assert(ifl_ascends(value, n));
    ifl_assert(ifl_ascends_real(wanted, n_wanted));
    ifl_assert(n_wanted == 0 || (wanted[0] >= 0 && wanted[n_wanted - 1] <= 1));
    struct walk walk = {.value = value, .count = count};
    uint64_t n_samples = 0;
    for (size_t i = 0; i < n; i++)
        n_samples += weight(count, i);
    for (size_t i = 0; i < n_wanted; i++)
        found[i] = n_samples ? quantile_at(&walk, n_samples, wanted[i]) : (double)NAN;
}

double quantile_of_grid(size_t i)
{
    ifl_assert(i < QUANTILE_GRID);
    if (i < QUANTILE_STEPS)
        return (double)i / QUANTILE_STEPS;
    return i == QUANTILE_STEPS ? 0.999 : 1;
}

/* ---- thinning ---- */

size_t quantile_put(int64_t *value, uint32_t *count, size_t n, int64_t sample, uint64_t times)
{
    for (uint32_t part; times > 0; times -= part) {
        part = times < UINT32_MAX ? (uint32_t)times : UINT32_MAX;
        value[n] = sample;
        count[n++] = part;
    }
    return n;
}

static int sort_all(int64_t *value, const uint32_t *times, size_t n, uint32_t *count,
                    struct ifl_error *error)
{
    for (size_t i = 0; i < n; i++)
        count[i] = weight(times, i);
    return sort_by_key(value, count, n, error);
}

/* Both passes take the selection by value: it stays in registers. */
static void count_all(struct selection selection, const int64_t *value, const uint32_t *times,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        selection_count(&selection, value[i], weight(times, i));
}

static size_t keep(const struct selection selection, int64_t *value, const uint32_t *times,
                   size_t n, uint32_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        value[kept] = value[i];
        count[kept] = weight(times, i);
        kept += selection_wants(&selection, value[kept]);
    }
    return selection_put_rest(&selection, value, count, kept);
}

int quantile_thin(int64_t *value, const uint32_t *times, size_t n, uint32_t *count, size_t *n_left,
                  struct ifl_error *error)
{
    *n_left = n;
    if (n < SELECTION_LEAST)
        return sort_all(value, times, n, count, error);
    struct selection selection;
    int64_t min = value[0], max = value[0];
    for (size_t i = 1; i < n; i++) {
        min = ifl_min(min, value[i]);
        max = ifl_max(max, value[i]);
    }
    if (selection_open(&selection, min, max, n, error))
        return error->code;
    count_all(selection, value, times, n);
    selection_mark(&selection, min, max);
    *n_left = keep(selection, value, times, n, count);
    selection_close(&selection);
    return sort_by_key(value, count, *n_left, error);
}

/* ---- the distribution of one point ---- */

double quantile_mean(const int64_t *value, const uint32_t *count, size_t n)
{
    struct exact_sum sum = {0};
    uint64_t n_samples = 0;
    for (size_t i = 0; i < n; i++) {
        exact_add(&sum, value[i], (int64_t)weight(count, i));
        n_samples += weight(count, i);
    }
    return n_samples ? exact_value(sum) / (double)n_samples : (double)NAN;
}

void quantile_describe(const int64_t *value, const uint32_t *count, size_t n,
                       struct distribution *of)
{
    double grid[QUANTILE_GRID];
    for (size_t i = 0; i < QUANTILE_GRID; i++)
        grid[i] = quantile_of_grid(i);
    quantile_find(value, count, n, grid, QUANTILE_GRID, of->at_ns);
    of->mean_ns = quantile_mean(value, count, n);
}

static double percentile_s(const struct distribution *of, size_t percent)
{
    return of->at_ns[percent * QUANTILE_STEPS / 100] * 1e-9;
}

struct ifl_quantiles quantile_summary_s(const struct distribution *of)
{
    return (struct ifl_quantiles){.mean = of->mean_ns * 1e-9,
                                  .p50 = percentile_s(of, 50),
                                  .p90 = percentile_s(of, 90),
                                  .p95 = percentile_s(of, 95),
                                  .p99 = percentile_s(of, 99)};
}
