/* A sample and the number of times that it occurs, in 64 bits:
 *
 *     bits 16 to 62: the sample, in ns, at most 39 hours
 *     bits 0 to 15:  how often it occurs, 1 to 65,535
 *
 * Pairs of one number take two thirds of the memory of a sample and a count apart, and sorted as
 * numbers they are sorted by sample. */
#ifndef INFLIGHT_REPORTS_PAIR_H
#define INFLIGHT_REPORTS_PAIR_H

#include <stdint.h>

#define PAIR_TIMES_BITS 16
#define PAIR_MOST_TIMES ((INT64_C(1) << PAIR_TIMES_BITS) - 1)
#define PAIR_MOST_NS ((INT64_C(1) << (63 - PAIR_TIMES_BITS)) - 1)

/* sample_ns is 0 to PAIR_MOST_NS, times 1 to PAIR_MOST_TIMES. */
static inline int64_t pair_of(int64_t sample_ns, int64_t times)
{
    return (int64_t)((uint64_t)sample_ns << PAIR_TIMES_BITS | (uint64_t)times);
}

static inline int64_t pair_ns(int64_t pair)
{
    return pair >> PAIR_TIMES_BITS;
}

static inline uint32_t pair_times(int64_t pair)
{
    return (uint32_t)(pair & PAIR_MOST_TIMES);
}

#endif
