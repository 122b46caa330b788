/* The real executor: engines on threads of their own, in wall time (engine_member.h). One engine is
 * one replica.
 *
 * `submit` writes a job into the ring of the replica's engine and returns. `next` waits for the
 * first step to end, or until the clock says until_ns. Other threads move K/V between engines, and
 * between a device and its tier (engine_lane.h).
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

/* Options of one engine. Fields marked "run" are read only from the first engine's options. */
struct executor_engine_options {
    const struct ifl_engine *engine;
    struct ifl_engine_options open;
    uint64_t token_seed;              /* run */
    size_t n_requests;                /* run: requests of the whole run */
    const struct source *source;      /* run: the source of requests; NULL: all are known before
                                         the run */
    bool verifies;                    /* the engine decides which guesses hold; otherwise they are
                                         drawn */
    struct proposer_options proposer; /* read if `guesses` */
    bool guesses;
    struct keep keep;            /* zeroed: all K/V is kept */
    const struct kv_pool *spoil; /* pool with free blocks to be filled with NaN; NULL: they are
                                    left as they are */
    uint32_t pipeline;           /* number of open's pipeline, if it has stages, in reports */
    bool receives;               /* K/V comes from other engines, or goes there */
    size_t n_places;             /* places, of one block each, in the tier below the device; 0: no
                                    tier */
};

struct executor_engine;

/* Opens n engines, those of the replicas 0 to n - 1. Returns NULL, with `error` set, on failure. */
struct executor_engine *executor_engine_create(const struct executor_engine_options *options,
                                               uint32_t n, struct ifl_error *error);
/* Waits for steps under way to end (soon, if `stop` is set), then closes the engines. Accepts NULL.
 */
void executor_engine_destroy(struct executor_engine *executor);

extern const struct ifl_executor_ops executor_engine_ops;

#endif
