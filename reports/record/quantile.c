#include "record/quantile.h"

#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"
#include "record/pair.h"
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

/* Takes pairs apart, into new arrays with room for n_more samples. */
static int unpack(const int64_t *pairs, size_t n, size_t n_more, struct counted *to,
                  struct ifl_error *error)
{
    *to = (struct counted){.value = malloc((n + n_more) * sizeof *to->value),
                           .count = malloc((n + n_more) * sizeof *to->count)};
    if (n + n_more > 0 && (!to->value || !to->count))
        return ifl_fail_nomem(error);
    for (to->n = 0; to->n < n; to->n++) {
        to->value[to->n] = pair_ns(pairs[to->n]);
        to->count[to->n] = pair_times(pairs[to->n]);
    }
    return IFL_OK;
}

/* Both passes take the selection by value: it stays in registers. Returns the number of samples. */
static uint64_t count_all(struct selection selection, const int64_t *pairs, size_t n)
{
    uint64_t n_samples = 0;
    for (size_t i = 0; i < n; i++) {
        selection_count(&selection, pair_ns(pairs[i]), pair_times(pairs[i]));
        n_samples += pair_times(pairs[i]);
    }
    return n_samples;
}

static size_t keep_wanted(const struct selection selection, int64_t *pairs, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        pairs[kept] = pairs[i];
        kept += selection_wants(&selection, pair_ns(pairs[i]));
    }
    return kept;
}

/* Behind the pairs that are kept come the samples that stand for the rest: one a wanted bucket and
 * a last one, more where a count exceeds 32 bits. */
static int select_pairs(int64_t *pairs, size_t n, struct counted *of, struct ifl_error *error)
{
    struct selection selection;
    int64_t least = pairs[0], most = pairs[0];
    for (size_t i = 1; i < n; i++) {
        least = ifl_min(least, pairs[i]);
        most = ifl_max(most, pairs[i]);
    }
    const int64_t min = pair_ns(least), max = pair_ns(most);
    if (selection_open(&selection, min, max, n, error))
        return error->code;
    const uint64_t n_samples = count_all(selection, pairs, n);
    selection_mark(&selection, min, max);
    const size_t kept = keep_wanted(selection, pairs, n);
    const size_t n_more = 2 * QUANTILE_GRID + 1 + n_samples / UINT32_MAX;
    const int code = unpack(pairs, kept, n_more, of, error);
    if (!code)
        of->n = selection_put_rest(&selection, of->value, of->count, kept);
    selection_close(&selection);
    return code;
}

int quantile_thin(int64_t *pairs, size_t n, struct counted *of, struct ifl_error *error)
{
    const int code =
        n < SELECTION_LEAST ? unpack(pairs, n, 0, of, error) : select_pairs(pairs, n, of, error);
    return code ? code : sort_by_key(of->value, of->count, of->n, error);
}

void counted_free(struct counted *of)
{
    free(of->value);
    free(of->count);
    *of = (struct counted){0};
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
