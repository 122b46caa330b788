/* The real executor: an engine on a thread of its own, in wall time; in a pipeline a thread a
 * stage.
 *
 * `submit` writes a job into a ring and returns; the engine's thread takes jobs in order, looks up
 * their token ids (those that an earlier job has yet to generate included), runs them and stamps
 * their ends. A stage takes the jobs that the stage before it has ended, in the same order; a step
 * enters the first when the tokens that it begins with have been sampled. `next` waits for the
 * first end, or until the clock says until_ns. Ends are stamped under the lock that `next` reads
 * the clock under, so time never runs backwards for the loop.
 *
 * With a source the time is that of its clock, and `next` may answer EXECUTOR_SOURCE_SPEAKS. */
#ifndef SIM_RUN_EXECUTOR_ENGINE_H
#define SIM_RUN_EXECUTOR_ENGINE_H

#include "inflight/engine.h"
#include "inflight/executor.h"

#include "cost/stages.h"
#include "replica/kv/keep.h"
#include "replica/kv/pool.h"
#include "run/proposer.h"
#include "run/source.h"

enum { EXECUTOR_ENGINE_MAX_IN_FLIGHT = STAGES_MOST + 8 };

struct executor_engine_options {
    const struct ifl_engine *engine;
    struct ifl_engine_options open;
    uint64_t token_seed;
    size_t n_requests;                /* of the whole run */
    const struct source *source;      /* requests come from there; NULL: all are known */
    bool verifies;                    /* the engine says which guesses hold; else as drawn */
    struct proposer_options proposer; /* read if `guesses` */
    bool guesses;
    struct keep keep;            /* zeroed: all K/V is kept */
    const struct kv_pool *spoil; /* its free blocks are filled with NaN; NULL: left as they are */
    uint32_t pipeline;           /* number of open's pipeline, if it has stages, in reports */
};

struct executor_engine;

/* Opens the engine. NULL and an error if that fails. */
struct executor_engine *executor_engine_create(const struct executor_engine_options *options,
                                               struct ifl_error *error);
/* Lets a step under way end (soon, if `stop` is set). Accepts NULL. */
void executor_engine_destroy(struct executor_engine *executor);

extern const struct ifl_executor_ops executor_engine_ops;

#endif
