/* Distances between two samples of a distribution. Both samples must ascend and have n values. */
#ifndef INFLIGHT_REPORTS_VALIDATE_DISTANCE_H
#define INFLIGHT_REPORTS_VALIDATE_DISTANCE_H

#include <stddef.h>
#include <stdint.h>

/* The largest difference between the two empirical distribution functions (Kolmogorov 1933,
 * Smirnov 1939), 0 to 1. */
double distance_ks(const int64_t *a, const int64_t *b, size_t n);
/* The first Wasserstein distance: for samples of equal size the mean distance between values of
 * equal rank (Vallender, Theory of Probability and its Applications 18, 1974). In their unit. */
double distance_wasserstein(const int64_t *a, const int64_t *b, size_t n);

#endif
