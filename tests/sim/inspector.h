/* An executor that checks the loop, with a model of the engine's memory: the token of every slot of
 * every block. It checks that
 * - a sequence finds all its earlier tokens in its blocks, whichever request computed them;
 * - no sequence writes into a block that another request reads;
 * - a plan leaves the batching module's state unchanged. */
#ifndef TESTS_SIM_INSPECTOR_H
#define TESTS_SIM_INSPECTOR_H

#include "replica/replica.h"
#include "run/executor_sim.h"

struct inspector {
    struct replica *replica;
    struct executor_sim sim;
    uint32_t *owners;       /* [n_blocks] requests that hold the block */
    uint64_t *slots, *host; /* [blocks x block_tokens] the token of each slot, 0: none yet */
    const struct ifl_policy *planner; /* the replica's batching module */
    struct ifl_policy watched;        /* a copy with a plan function that checks the state */
    void *self_before;                /* parameters and state, before the plan */
    char *complaint;                  /* the first error found, empty if none */
    size_t complaint_bytes;
};

extern const struct ifl_executor_ops inspector_ops;

/* The replica must be created; one inspector at a time. 0 or IFL_E_NOMEM. */
int inspector_create(struct inspector *x);
void inspector_destroy(struct inspector *x);
/* Checks at the end of a run that all blocks are free. */
void inspector_end(struct inspector *x);

#endif
