/* A step on its way to the engine: copied out of the loop's description, which ends with submit,
 * into the arrays that an engine reads. Arrays grow to the largest step seen and are reused. */
#ifndef SIM_RUN_ENGINE_JOB_H
#define SIM_RUN_ENGINE_JOB_H

#include "inflight/engine.h"
#include "inflight/executor.h"

#include "cost/stages.h"
#include "replica/kv/pool.h"
#include "run/engine_keep.h"
#include "run/source.h"
#include "run/token_ids.h"

struct engine_job {
    struct ifl_engine_step step;
    struct ifl_done done;
    int code; /* of the engine's answer */
    /* So many jobs must have ended before it begins, for they sample its tokens; and so many moves
     * of the engine's out lane (engine_lane.h). */
    uint64_t after, after_stores;
    bool awaits_sends; /* and blocks that it writes are still to be read by other engines' lanes */
    struct ifl_stage_time stage_times[STAGES_MOST];
    struct ifl_stage_times passed;
    struct ifl_error error;
    /* what `step` points to */
    struct token_owner *owners; /* [n_seqs] */
    int32_t *token_ids, *positions, *first_token, *first_block, *n_rows, *adapters;
    int32_t *sampled; /* [rows]: a row for each token that is sampled, and for each guess */
    /* [n_seqs] guesses, the last of a sequence's new tokens; those that were drawn to hold; those
     * that do, once the job has run */
    int32_t *n_drafts, *n_drawn, *n_accepted;
    /* For sources that ask: [n_seqs] how many of the likeliest tokens, -1: none is asked for; what
     * the model says of them; rows of logits, of n_vocab each. */
    int32_t n_vocab;
    bool has_logits; /* the engine has rows of logits; set before */
    bool is_asked;
    int32_t *n_best;
    struct ifl_logprobs *logprobs;
    struct ifl_logprobs of_first; /* of an answer that begins beside the first of its group */
    float *logits;
    size_t cap_logprobs, cap_logits;
    uint32_t *block_ids, *spoilt;
    struct ifl_copy *outs, *ins, *copies;
    size_t cap_seqs, cap_tokens, cap_blocks, cap_copies, cap_spoilt;
    struct kept_job kept;
};

/* Finds the free blocks of a pool that have not been spoilt (filled with NaN) since they became
 * free. */
struct engine_spoiler {
    const struct kv_pool *pool; /* NULL: spoils nothing */
    bool *spoilt;               /* [n_blocks] free, and listed to be spoilt before */
};
int engine_spoiler_create(struct engine_spoiler *spoiler, const struct kv_pool *pool);
void engine_spoiler_finish(struct engine_spoiler *spoiler);

/* Copies a step into the job. The source has the prompts; NULL: they are drawn. 0 or IFL_E_NOMEM.
 */
int engine_job_write(struct engine_job *job, const struct ifl_step_desc *desc,
                     const struct source *source, struct engine_spoiler *spoiler);
void engine_job_finish(struct engine_job *job);
/* Room for so many sequences, tokens (and rows) and blocks. 0 or IFL_E_NOMEM. */
int engine_job_reserve(struct engine_job *job, size_t n_seqs, size_t n_tokens, size_t n_blocks);
/* `step` points to the arrays of sequences and tokens. */
void engine_job_point(struct engine_job *job);

/* Fills in logprobs, once the engine has run the job. */
void engine_job_weigh(struct engine_job *job);

/* True if the job writes a block of the device with n_sends[block] above 0. */
bool engine_job_writes(const struct engine_job *job, int32_t block_tokens, const uint32_t *n_sends);

/* True if a token that `earlier` samples is one that `later` computes. */
bool engine_job_feeds(const struct engine_job *earlier, const struct engine_job *later);

/* look_up: fills in the token ids, but for guesses, before the engine runs the job. remember:
 * stores the sampled tokens afterwards, and guesses that hold: those that the engine would have
 * sampled, too (verifies), or as many as were drawn; 0 or IFL_E_NOMEM. */
void engine_job_look_up(struct engine_job *job, const struct token_ids *ids);
int engine_job_remember(struct engine_job *job, struct token_ids *ids, bool verifies);

#endif
