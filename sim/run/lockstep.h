/* Lockstep groups: replicas that are data-parallel ranks of one model with experts, as in vLLM
 * (v1/engine/core.py, DPEngineCoreProc). The ranks of a group wait for each other in every layer,
 * so that their steps begin and end together. A rank without work takes part with a dummy step.
 * Requests that arrive during a step are planned when the step has ended. */
#ifndef SIM_RUN_LOCKSTEP_H
#define SIM_RUN_LOCKSTEP_H

#include "fleet/pools.h"
#include "inflight/executor.h"

#include "replica/replica.h"

struct lockstep_group {
    uint32_t first, n; /* replicas */
    uint32_t n_flying; /* steps of the group at the executor */
};

struct lockstep {
    struct lockstep_group *groups; /* [n_groups]; 0: no replica is in a group */
    size_t n_groups;
    uint32_t *group_of; /* [replicas] 1 + its group; 0: it is in no group */
    bool *is_ready;     /* [replicas] a step is planned and has not begun */
    uint64_t n_dummies;
};

int lockstep_create(struct lockstep *lockstep, const struct fleet_pool *pools, size_t n_pools,
                    struct ifl_error *error);
void lockstep_destroy(struct lockstep *lockstep); /* zeroed memory is valid */

/* Returns the group of the replica, or NULL if it is in none. */
static inline struct lockstep_group *lockstep_group(const struct lockstep *lockstep,
                                                    uint32_t number)
{
    const uint32_t group = IFL_RARE(lockstep->n_groups > 0) ? lockstep->group_of[number] : 0;
    return group > 0 ? &lockstep->groups[group - 1] : NULL;
}
/* True if the group of that replica has a step under way. */
static inline bool lockstep_flies(const struct lockstep *lockstep, uint32_t number)
{
    const struct lockstep_group *group = lockstep_group(lockstep, number);
    return group && group->n_flying > 0;
}
/* Notes that the step of the replica, which must be in a group, is committed. It begins with the
 * steps of its group. */
static inline void lockstep_get_ready(struct lockstep *lockstep, uint32_t number)
{
    lockstep->is_ready[number] = true;
}
/* Submits the steps that are ready, a group at a time. Call it once all due replicas are planned.
 */
int lockstep_start(struct lockstep *lockstep, const struct replica *replicas,
                   const struct ifl_executor_ops *executor, void *executor_self,
                   struct ifl_error *error);
/* Call it when a step of the replica has ended. Returns true if it was the last one of its group.
 */
bool lockstep_end(struct lockstep *lockstep, uint32_t number);

#endif
