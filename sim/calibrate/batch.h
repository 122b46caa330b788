/* A step made up for a measurement: sequences of given lengths, with tables of blocks that lie
 * apart from each other, as those of a pool in use do. */
#ifndef SIM_CALIBRATE_BATCH_H
#define SIM_CALIBRATE_BATCH_H

#include "inflight/engine.h"

struct batch {
    struct ifl_engine_step step;
    struct ifl_step_totals totals;
    double kv_tokens; /* whose K/V the sequences read, the new ones included */
    /* what `step` points to */
    int32_t *token_ids, *positions;          /* [max_step_tokens] */
    int32_t *first_token, *first_block;      /* [max_step_seqs + 1] */
    int32_t *sampled;                        /* [max_step_seqs] */
    uint32_t *block_ids;                     /* [n_blocks] */
    bool *samples;                           /* [max_step_seqs] */
    const struct ifl_engine_options *limits; /* borrowed */
};

int batch_create(struct batch *batch, const struct ifl_engine_options *limits,
                 struct ifl_error *error);
void batch_finish(struct batch *batch);

void batch_clear(struct batch *batch);
/* A sequence with n_context tokens computed and n_new to compute: it decodes if that is one. False,
 * and no sequence, where the engine was opened for less. */
bool batch_add(struct batch *batch, int32_t n_context, int32_t n_new);
/* Of several sequences: equal, or from a quarter to seven quarters of what is said. */
enum batch_contexts { BATCH_EQUAL, BATCH_RAGGED };
/* n_seqs of them. */
bool batch_add_many(struct batch *batch, int32_t n_seqs, int32_t n_context, int32_t n_new,
                    enum batch_contexts contexts);

/* The i-th block of the pool in an order that leaves neighbours apart. */
uint32_t batch_block(const struct batch *batch, uint32_t i);

#endif
