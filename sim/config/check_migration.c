/* Checks what a cluster needs if running requests move between its replicas. */
#include "config/migration.h"

#include "config/tiers.h"

#include <string.h>

/* What a pool may not be. */
static const char *against(const struct config *pool)
{
    if (pool->executor != EXECUTOR_SIM)
        return "executor is an engine, expected sim: engines move the K/V of prompts alone";
    if (pool->serving.kv.allocator == KV_BUDDY)
        return "serving.kv.allocator is buddy, expected paged: blocks come stage by stage";
    return config_against_moves(pool);
}

static const char *against_all(const struct config *config)
{
    const struct config *first = config_of_pool(config, 0);
    if (config_hands_over(config))
        return "cluster.pools has roles, expected none";
    if (config->links.gb_per_s > 0 && config->links.token_bytes == 0 && !*first->model)
        return "cluster.links.token_bytes is missing or 0, expected the bytes of K/V of a token "
               "where no model is named";
    for (size_t i = 0; i < config_n_pools(config); i++) {
        const struct config *pool = config_of_pool(config, i);
        if (against(pool))
            return against(pool);
        if (strcmp(pool->model, first->model) != 0)
            return "pools have different models, expected one";
    }
    return NULL;
}

/* Each multiple is an event of the run: far below a step they do nothing, and take for ever. */
enum { LEAST_INTERVAL_NS = 100000 };

int migration_check(const struct node *root, const struct config *config, struct ifl_error *error)
{
    const struct node *at = tree_at(root, "cluster.migration");
    const struct node *interval = tree_at(root, "cluster.migration.interval_s");
    if (!config_migrates(config))
        return 0;
    if (config->migration.interval_ns < LEAST_INTERVAL_NS)
        return tree_fail(interval ? interval : root, error,
                         "cluster.migration.interval_s is below 0.0001, expected 0 or at least "
                         "that: replicas are looked at as often");
    if (!against_all(config))
        return 0;
    return tree_fail(at ? at : root, error,
                     "%s, where running requests move (cluster.migration.interval_s)",
                     against_all(config));
}
