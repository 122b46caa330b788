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
    int code; /* code that the engine returned */
    /* The job begins once so many jobs have ended (those that sample the tokens it computes), and
     * so many moves of the engine's out lane (engine_lane.h). */
    uint64_t after, after_stores;
    bool awaits_sends; /* the job writes blocks that lanes of other engines have yet to read, and
                          begins after that */
    struct ifl_stage_time stage_times[STAGES_MOST];
    struct ifl_stage_times passed;
    struct ifl_error error;
    /* arrays that `step` points to */
    struct token_owner *owners; /* [n_seqs] */
    int32_t *token_ids, *positions, *first_token, *first_block, *n_rows, *adapters;
    int32_t *sampled; /* [rows] one row per sampled token and per guess */
    /* [n_seqs] each. n_drafts: guesses, the last of a sequence's new tokens; n_drawn: guesses drawn
     * to hold; n_accepted: guesses that hold, once the job has run */
    int32_t *n_drafts, *n_drawn, *n_accepted;
    /* For sources that ask for probabilities. n_best: [n_seqs] how many of the likeliest tokens are
     * asked for, -1: none; logprobs: the result; logits: rows of n_vocab each. */
    int32_t n_vocab;
    bool has_logits; /* the engine has rows of logits; set by the caller */
    bool is_asked;
    int32_t *n_best;
    struct ifl_logprobs *logprobs;
    struct ifl_logprobs of_first; /* for an answer of a group other than the first, whose first
                                     token is drawn */
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
    bool *spoilt;               /* [n_blocks] the block is free and was listed to be spoilt
                                   already */
};
int engine_spoiler_create(struct engine_spoiler *spoiler, const struct kv_pool *pool);
void engine_spoiler_finish(struct engine_spoiler *spoiler);

/* Copies a step into the job. Prompts come from the source; source NULL: they are drawn. Returns 0
 * or IFL_E_NOMEM. */
int engine_job_write(struct engine_job *job, const struct ifl_step_desc *desc,
                     const struct source *source, struct engine_spoiler *spoiler);
void engine_job_finish(struct engine_job *job);
/* Makes room for so many sequences, tokens (and rows), and blocks. Returns 0 or IFL_E_NOMEM. */
int engine_job_reserve(struct engine_job *job, size_t n_seqs, size_t n_tokens, size_t n_blocks);
/* Lets `step` point to the arrays of sequences and tokens. */
void engine_job_point(struct engine_job *job);

/* Fills in logprobs. Call it when the engine has run the job. */
void engine_job_weigh(struct engine_job *job);

/* True if the job writes a block of the device with n_sends[block] above 0. */
bool engine_job_writes(const struct engine_job *job, int32_t block_tokens, const uint32_t *n_sends);

/* True if `later` computes a token that `earlier` samples. */
bool engine_job_feeds(const struct engine_job *earlier, const struct engine_job *later);

/* look_up: fills in the token ids, except guesses, before the engine runs the job. remember: stores
 * the sampled tokens and the accepted guesses afterwards. With `verifies` a guess is accepted if
 * the engine would have sampled it; otherwise as many as were drawn are. Returns 0 or IFL_E_NOMEM.
 */
void engine_job_look_up(struct engine_job *job, const struct token_ids *ids);
int engine_job_remember(struct engine_job *job, struct token_ids *ids, bool verifies);

#endif
