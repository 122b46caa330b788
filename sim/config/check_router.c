#include "config/check_router.h"

#include <string.h>

/* The key that names the router, or the map where it would stand. */
static const struct node *key_of(const struct node *root)
{
    static const char *const keys[] = {"cluster.router.policy", "cluster.router", "cluster.preset",
                                       "cluster"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (tree_at(root, keys[i]) && !tree_is_null(tree_at(root, keys[i])))
            return tree_at(root, keys[i]);
    return root;
}

static bool has_several(const struct config *config)
{
    int64_t n = 0;
    for (size_t i = 0; i < config_n_pools(config); i++)
        n += config_pool_replicas(config, i);
    return n > 1;
}

/* Of a module that is not built in only its answers tell. */
static bool may_send_pairs(const struct ifl_policy *router)
{
    return router->sends_pairs || strcmp(router->name, "conditional") == 0 ||
           !registry_is_builtin(router);
}

static bool has_both_roles(const struct config *config)
{
    size_t i = 0;
    while (i < config->n_pools &&
           (config->pools[i].count == 0 || config->pools[i].role != POOL_BOTH))
        i++;
    return i < config->n_pools;
}

int router_check(const struct node *root, const struct config *config, struct ifl_error *error)
{
    const struct ifl_policy *router = config->serving.modules[IFL_ROUTE].policy;
    const bool roles = config_hands_over(config);
    if (router && roles && !may_send_pairs(router) && !has_both_roles(config))
        return tree_fail(key_of(root), error,
                         "cluster.router is %s, which sends a request to one replica, and no pool "
                         "has both roles; expected a router that answers a prefill and a decode "
                         "replica: pair, conditional, conductor or mixed-pools",
                         router->name);
    if (!router || !router->sends_pairs || roles || !has_several(config))
        return 0;
    return tree_fail(key_of(root), error,
                     "cluster.router is %s, which sends a request to a replica for its prompt and "
                     "to another one for the rest, expected roles (cluster.pools.NAME.role)",
                     router->name);
}
