/* One engine of an executor, the engine of one replica, on a thread of its own; in a pipeline on a
 * thread for each stage.
 *
 * The thread takes jobs from a ring in order, looks up their token ids, runs them and stamps their
 * ends. Token ids that an earlier job has yet to generate are known by then. A stage takes the jobs
 * that the stage before it has ended, in the same order. A step enters the first stage when the
 * tokens that it begins with have been sampled. */
#ifndef SIM_RUN_ENGINE_MEMBER_H
#define SIM_RUN_ENGINE_MEMBER_H

#include "base/guard.h"
#include "run/engine_job.h"
#include "run/engine_lane.h"
#include "run/executor_engine.h"

struct stage_thread {
    struct engine_member *of;
    int32_t stage;
    pthread_t thread;
};

struct engine_member {
    struct engine_hub *hub;
    const struct ifl_engine *engine;
    void *self; /* the open engine */
    char name[64];
    struct guard_call opens, steps, closes, sends, receives;
    int32_t n_stages;  /* threads: 1 without a pipeline */
    int32_t n_slots;   /* steps in flight of the pipeline; 0: there is no pipeline */
    uint32_t pipeline; /* number of the pipeline */
    struct engine_spoiler spoiler;
    struct engine_keep keep;
    bool guesses, verifies;
    bool has_logits; /* the engine accepts steps that ask for logits */
    struct proposer proposer;
    struct stage_thread threads[STAGES_MOST];
    int32_t n_threads; /* threads that have started */
    bool has_sending;
    pthread_mutex_t sending; /* held by the lane that reads blocks of this engine: one lane at a
                                time */
    int32_t block_tokens;
    struct engine_tier tier;
    struct engine_lane in, out;
    /* under the hub's lock */
    uint32_t *n_sends; /* [blocks] moves to other engines that have yet to read the block; NULL: no
                          such moves */
    uint64_t n_submitted, n_taken;
    uint64_t n_run[STAGES_MOST]; /* jobs that have left each stage */
    struct engine_job jobs[EXECUTOR_ENGINE_MAX_IN_FLIGHT];
};

/* Initialises zeroed memory as a member that engine_member_stop and engine_member_close accept. */
void engine_member_create(struct engine_member *member, struct engine_hub *hub,
                          const struct executor_engine_options *options);
/* Opens the engine and starts its threads. After success and failure alike, the caller must call
 * engine_member_stop when the hub is closing, and then engine_member_close. */
int engine_member_open(struct engine_member *member, const struct executor_engine_options *options,
                       struct ifl_error *error);
/* Ends the threads of the member, so that no lane of another member reads its blocks any more. */
void engine_member_stop(struct engine_member *member);
void engine_member_close(struct engine_member *member);

int engine_member_submit(struct engine_member *member, const struct ifl_step_desc *desc,
                         struct ifl_error *error);
/* Returns the first step that has ended and has not been taken, or NULL. Call it under the lock. */
const struct engine_job *engine_member_first(struct engine_member *member);
/* Returns the probabilities of the answer's token in the step that was taken last; NULL if they
 * were not asked for. */
const struct ifl_logprobs *engine_member_logprobs(struct engine_member *member, uint64_t serial,
                                                  int32_t seq, int32_t token);

#endif
