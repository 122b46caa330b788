#include "record/selection.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"
#include "record/quantile.h"

#define MAX_BUCKETS ((size_t)1 << 16)
#define MAX_BUCKET_BITS 14
#define MAX_WIDE_BITS 12
#define DOUBLINGS ((size_t)10)
#define PER_BUCKET ((size_t)4) /* samples at least; a bucket costs as much as a sample */

static struct selection_buckets buckets_of(int64_t origin, int bits)
{
    struct selection_buckets of = {
        .origin = origin, .finest = ldexp(1, bits), .shift = DBL_MANT_DIG - 1 - bits};
    of.base = selection_bucket(of, origin);
    return of;
}

/* The smallest value in the bucket: selection_bucket, backwards. */
static int64_t least_of(struct selection_buckets of, size_t bucket)
{
    const uint64_t word = (of.base + bucket) << of.shift;
    double distance;
    memcpy(&distance, &word, sizeof distance);
    return of.origin + (int64_t)(distance - of.finest);
}

/* The finest buckets that n samples and MAX_BUCKETS allow. */
static void lay_out(struct selection *selection, int64_t min, int64_t max, size_t n)
{
    const size_t fair = n / PER_BUCKET, most = ifl_min(ifl_max(fair, (size_t)2), MAX_BUCKETS);
    int bits = MAX_BUCKET_BITS;
    while (bits > 0 && selection_bucket(buckets_of(min, bits), max) >= most)
        bits--;
    selection->buckets = buckets_of(min, bits);
    selection->n = selection_bucket(selection->buckets, max) + 1;
}

static int make_buckets(struct selection *selection, struct ifl_error *error)
{
    selection->held = calloc(selection->n, sizeof *selection->held);
    selection->wanted = calloc(selection->n, sizeof *selection->wanted);
    if (selection->held && selection->wanted)
        return IFL_OK;
    selection_close(selection);
    return ifl_fail_nomem(error);
}

int selection_open(struct selection *selection, int64_t min, int64_t max, size_t n,
                   struct ifl_error *error)
{
    ifl_assert(min <= max);
    *selection = (struct selection){0};
    lay_out(selection, min, max, n);
    return make_buckets(selection, error);
}

/* Most samples lie within some ten doublings; other buckets are never touched. */
int selection_open_wide(struct selection *selection, size_t n, struct ifl_error *error)
{
    int bits = MAX_WIDE_BITS;
    while (bits > 0 && (DOUBLINGS << bits) > n / PER_BUCKET)
        bits--;
    *selection = (struct selection){.buckets = buckets_of(0, bits)};
    selection->n = selection_bucket(selection->buckets, INT64_MAX) + 1;
    return make_buckets(selection, error);
}

void selection_close(struct selection *selection)
{
    free(selection->held);
    free(selection->wanted);
    *selection = (struct selection){0};
}

static uint64_t count_all(const struct selection *selection)
{
    uint64_t n = 0;
    for (size_t bucket = selection->first; bucket < selection->n; bucket++)
        n += selection->held[bucket];
    return n;
}

/* A quantile needs the samples of two neighbouring ranks. */
static void mark(struct selection *selection, uint64_t n_samples)
{
    size_t bucket = selection->first;
    uint64_t below = 0;
    for (size_t i = 0; i < 2 * QUANTILE_GRID; i++) {
        uint64_t rank = (uint64_t)((double)(n_samples - 1) * quantile_of_grid(i / 2)) + i % 2;
        rank = rank < n_samples ? rank : n_samples - 1;
        while (below > rank)
            below -= selection->held[--bucket];
        while (below + selection->held[bucket] <= rank)
            below += selection->held[bucket++];
        selection->wanted[bucket] = true;
    }
}

size_t selection_mark(struct selection *selection, int64_t min, int64_t max)
{
    if (max < min)
        return 0;
    selection->first = selection_bucket(selection->buckets, min);
    selection->n = selection_bucket(selection->buckets, max) + 1;
    const uint64_t n_samples = count_all(selection);
    size_t n_taken = 0;
    if (n_samples > 0)
        mark(selection, n_samples);
    for (size_t bucket = selection->first; bucket < selection->n; bucket++)
        n_taken += selection->wanted[bucket] ? selection->held[bucket] : 1;
    return n_taken + n_samples / UINT32_MAX;
}

/* A sum beyond 32 bits is split into several samples. */
size_t selection_put_rest(const struct selection *selection, int64_t *value, uint32_t *count,
                          size_t n)
{
    for (size_t bucket = selection->first; bucket < selection->n; bucket++) {
        uint64_t between = 0;
        for (; bucket < selection->n && !selection->wanted[bucket]; bucket++)
            between += selection->held[bucket];
        if (between > 0)
            n = quantile_put(value, count, n, least_of(selection->buckets, bucket - 1), between);
    }
    return n;
}
