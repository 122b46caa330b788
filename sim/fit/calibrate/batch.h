/* A step made for a measurement: sequences of given lengths, with block tables in which
 * neighbouring blocks are far apart, as in a pool that is in use. */
#ifndef SIM_FIT_CALIBRATE_BATCH_H
#define SIM_FIT_CALIBRATE_BATCH_H

#include "inflight/engine.h"

struct batch {
    struct ifl_engine_step step;
    struct ifl_step_totals totals;
    double kv_tokens; /* tokens of K/V that the sequences read, new ones included */
    /* arrays that `step` points to */
    int32_t *token_ids, *positions;          /* [max_step_tokens] */
    int32_t *first_token, *first_block;      /* [max_step_seqs + 1] */
    int32_t *n_rows, *sampled;               /* [max_step_seqs] */
    uint32_t *block_ids;                     /* [n_blocks] */
    const struct ifl_engine_options *limits; /* borrowed */
};

int batch_create(struct batch *batch, const struct ifl_engine_options *limits,
                 struct ifl_error *error);
void batch_finish(struct batch *batch);

void batch_clear(struct batch *batch);
/* Adds a sequence with n_context computed tokens and n_new tokens to compute; it decodes if n_new
 * is 1. Returns false, and adds nothing, if the step would exceed the engine's limits. */
bool batch_add(struct batch *batch, int32_t n_context, int32_t n_new);
/* Contexts of several sequences: all n_context, or spread from a quarter to seven quarters of
 * n_context. */
enum batch_contexts { BATCH_EQUAL, BATCH_RAGGED };
/* Adds n_seqs sequences. Returns false at the first one that exceeds the limits. */
bool batch_add_many(struct batch *batch, int32_t n_seqs, int32_t n_context, int32_t n_new,
                    enum batch_contexts contexts);

/* The i-th block of the pool in an order that leaves neighbours apart. */
uint32_t batch_block(const struct batch *batch, uint32_t i);

#endif
