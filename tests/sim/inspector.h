/* An executor that looks over the loop's shoulder, and remembers which token's K/V every slot of
 * every block holds, as an engine's memory would. Whoever computes must find its own tokens before
 * its new ones, whoever computed them; nobody may write where somebody else reads. It looks over
 * the batching module's shoulder, too: a plan leaves its state as it was. */
#ifndef TESTS_SIM_INSPECTOR_H
#define TESTS_SIM_INSPECTOR_H

#include "executor_sim.h"
#include "replica.h"

struct inspector {
    struct replica *replica;
    struct executor_sim sim;
    uint32_t *owners;       /* [n_blocks] requests that hold the block */
    uint64_t *slots, *host; /* [blocks x block_tokens] the token of each slot, 0: none yet */
    const struct ifl_policy *planner; /* the replica's batching module */
    struct ifl_policy watched;        /* the same, but for its plan, which is looked at */
    void *self_before;                /* parameters and state, before the plan */
    char *complaint;                  /* the first thing found wrong, empty if nothing */
    size_t complaint_bytes;
};

extern const struct ifl_executor_ops inspector_ops;

/* The replica must be created; one inspector at a time. 0, or -1 without memory. */
int inspector_create(struct inspector *x);
void inspector_destroy(struct inspector *x);
/* Everything has come back. */
void inspector_end(struct inspector *x);

#endif
