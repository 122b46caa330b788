/* Bins for values of all magnitudes: near the origin their width is 1, further away it doubles with
 * each doubling of the distance, with 1 << bits bins per doubling (as in Tene's HdrHistogram). A
 * bin is never wider than 1 / (1 << bits) of its distance, so a long tail does not widen the bins
 * that hold most values. */
#ifndef INFLIGHT_REPORTS_SCALE_H
#define INFLIGHT_REPORTS_SCALE_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/assert.h"

struct scale {
    int64_t origin;  /* no value is less */
    uint64_t finest; /* up to this distance bins have width 1 */
    int bits;
};

static inline size_t scale_bin(struct scale scale, int64_t value)
{
    ifl_assert(value >= scale.origin);
    const uint64_t distance = (uint64_t)value - (uint64_t)scale.origin;
    const int top_bit = 63 ^ __builtin_clzll(distance | scale.finest);
    const int shift = top_bit - scale.bits;
    return ((uint64_t)shift << scale.bits) + (distance >> shift);
}

/* log2 of the bin's width. */
static inline int scale_width_bits(struct scale scale, size_t bin)
{
    const int doubling = (int)(bin >> scale.bits);
    return doubling > 0 ? doubling - 1 : 0;
}

/* The smallest value in the bin. */
static inline int64_t scale_least(struct scale scale, size_t bin)
{
    const int shift = scale_width_bits(scale, bin);
    const uint64_t distance = (uint64_t)(bin - ((size_t)shift << scale.bits)) << shift;
    return (int64_t)((uint64_t)scale.origin + distance);
}

#endif
