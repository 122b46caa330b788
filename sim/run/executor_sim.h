/* The simulating executor: virtual time jumps to the end of the step that a cost model predicts. */
#ifndef SIM_RUN_EXECUTOR_SIM_H
#define SIM_RUN_EXECUTOR_SIM_H

#include "inflight/executor.h"

#include "base/event_heap.h"
#include "cost/cost.h"
#include "run/pipeline.h"
#include "run/recorded.h"

enum { EXECUTOR_SIM_MAX_IN_FLIGHT = 16 };

/* The steps of a replica in flight, one after the other: a ring. */
struct lane {
    struct cost *cost; /* borrowed; not used if steps are replayed */
    struct ifl_done of[EXECUTOR_SIM_MAX_IN_FLIGHT];
    unsigned first, n;
    struct pipeline *pipeline; /* if not NULL, it holds the steps of this replica and of all that
                                  share the pipeline */
};

/* Each step takes its cost times a lognormal factor of mean 1, keyed by the step's number. */
struct step_noise {
    double sigma; /* standard deviation of the factor's logarithm; 0: none */
    uint64_t seed;
};

struct executor_sim {
    struct recorded *recorded; /* borrowed; NULL: no steps are replayed */
    struct step_noise noise;
    int64_t now_ns;
    struct lane *lanes; /* [n_replicas] */
    struct event_heap ends;
    struct pipeline **pipelines; /* [n_pipelines] */
    uint32_t n_pipelines;
};

/* Creates the executor. `cost`, if not NULL, is the cost of all replicas. Returns 0 or the code of
 * `error`. */
int executor_sim_create(struct executor_sim *sim, struct cost *cost, uint32_t n_replicas,
                        struct ifl_error *error);
/* Sets the cost of n replicas, from number `first` on. */
void executor_sim_cost(struct executor_sim *sim, struct cost *cost, uint32_t first, uint32_t n);
/* Lets each n_engines consecutive replicas, of the n from number `first` on, share a pipeline with
 * these stages (more than one) and have up to `depth` steps in flight together. */
int executor_sim_pipeline(struct executor_sim *sim, const struct stages *stages, uint32_t first,
                          uint32_t n, uint32_t n_engines, int32_t depth, struct ifl_error *error);
void executor_sim_destroy(struct executor_sim *sim); /* zeroed memory is valid */

extern const struct ifl_executor_ops executor_sim_ops;

#endif
