/* Several steps in flight at a replica: in the stages of a pipeline, or planned before the results
 * of the steps in front of them are known (in_flight.h). */
#ifndef SIM_REPLICA_OVERLAP_H
#define SIM_REPLICA_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

/* A request that is preempted while a step in flight computes for it loses its blocks at once,
 * since steps write in order. It does not start again before that step ends, and gets its token
 * then (vLLM, v1/core/sched/scheduler.py, update_from_output). It is not swapped to host memory
 * before that step ends. If the request has left by then, the token is lost. */

/* In which unfinished steps a request may be. */
enum overlap_request {
    OVERLAP_ONE_STEP, /* in one (Orca, Sarathi, Vidur) */
    OVERLAP_CHUNKS,   /* chunks of its prompt in several, a decode in one, since its token is not
                         known before that step ends */
    OVERLAP_TOKENS    /* decodes in several, too, each n_stages steps behind the last one: its
                         tokens are placeholders (vLLM v1, asynchronous) */
};

/* Which requests a step may hold. */
enum overlap_batches {
    OVERLAP_SHARED, /* any */
    OVERLAP_SLOTS,  /* requests that decode in its slot, and prompts; slots take turns (SGLang) */
    OVERLAP_ENGINES /* requests of a virtual engine, which is a replica with its share of the
                       blocks and one step at a time; engines share the stages (vLLM v0) */
};

/* Which requests count as running for batching modules, that is, against their max_seqs. */
enum overlap_seats {
    OVERLAP_SEATS_OF_ALL, /* those of all steps in flight (vLLM v1, Sarathi) */
    OVERLAP_SEATS_OF_STEP /* those of the step being planned: steps in flight have seats of their
                             own (Orca, Algorithm 1, max_bs; TensorRT-LLM, microBatchScheduler.h) */
};

struct overlap {
    int32_t depth;    /* most steps in flight; 0 and 1: one, and the fields below are not read */
    int32_t n_stages; /* stages of the pipeline, at most depth */
    enum overlap_request request;
    bool slots; /* OVERLAP_SLOTS: each slot has its own seats */
    enum overlap_seats seats;
    /* With a single stage: the engine plans a step when the previous step begins. The simulation
     * plans it when the previous step ends, but shows the plan only what was known when that step
     * began. The plan is the same, and steps can be promised. */
    bool hindsight;
    bool waits; /* after an empty plan the next plan is made when a step ends, not when a request
                   arrives */
};

static inline bool overlap_has_own_seats(const struct overlap *overlap)
{
    return overlap->slots || overlap->seats == OVERLAP_SEATS_OF_STEP;
}
/* True if a plan is shown only some of the requests on the device, and its counts cover only these.
 */
static inline bool overlap_counts_shown(const struct overlap *overlap)
{
    return overlap_has_own_seats(overlap) || overlap->request == OVERLAP_ONE_STEP;
}

#endif
