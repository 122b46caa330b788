/* Radix selection of the ranks that the quantiles on the grid need, in two passes over samples that
 * need not be kept: the first counts them in buckets, the second takes those of buckets with a
 * wanted rank. Between two such buckets, all other samples become one sample with their count. */
#ifndef INFLIGHT_REPORTS_SELECTION_H
#define INFLIGHT_REPORTS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "record/scale.h"

#define SELECTION_LEAST ((size_t)1 << 13) /* with fewer samples, most would be taken */

struct selection {
    struct scale scale;
    size_t first, n; /* buckets [first, n) may hold samples */
    uint64_t *held;  /* [n], owned: samples in it */
    bool *wanted;    /* [n], owned: a wanted rank falls into it */
};

/* Opens a selection for about n samples from min to max. */
int selection_open(struct selection *selection, int64_t min, int64_t max, size_t n,
                   struct ifl_error *error);
/* Opens a selection for about n samples from 0 on. */
int selection_open_wide(struct selection *selection, size_t n, struct ifl_error *error);
void selection_close(struct selection *selection);

/* First pass: counts a sample that occurs `times` times. */
static inline void selection_count(struct selection *selection, int64_t value, uint64_t times)
{
    selection->held[scale_bin(selection->scale, value)] += times;
}

/* Call it after the first pass, with samples from min to max. Returns an upper bound of the samples
 * taken in the second pass, the rest included, if each sample occurs once. */
size_t selection_mark(struct selection *selection, int64_t min, int64_t max);

/* Second pass: returns true if the sample is to be taken. */
static inline bool selection_wants(const struct selection *selection, int64_t value)
{
    return selection->wanted[scale_bin(selection->scale, value)];
}

/* Call it after the second pass: appends, to the n samples taken, those that stand for the rest.
 * Returns the number of all; they are not sorted. */
size_t selection_put_rest(const struct selection *selection, int64_t *value, uint32_t *count,
                          size_t n);

#endif
