#include "config/check_router.h"
#include "config/registry.h"

#include <stdio.h>
#include <string.h>

#include "inflight/assert.h"

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

/* For a module that is not built in this is seen only from its answers. */
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

/* ---- parameters without effect ---- */

static const struct ifl_param *param_of(const struct ifl_policy *policy, const char *name)
{
    size_t i = 0;
    while (i < policy->n_params && strcmp(policy->params[i].name, name) != 0)
        i++;
    ifl_assert(i < policy->n_params);
    return &policy->params[i];
}

static bool weighs_nothing(const struct module_config *router)
{
    static const char *const weights[] = {"queue",  "kv",     "load",    "running", "active",
                                          "tokens", "prefix", "precise", "cold"};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        double weight;
        memcpy(&weight, (const char *)router->params + param_of(router->policy, weights[i])->offset,
               sizeof weight);
        if (weight > 0)
            return false;
    }
    return true;
}

void router_unused(const struct config *config, char *text, size_t n_bytes)
{
    static const struct {
        const char *router, *name, *by, *off;
    } rows[] = {{"block-cost", "index_blocks", "cached", "events"},
                {"block-cost", "guess_s", "cached", "events"},
                {"cached", "max_missing_tokens", "by_cache", "false"}};
    const struct module_config *router = &config->serving.modules[IFL_ROUTE];
    const bool is_ours = router->policy && registry_is_builtin(router->policy);
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; is_ours && n < n_bytes && i < sizeof rows / sizeof *rows; i++) {
        char value[64], dflt[64], by[64];
        if (strcmp(router->policy->name, rows[i].router) != 0)
            continue;
        const struct ifl_param *param = param_of(router->policy, rows[i].name);
        field_print(param, router->params, value, sizeof value);
        field_print_default(param, dflt, sizeof dflt);
        field_print(param_of(router->policy, rows[i].by), router->params, by, sizeof by);
        if (strcmp(value, dflt) != 0 && strcmp(by, rows[i].off) == 0)
            n += (size_t)snprintf(
                text + n, n_bytes - n,
                "%scluster.router.%s is %s and has no effect: cluster.router.%s is %s",
                n ? "; " : "", rows[i].name, value, rows[i].by, by);
    }
    if (is_ours && strcmp(router->policy->name, "scores") == 0 && weighs_nothing(router))
        snprintf(text, n_bytes,
                 "all weights of cluster.router scores are 0: it draws a replica at random");
}
