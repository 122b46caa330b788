/* A step made up for a measurement: sequences of given lengths, with tables of blocks that lie
 * apart from each other, as those of a pool in use do. */
#ifndef SIM_FIT_CALIBRATE_BATCH_H
#define SIM_FIT_CALIBRATE_BATCH_H

#include "inflight/engine.h"

struct batch {
    struct ifl_engine_step step;
    struct ifl_step_totals totals;
    double kv_tokens; /* K/V that the sequences read, in tokens, the new ones included */
    /* what `step` points to */
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
/* Adds a sequence with n_context tokens computed and n_new to compute; it decodes if n_new is 1.
 * False, and nothing is added, if the step would exceed the engine's limits. */
bool batch_add(struct batch *batch, int32_t n_context, int32_t n_new);
/* Contexts of several sequences: all n_context, or from a quarter to seven quarters of it. */
enum batch_contexts { BATCH_EQUAL, BATCH_RAGGED };
/* Adds n_seqs sequences. False at the first that exceeds the limits. */
bool batch_add_many(struct batch *batch, int32_t n_seqs, int32_t n_context, int32_t n_new,
                    enum batch_contexts contexts);

/* The i-th block of the pool in an order that leaves neighbours apart. */
uint32_t batch_block(const struct batch *batch, uint32_t i);

#endif
