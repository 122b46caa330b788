/* A paired difference of two runs in one metric, with its interval and p-value. */
#ifndef INFLIGHT_REPORTS_COMPARE_DIFFERENCE_H
#define INFLIGHT_REPORTS_COMPARE_DIFFERENCE_H

#include "inflight/report.h"

#include "compare/requests.h"

struct difference {
    size_t n_pairs, n_samples; /* pairs in which both sides are defined; independent differences */
    double base, other;        /* means over the pairs; of several runs over the runs' means */
    struct ifl_interval of;    /* other - base */
    double p_value;            /* two-sided; NaN without an interval */
    double lower_frac, higher_frac;
};

/* Samples of both sides, collected one by one; zeroed: none. */
struct samples {
    double *base, *other, *difference, *weight; /* [cap], owned */
    size_t n, cap;
};

int samples_make(struct samples *samples, size_t cap, struct ifl_error *error);
void samples_free(struct samples *samples);

/* Computes the difference in a column of summary.csv over the pairs of a group. A value that is no
 * number is an error. */
int difference_of_replications(const struct matching *matching, size_t group,
                               const size_t column[N_RUNS], struct samples *scratch,
                               struct difference *difference, struct ifl_error *error);
/* Computes the difference in a latency over the requests of a group. With several runs, the mean of
 * each run is a sample. The requests of one run are correlated: samples are then the means of
 * twenty batches of requests in order of arrival, weighted by their sizes. Fewer than 200 requests
 * with this latency are one sample, without an interval. */
void difference_of_requests(const struct matching *matching, const struct request_pairs *requests,
                            size_t group, enum latency latency, struct samples *scratch,
                            struct difference *difference);

/* True if the interval does not contain zero. */
bool difference_is_sure(const struct difference *difference);

#endif
