/* Which K/V an engine keeps (replica/kv/keep.h says how much). The engine returns votes, which are
 * sums of attention. The K/V that they choose is gathered in an engine step of its own, directly
 * behind the step of the votes, so no later step reads K/V that was given up.
 *
 *   SnapKV        scores of the window over the prompt, pooled over a kernel of neighbours; beyond
 *                 the ends of the prompt there are zeros (mean) or nothing (maximum)
 *   H2O           scores of all tokens so far, those of the prompt included
 *   StreamingLLM  no scores. Positions are not renumbered, as keys are stored with theirs
 *
 * Each KV head of each layer chooses for itself, by the sum over its query heads. Of equal scores
 * the earlier token stays. The loop's thread calls all functions except engine_keep_choose, and
 * only for a step that is not running. */
#ifndef SIM_RUN_ENGINE_KEEP_H
#define SIM_RUN_ENGINE_KEEP_H

#include "inflight/engine.h"
#include "inflight/executor.h"

#include "replica/kv/keep.h"

/* The state of the slots of a request. */
struct kept_seq {
    int32_t n_slots, cap;
    bool decodes;       /* its prompt is computed */
    float *scores;      /* [n_heads][cap] */
    int32_t *positions; /* [n_heads][cap] of the tokens in the slots */
    int32_t *kept;      /* [n_heads][cap] as struct ifl_engine_keep has it */
};

struct engine_keep {
    struct keep keep; /* method KEEP_ALL: no step is changed */
    struct kv_block block;
    int32_t n_heads;      /* KV heads of all layers */
    struct kept_seq **of; /* [cap] by serial number; NULL: not seen yet */
    size_t cap;
};

/* The part of a job about kept K/V: arrays that the engine reads, and its votes. */
struct kept_job {
    int32_t *slots, *n_slots, *n_voters;
    bool *ends_prompt;
    struct kept_seq **seqs;
    struct ifl_engine_keep *keeps;
    float *votes;
    struct score *ranked; /* scratch, as long as the longest sequence */
    size_t cap_tokens, cap_seqs, cap_votes, cap_ranked;
};

void engine_keep_create(struct engine_keep *k, const struct keep *keep,
                        const struct ifl_engine_model *model, int32_t block_tokens);
void engine_keep_destroy(struct engine_keep *k);
void engine_keep_forget(struct engine_keep *k, uint64_t serial);
void kept_job_finish(struct kept_job *job);

/* Adds slots and voters to the step, which must have the sequences of the description. Returns 0 or
 * IFL_E_NOMEM. */
int engine_keep_write(struct engine_keep *k, struct kept_job *job, const struct ifl_step_desc *desc,
                      struct ifl_engine_step *step);
/* Call it when the step has been computed. Chooses what its sequences keep. Returns how many
 * entries of job->keeps are to be carried out. */
size_t engine_keep_choose(const struct engine_keep *k, struct kept_job *job,
                          const struct ifl_engine_step *step);

#endif
