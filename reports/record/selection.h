/* Radix selection of the ranks that the quantiles on the grid need, in two passes over samples that
 * need not be kept: the first counts them in buckets, the second takes those of buckets with a
 * wanted rank. Between two such buckets, all other samples become one sample with their count. */
#ifndef INFLIGHT_REPORTS_SELECTION_H
#define INFLIGHT_REPORTS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "inflight/assert.h"
#include "inflight/error.h"

#define SELECTION_LEAST ((size_t)1 << 13) /* with fewer samples, most would be taken */

/* A bucket is 1 ns wide up to a distance of 2^bits from the origin. From there on its width doubles
 * each time that distance + 2^bits doubles. */
struct selection_buckets {
    int64_t origin; /* no sample is less */
    double finest;  /* 2^bits */
    uint64_t base;  /* subtracted, so that the first bucket is 0 */
    int shift;      /* mantissa bits dropped */
};

struct selection {
    struct selection_buckets buckets;
    size_t first, n; /* buckets [first, n) may hold samples */
    uint64_t *held;  /* [n], owned: samples in it */
    bool *wanted;    /* [n], owned: a wanted rank falls into it */
};

/* Rises with the value. A double of IEEE 754 is its exponent, then its mantissa: read as one whole
 * number, less the low bits of the mantissa, it counts buckets, without a search for the top bit.
 */
static inline size_t selection_bucket(struct selection_buckets of, int64_t value)
{
    ifl_assert(value >= of.origin);
    const double distance = (double)(value - of.origin) + of.finest;
    uint64_t word;
    memcpy(&word, &distance, sizeof word);
    return (word >> of.shift) - of.base;
}

/* Opens a selection for about n samples from min to max. */
int selection_open(struct selection *selection, int64_t min, int64_t max, size_t n,
                   struct ifl_error *error);
/* Opens a selection for about n samples from 0 on. */
int selection_open_wide(struct selection *selection, size_t n, struct ifl_error *error);
void selection_close(struct selection *selection);

/* First pass: counts a sample that occurs `times` times. */
static inline void selection_count(struct selection *selection, int64_t value, uint64_t times)
{
    selection->held[selection_bucket(selection->buckets, value)] += times;
}

/* Call it after the first pass, with samples from min to max. Returns an upper bound of the samples
 * taken in the second pass, the rest included, if each sample occurs once. */
size_t selection_mark(struct selection *selection, int64_t min, int64_t max);

/* Second pass: returns true if the sample is to be taken. */
static inline bool selection_wants(const struct selection *selection, int64_t value)
{
    return selection->wanted[selection_bucket(selection->buckets, value)];
}

/* Call it after the second pass: appends, to the n samples taken, those that stand for the rest.
 * Returns the number of all; they are not sorted. */
size_t selection_put_rest(const struct selection *selection, int64_t *value, uint32_t *count,
                          size_t n);

#endif
