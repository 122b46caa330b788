/* Predicted output lengths for policies: exact, or with a stated error. */
#ifndef SIM_REPLICA_PREDICTOR_H
#define SIM_REPLICA_PREDICTOR_H

#include <stdint.h>

enum predictor_model { PREDICT_NONE, PREDICT_ORACLE, PREDICT_LOGNORMAL, PREDICT_BUCKETS };

struct predictor {
    enum predictor_model model;
    double sigma;          /* lognormal: standard deviation of log(predicted length / true
                              length) */
    int32_t bucket_tokens; /* buckets: their width */
    double miss_frac;      /* buckets: share of the predictions that fall into a bucket next to the
                              right one */
    uint64_t seed;
};

/* Returns the predicted output tokens of a request, from 1 to n_max_new; -1 without a predictor.
 * The result depends only on the seed, the request's id and its lengths. */
int32_t predictor_tell(const struct predictor *predictor, uint64_t request_id, int32_t n_output,
                       int32_t n_max_new);

#endif
