#include "record/quantile.h"

#include <math.h>
#include <stdbool.h>

#include "inflight/minmax.h"
#include "record/scale.h"
#include "tables/sort.h"

#define MAX_BUCKETS ((size_t)1 << 16)
#define MAX_BUCKET_BITS 14
#define PER_BUCKET ((size_t)4)        /* samples at least; a bucket costs as much as a sample */
#define MIN_TO_THIN ((size_t)1 << 13) /* fewer samples would mostly remain */

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

/* ---- thinning: radix selection of all wanted ranks at once ---- */

struct buckets {
    struct scale scale;
    size_t n;
    uint64_t *held;     /* [n] samples in it */
    bool *wanted;       /* [n] a wanted rank falls into it */
    uint16_t *of_value; /* of each sample */
};

_Static_assert(MAX_BUCKETS <= (size_t)UINT16_MAX + 1, "of_value holds the number of any bucket");

/* Chooses the finest scale that n samples and MAX_BUCKETS allow. */
static void lay_out(struct buckets *buckets, const int64_t *value, size_t n)
{
    const size_t most = ifl_min(n / PER_BUCKET, MAX_BUCKETS);
    int64_t min = value[0], max = value[0];
    for (size_t i = 1; i < n; i++) {
        min = ifl_min(min, value[i]);
        max = ifl_max(max, value[i]);
    }
    buckets->scale = (struct scale){.origin = min, .bits = MAX_BUCKET_BITS};
    while (scale_bin(buckets->scale, max) >= most)
        buckets->scale.bits--;
    buckets->n = scale_bin(buckets->scale, max) + 1;
}

static uint64_t fill(struct buckets *buckets, const int64_t *value, const uint32_t *times, size_t n)
{
    const struct scale scale = buckets->scale;
    uint64_t n_samples = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t bucket = scale_bin(scale, value[i]);
        buckets->of_value[i] = (uint16_t)bucket;
        buckets->held[bucket] += weight(times, i);
        n_samples += weight(times, i);
    }
    return n_samples;
}

/* A quantile needs the samples of two neighbouring ranks. */
static void mark(struct buckets *buckets, uint64_t n_samples)
{
    size_t bucket = 0;
    uint64_t below = 0;
    for (size_t i = 0; i < 2 * QUANTILE_GRID; i++) {
        uint64_t rank = (uint64_t)((double)(n_samples - 1) * quantile_of_grid(i / 2)) + i % 2;
        rank = rank < n_samples ? rank : n_samples - 1;
        while (below > rank)
            below -= buckets->held[--bucket];
        while (below + buckets->held[bucket] <= rank)
            below += buckets->held[bucket++];
        buckets->wanted[bucket] = true;
    }
}

size_t quantile_put(int64_t *value, uint32_t *count, size_t n, int64_t sample, uint64_t times)
{
    for (uint32_t part; times > 0; times -= part) {
        part = times < UINT32_MAX ? (uint32_t)times : UINT32_MAX;
        value[n] = sample;
        count[n++] = part;
    }
    return n;
}

/* A sum beyond 32 bits is split into several pairs; the merged samples were at least as many. */
static size_t keep(const struct buckets *buckets, int64_t *value, const uint32_t *times, size_t n,
                   uint32_t *count)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        value[kept] = value[i];
        count[kept] = weight(times, i);
        kept += buckets->wanted[buckets->of_value[i]];
    }
    for (size_t bucket = 0; bucket < buckets->n; bucket++) {
        uint64_t between = 0;
        for (; bucket < buckets->n && !buckets->wanted[bucket]; bucket++)
            between += buckets->held[bucket];
        if (between > 0)
            kept =
                quantile_put(value, count, kept, scale_least(buckets->scale, bucket - 1), between);
    }
    return kept;
}

static size_t thin(struct buckets *buckets, int64_t *value, const uint32_t *times, size_t n,
                   uint32_t *count)
{
    const uint64_t n_samples = fill(buckets, value, times, n);
    if (n_samples == 0)
        return 0;
    mark(buckets, n_samples);
    return keep(buckets, value, times, n, count);
}

static int sort_all(int64_t *value, const uint32_t *times, size_t n, uint32_t *count,
                    struct ifl_error *error)
{
    for (size_t i = 0; i < n; i++)
        count[i] = weight(times, i);
    return sort_by_key(value, count, n, error);
}

int quantile_thin(int64_t *value, const uint32_t *times, size_t n, uint32_t *count, size_t *n_left,
                  struct ifl_error *error)
{
    *n_left = n;
    if (n < MIN_TO_THIN)
        return sort_all(value, times, n, count, error);
    struct buckets buckets;
    lay_out(&buckets, value, n);
    buckets.held = calloc(buckets.n, sizeof *buckets.held);
    buckets.wanted = calloc(buckets.n, sizeof *buckets.wanted);
    buckets.of_value = malloc(n * sizeof *buckets.of_value);
    const bool room = buckets.held && buckets.wanted && buckets.of_value;
    if (room)
        *n_left = thin(&buckets, value, times, n, count);
    free(buckets.held);
    free(buckets.wanted);
    free(buckets.of_value);
    return room ? sort_by_key(value, count, *n_left, error) : ifl_fail_nomem(error);
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
