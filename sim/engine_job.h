/* A step on its way to the engine: copied out of the loop's description, which ends with submit,
 * into the arrays that an engine reads. Arrays grow to the largest step seen and are reused. */
#ifndef SIM_ENGINE_JOB_H
#define SIM_ENGINE_JOB_H

#include "inflight/engine.h"
#include "inflight/executor.h"

#include "kv/pool.h"
#include "token_ids.h"

struct engine_job {
    struct ifl_engine_step step;
    struct ifl_done done;
    int code; /* of the engine's answer */
    struct ifl_error error;
    /* what `step` points to */
    struct token_owner *owners; /* [n_seqs] */
    int32_t *token_ids, *positions, *first_token, *first_block, *sampled;
    uint32_t *block_ids, *spoilt;
    bool *samples;
    struct ifl_copy *outs, *ins, *copies;
    size_t cap_seqs, cap_tokens, cap_blocks, cap_copies, cap_spoilt;
};

/* Which blocks of a pool nobody owns and have not been spoilt yet. */
struct engine_spoiler {
    const struct kv_pool *pool; /* NULL: spoils nothing */
    bool *spoilt;               /* [n_blocks] */
};
int engine_spoiler_create(struct engine_spoiler *spoiler, const struct kv_pool *pool);
void engine_spoiler_finish(struct engine_spoiler *spoiler);

/* 0, or -1 without memory. */
int engine_job_write(struct engine_job *job, const struct ifl_step_desc *desc,
                     struct engine_spoiler *spoiler);
void engine_job_finish(struct engine_job *job);

/* Before the engine runs it, and after. */
void engine_job_look_up(struct engine_job *job, const struct token_ids *ids);
int engine_job_remember(const struct engine_job *job, struct token_ids *ids);

#endif
