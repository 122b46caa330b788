#include "run/lockstep.h"

#include <stdlib.h>

#include "cost/cost.h"

static bool is_grouped(const struct fleet_pool *pool)
{
    return pool->n_ranks > 1;
}

static void form_groups(struct lockstep *lockstep, const struct fleet_pool *pool)
{
    ifl_require(pool->n_ranks <= COST_MAX_RANKS && pool->n % pool->n_ranks == 0);
    for (uint32_t i = 0; i < pool->n; i++) {
        if (i % pool->n_ranks == 0)
            lockstep->groups[lockstep->n_groups++] =
                (struct lockstep_group){.first = pool->first + i, .n = pool->n_ranks};
        lockstep->group_of[pool->first + i] = (uint32_t)lockstep->n_groups;
    }
}

int lockstep_create(struct lockstep *lockstep, const struct fleet_pool *pools, size_t n_pools,
                    struct ifl_error *error)
{
    size_t n_groups = 0, n_replicas = 0;
    *lockstep = (struct lockstep){0};
    for (size_t i = 0; i < n_pools; i++) {
        n_groups += is_grouped(&pools[i]) ? pools[i].n / pools[i].n_ranks : 0;
        n_replicas += pools[i].n;
    }
    if (n_groups == 0)
        return 0;
    lockstep->groups = calloc(n_groups, sizeof *lockstep->groups);
    lockstep->group_of = calloc(n_replicas, sizeof *lockstep->group_of);
    lockstep->is_ready = calloc(n_replicas, sizeof *lockstep->is_ready);
    if (!lockstep->groups || !lockstep->group_of || !lockstep->is_ready)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < n_pools; i++)
        if (is_grouped(&pools[i]))
            form_groups(lockstep, &pools[i]);
    return 0;
}

void lockstep_destroy(struct lockstep *lockstep)
{
    free(lockstep->groups);
    free(lockstep->group_of);
    free(lockstep->is_ready);
    *lockstep = (struct lockstep){.n_dummies = lockstep->n_dummies};
}

static int start_group(struct lockstep *lockstep, struct lockstep_group *group,
                       const struct replica *replicas, const struct ifl_executor_ops *executor,
                       void *executor_self, struct ifl_error *error)
{
    const struct ifl_step_desc *steps[COST_MAX_RANKS];
    size_t n = 0;
    for (uint32_t i = group->first; i < group->first + group->n; i++) {
        if (lockstep->is_ready[i])
            steps[n++] = &replicas[i].in_flight.desc;
        lockstep->is_ready[i] = false;
    }
    if (n == 0)
        return 0;
    group->n_flying = (uint32_t)n;
    lockstep->n_dummies += group->n - n;
    return executor->submit_group(executor_self, steps, n, error);
}

int lockstep_start(struct lockstep *lockstep, const struct replica *replicas,
                   const struct ifl_executor_ops *executor, void *executor_self,
                   struct ifl_error *error)
{
    int rc = 0;
    for (size_t g = 0; g < lockstep->n_groups && rc == 0; g++)
        rc = start_group(lockstep, &lockstep->groups[g], replicas, executor, executor_self, error);
    return rc;
}

bool lockstep_end(struct lockstep *lockstep, uint32_t number)
{
    struct lockstep_group *group = lockstep_group(lockstep, number);
    return !group || --group->n_flying == 0;
}
