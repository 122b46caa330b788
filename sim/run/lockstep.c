#include "run/lockstep.h"

#include <stdlib.h>

#include "cost/cost.h"

int lockstep_create(struct lockstep *lockstep, uint32_t n_replicas, uint32_t n_ranks,
                    struct ifl_error *error)
{
    *lockstep = (struct lockstep){.n_ranks = n_ranks > 1 ? n_ranks : 0, .n_replicas = n_replicas};
    if (n_ranks <= 1)
        return 0;
    ifl_require(n_ranks <= COST_MAX_RANKS && n_replicas % n_ranks == 0);
    lockstep->n_flying = calloc(n_replicas / n_ranks, sizeof *lockstep->n_flying);
    lockstep->is_ready = calloc(n_replicas, sizeof *lockstep->is_ready);
    return lockstep->n_flying && lockstep->is_ready ? 0 : ifl_fail_nomem(error);
}

void lockstep_destroy(struct lockstep *lockstep)
{
    free(lockstep->n_flying);
    free(lockstep->is_ready);
    lockstep->n_flying = NULL;
    lockstep->is_ready = NULL;
}

static int start_group(struct lockstep *lockstep, uint32_t group, const struct replica *replicas,
                       const struct ifl_executor_ops *executor, void *executor_self,
                       struct ifl_error *error)
{
    const struct ifl_step_desc *steps[COST_MAX_RANKS];
    const uint32_t first = group * lockstep->n_ranks;
    size_t n = 0;
    for (uint32_t i = first; i < first + lockstep->n_ranks; i++) {
        if (lockstep->is_ready[i])
            steps[n++] = &replicas[i].in_flight.desc;
        lockstep->is_ready[i] = false;
    }
    if (n == 0)
        return 0;
    lockstep->n_flying[group] = (uint32_t)n;
    lockstep->n_dummies += lockstep->n_ranks - n;
    return executor->submit_group(executor_self, steps, n, error);
}

int lockstep_start(struct lockstep *lockstep, const struct replica *replicas,
                   const struct ifl_executor_ops *executor, void *executor_self,
                   struct ifl_error *error)
{
    int rc = 0;
    for (uint32_t g = 0; lockstep->n_ranks > 0 && g < lockstep->n_replicas / lockstep->n_ranks;
         g++) {
        if (rc == 0)
            rc = start_group(lockstep, g, replicas, executor, executor_self, error);
    }
    return rc;
}

bool lockstep_end(struct lockstep *lockstep, uint32_t number)
{
    return lockstep->n_ranks == 0 || --lockstep->n_flying[number / lockstep->n_ranks] == 0;
}
