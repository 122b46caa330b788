/* The sizes of the pools of a point's replicas, as rows of steps.csv tell them. Replicas of a fleet
 * may differ. A replica without a row counts as one of mean size. */
#ifndef INFLIGHT_REPORTS_POOL_SIZES_H
#define INFLIGHT_REPORTS_POOL_SIZES_H

#include <stddef.h>

#include "inflight/error.h"

/* Zeroed: no size is known. */
struct pool_sizes {
    double *of; /* [cap] by replica, 0: not known; owned */
    size_t n, cap;
};

/* Notes the size of a replica's pool; ignores a replica that is no number from 0 on. */
int pool_sizes_note(struct pool_sizes *sizes, double replica, double size, struct ifl_error *error);
/* Returns the sum over all replicas up to the last one that is known. */
double pool_sizes_sum(const struct pool_sizes *sizes);
/* Accepts a zeroed struct. */
void pool_sizes_free(struct pool_sizes *sizes);

#endif
