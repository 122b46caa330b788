/* An independent reference: a decoder in double precision that keeps every key and value and scores
 * every query against every key, without blocks, passes or tiles. A key that a query does not see
 * is left out of its softmax. Rotary positions without scaling; biases and head norms if the
 * checkpoint has them. */
#ifndef TESTS_ENGINE_DENSE_H
#define TESTS_ENGINE_DENSE_H

#include "driver.h"

/* Of a query not before its key. NULL: sees all of them. */
typedef bool dense_sees_fn(const void *context, int32_t layer, int32_t kv_head, int32_t query,
                           int32_t key);

struct dense {
    struct ifl_engine_model model;
    int32_t n;             /* tokens */
    float *logits;         /* [n][n_vocab] */
    double *probabilities; /* [n_layers][n_q_heads][n][n] of query, key */
};

/* What K and V are stored as. */
typedef double dense_stored_fn(double number);

/* The fixture's tokens. */
void dense_run(struct dense *dense, const struct fixture_model *fixture, dense_sees_fn *sees,
               const void *context);
void dense_run_stored(struct dense *dense, const struct fixture_model *fixture, dense_sees_fn *sees,
                      const void *context, dense_stored_fn *stored);
/* All of it: with an adapter of what an engine is opened for, merged into the weights. */
struct dense_how {
    dense_sees_fn *sees;
    const void *context;
    dense_stored_fn *stored;
    const struct ifl_engine_options *adapted; /* NULL: the weights alone */
    int32_t adapter;                          /* from 1 on */
};
void dense_run_as(struct dense *dense, const struct fixture_model *fixture,
                  const struct dense_how *how);
void dense_free(struct dense *dense);

/* Sum of the probabilities of keys `key` over queries [first, end) and the heads of a KV head. */
double dense_votes(const struct dense *dense, int32_t layer, int32_t kv_head, int32_t first,
                   int32_t end, int32_t key);

#endif
