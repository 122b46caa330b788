/* Bins for values of all magnitudes: one wide near the origin, and doubling in width with the
 * distance from there, 1 << bits of them to each doubling (as in Tene's HdrHistogram). So a bin is
 * never wider than a 1 << bits-th of its distance, and a long tail leaves those narrow in which
 * most values lie. */
#ifndef INFLIGHT_REPORTS_SCALE_H
#define INFLIGHT_REPORTS_SCALE_H

#include <stddef.h>
#include <stdint.h>

struct scale {
    int64_t origin; /* no value is less */
    int bits;
};

static inline size_t scale_bin(struct scale scale, int64_t value)
{
    const uint64_t distance = (uint64_t)value - (uint64_t)scale.origin;
    const uint64_t finest = ((uint64_t)2 << scale.bits) - 1; /* up to there a bin is one wide */
    const int top_bit = 63 ^ __builtin_clzll(distance | finest);
    const int shift = top_bit - scale.bits;
    return ((uint64_t)shift << scale.bits) + (distance >> shift);
}

/* How many values fall into it, as a power of two. */
static inline int scale_width_bits(struct scale scale, size_t bin)
{
    const int doubling = (int)(bin >> scale.bits);
    return doubling > 0 ? doubling - 1 : 0;
}

/* The least of them. */
static inline int64_t scale_least(struct scale scale, size_t bin)
{
    const int shift = scale_width_bits(scale, bin);
    const uint64_t distance = (uint64_t)(bin - ((size_t)shift << scale.bits)) << shift;
    return (int64_t)((uint64_t)scale.origin + distance);
}

#endif
