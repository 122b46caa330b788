#include "config/check_engine.h"

#include "cost/draft.h"

/* Blocks that move are alike. A draft model's K/V stays where it is. */
static const char *refuse_pool(const struct config *pool, const struct config *first)
{
    if (pool->serving.kv.block_tokens != first->serving.kv.block_tokens)
        return "cluster.pools has different serving.kv.block_tokens, expected one size of blocks";
    if (config_pipelines(pool))
        return "cluster.pools has a pool with steps in each stage of a pipeline, expected "
               "serving.in_flight.pipelined false";
    if (config_speculates(pool) && pool->serving.speculation.proposer == PROPOSER_MODEL)
        return "cluster.pools has a pool with a draft model, whose K/V does not move, expected "
               "serving.speculation.proposer lookup";
    return NULL;
}

const char *engine_refuses_pools(const struct config *config)
{
    const char *refused = NULL;
    if (config->executor == EXECUTOR_SIM)
        return NULL;
    if (!config_hands_over(config))
        return "cluster.pools has no roles, expected prefill and decode";
    for (size_t i = 0; i < config->n_pools && !refused; i++)
        refused = refuse_pool(config->pools[i].config, config->pools[0].config);
    return refused;
}
