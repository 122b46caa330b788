/* The requests that two runs have in common, from requests.csv. */
#ifndef INFLIGHT_REPORTS_COMPARE_REQUESTS_H
#define INFLIGHT_REPORTS_COMPARE_REQUESTS_H

#include "compare/matching.h"

enum latency { TTFT, TPOT, E2E, QUEUE, NORMALIZED, N_LATENCIES };
extern const char *const latency_name[N_LATENCIES];

/* A request that finished in both runs. */
struct request_pair {
    uint32_t pair;                         /* index of the pair of points in `matching` */
    double arrival_s;                      /* in the base */
    double latency_s[N_RUNS][N_LATENCIES]; /* NaN where undefined */
};

struct request_pairs {
    struct request_pair *of; /* [n], by pair, then arrival */
    size_t n;
    size_t *first; /* [matching->n_pairs + 1]: those of pair p are first[p] to first[p + 1] */
};

/* Reads the pairs; none if a run has no requests.csv. Two requests with one id and different
 * lengths are an error: the runs had different traces. */
int request_pairs_read(struct request_pairs *pairs, const struct matching *matching,
                       struct ifl_error *error);
void request_pairs_free(struct request_pairs *pairs);

#endif
