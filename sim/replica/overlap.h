/* Several steps in flight at a replica: in the stages of a pipeline, or planned before the results
 * of the steps in front of them are known (in_flight.h). */
#ifndef SIM_REPLICA_OVERLAP_H
#define SIM_REPLICA_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

/* A request that gives way while a step in flight computes for it loses its blocks at once, since
 * steps write in order; it does not start again before that step ends, and gets its token then
 * (vLLM, v1/core/sched/scheduler.py, update_from_output). To host memory it does not go before. The
 * token of a request that has left by then is lost. */

/* In which unfinished steps a request may be. */
enum overlap_request {
    OVERLAP_ONE_STEP, /* in one (Orca, Sarathi, Vidur) */
    OVERLAP_CHUNKS,   /* chunks of its prompt in several, a decode in one: its token is not known */
    OVERLAP_TOKENS    /* decodes, too, each n_stages steps behind the last one: tokens are
                         placeholders (vLLM v1, asynchronous) */
};

/* Which requests a step may hold. */
enum overlap_batches {
    OVERLAP_SHARED, /* any */
    OVERLAP_SLOTS,  /* those that decode in its slot, and prompts; slots come round in turn (SGLang)
                     */
    OVERLAP_ENGINES /* those of a virtual engine, which is a replica with its part of the blocks and
                       one step at a time; engines share the stages (vLLM v0) */
};

/* Which requests batching modules count as running: those that their max_seqs limits. */
enum overlap_seats {
    OVERLAP_SEATS_OF_ALL, /* of all steps in flight (vLLM v1, Sarathi) */
    OVERLAP_SEATS_OF_STEP /* of the step that is planned: those in flight have seats of their own
                             (Orca, Algorithm 1, max_bs; TensorRT-LLM, microBatchScheduler.h) */
};

struct overlap {
    int32_t depth;    /* most steps in flight; 0 and 1: one, and nothing below counts */
    int32_t n_stages; /* of the pipeline, at most depth */
    enum overlap_request request;
    bool slots; /* OVERLAP_SLOTS: seats are of the slot */
    enum overlap_seats seats;
    /* A step is planned as the one in front of it begins, with a single stage. It is planned when
     * that one ends, with what was known as it began: the same plan, and steps can be promised. */
    bool hindsight;
    bool waits; /* behind an empty plan the next one is made as a step ends, whatever arrives */
};

static inline bool overlap_has_own_seats(const struct overlap *overlap)
{
    return overlap->slots || overlap->seats == OVERLAP_SEATS_OF_STEP;
}
/* A plan is shown some of the requests on the device, and told of these alone. */
static inline bool overlap_counts_shown(const struct overlap *overlap)
{
    return overlap_has_own_seats(overlap) || overlap->request == OVERLAP_ONE_STEP;
}

#endif
