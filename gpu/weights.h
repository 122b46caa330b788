/* A decoder's weights: their list, their order in memory and the source of their numbers.
 *
 * Matrices that one product multiplies are neighbours (query, key, value; gate, up; their biases
 * likewise), so that an engine can store the weights in the order of the list. Matrices are
 * [outputs][inputs], as checkpoints hold them. */
#ifndef GPU_WEIGHTS_H
#define GPU_WEIGHTS_H

#include "architecture.h"
#include "checkpoint.h"

enum weight_role {
    WEIGHT_EMBEDDING,
    /* of a layer */
    WEIGHT_NORM_IN,
    WEIGHT_Q,
    WEIGHT_K,
    WEIGHT_V,
    WEIGHT_Q_BIAS,
    WEIGHT_K_BIAS,
    WEIGHT_V_BIAS,
    WEIGHT_Q_NORM,
    WEIGHT_K_NORM,
    WEIGHT_OUT,
    WEIGHT_OUT_BIAS,
    WEIGHT_NORM_MLP,
    WEIGHT_GATE,
    WEIGHT_UP,
    WEIGHT_GATE_BIAS,
    WEIGHT_UP_BIAS,
    WEIGHT_DOWN,
    WEIGHT_DOWN_BIAS,
    /* behind the last layer */
    WEIGHT_NORM_END,
    WEIGHT_HEAD,
    N_WEIGHT_ROLES
};

struct weight {
    enum weight_role role;
    int32_t layer; /* 0 where it belongs to none */
    int64_t n_rows;
    int64_t n_columns; /* 0 for a vector of n_rows */
    size_t n_numbers;
    char name[96]; /* in a checkpoint */
};

/* Calls `visit` for every weight of the model, in order, until one returns other than 0. */
typedef int weight_visit_fn(void *context, const struct weight *weight, struct ifl_error *error);
int weights_for_each(const struct ifl_engine_model *model, weight_visit_fn *visit, void *context,
                     struct ifl_error *error);

/* Numbers of all weights together. */
int64_t weights_count(const struct ifl_engine_model *model);

/* Numbers that are uniform around 0. */
struct weight_drawing {
    uint64_t key;
    double deviation; /* standard deviation */
    int32_t n_threads;
};
void weights_draw(const struct weight_drawing *drawing, float *numbers, size_t n);

struct weight_source {
    const struct checkpoint *checkpoint; /* NULL: random */
    uint64_t seed;
    int32_t n_threads;      /* threads that draw */
    double greatest;        /* largest number that the engine can store; 0: that of fp32 */
    bool embedding_is_head; /* tied, and stored as the head */
    struct ifl_notes notes;
};

/* A checkpoint may say that its embeddings are tied and still hold a head. As transformers does
 * since 5.0 (PreTrainedModel.tie_weights; 4 took the embedding):
 * - a head that differs from the embedding is used, and `model` loses its tie;
 * - a head without an embedding serves as both. */
int weights_settle_tie(struct weight_source *source, struct ifl_engine_model *model,
                       struct ifl_error *error);

/* Random matrices are uniform with the variance 1 / inputs, which keeps activations of order one;
 * norms are near 1. Each number depends only on the seed, the weight and its index. A checkpoint's
 * weight with numbers that are infinite, NaN or beyond `greatest` is named in a note. */
int weight_fill(const struct weight_source *source, const struct weight *weight, float *numbers,
                struct ifl_error *error);

#endif
