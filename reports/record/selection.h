/* Radix selection of the ranks that the quantiles on the grid need, in two passes over samples that
 * need not be kept: the first counts them in buckets, the second takes those of buckets with a
 * wanted rank. The others become one sample between two such buckets, with their count. */
#ifndef INFLIGHT_REPORTS_SELECTION_H
#define INFLIGHT_REPORTS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "record/scale.h"

#define SELECTION_LEAST ((size_t)1 << 13) /* of fewer samples most would be taken */

struct selection {
    struct scale scale;
    size_t first, n; /* buckets [first, n) may hold some */
    uint64_t *held;  /* [n], owned: samples in it */
    bool *wanted;    /* [n], owned: a wanted rank falls into it */
};

/* For about n samples from min to max. */
int selection_open(struct selection *selection, int64_t min, int64_t max, size_t n,
                   struct ifl_error *error);
/* For about n samples from 0 on. */
int selection_open_wide(struct selection *selection, size_t n, struct ifl_error *error);
void selection_close(struct selection *selection);

/* The first pass: a sample that occurs `times` times. */
static inline void selection_count(struct selection *selection, int64_t value, uint64_t times)
{
    selection->held[scale_bin(selection->scale, value)] += times;
}

/* Behind the first pass, where samples were from min to max: no more than the result is taken in
 * the second one, the rest included, where each sample occurs once. */
size_t selection_mark(struct selection *selection, int64_t min, int64_t max);

/* The second pass: true if the sample is taken. */
static inline bool selection_wants(const struct selection *selection, int64_t value)
{
    return selection->wanted[scale_bin(selection->scale, value)];
}

/* Behind the second pass: appends what stands for the samples that were not taken to the n that
 * were. Returns their number; they are not sorted. */
size_t selection_put_rest(const struct selection *selection, int64_t *value, uint32_t *count,
                          size_t n);

#endif
