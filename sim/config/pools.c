#include "config/pools.h"

#include <string.h>

#include "config/keys.h"
#include "config/layers.h"

static const struct node *pools_of(const struct node *root)
{
    const struct node *pools = tree_at(root, "cluster.pools");
    return pools && !tree_is_null(pools) ? pools : NULL;
}

size_t pools_n(const struct node *root)
{
    const struct node *pools = pools_of(root);
    return pools ? pools->n : 0;
}

/* ---- shape ---- */

/* Names are parts of keys, and words in tables. */
static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t n_chars = strlen(name);
    return n_chars > 0 && n_chars < MAX_POOL_NAME && strchr(letters, name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               n_chars;
}

static int check_pool(const struct node *pool, struct ifl_error *error)
{
    char found[128], path[2 * MAX_KEY_CHARS];
    if (!is_name(pool->key))
        return tree_fail(pool, error,
                         "cluster.pools has %.60s, expected a name that begins with a letter, of "
                         "letters, digits, - and _, below %d characters",
                         pool->key, MAX_POOL_NAME);
    if (pool->kind != NODE_MAP)
        return tree_fail(pool, error, "cluster.pools.%s is %s, expected a map of keys", pool->key,
                         tree_is_null(pool) ? "empty" : tree_describe(pool, found));
    for (size_t i = 0; i < pool->n; i++) {
        snprintf(path, sizeof path, "cluster.pools.%s.%.100s", pool->key, pool->of[i]->key);
        if (key_check(path, false, pool->of[i], error) < 0)
            return error->code;
    }
    return 0;
}

int pools_check_shape(const struct node *root, struct ifl_error *error)
{
    const struct node *pools = pools_of(root);
    char found[128];
    if (!pools)
        return 0;
    if (pools->kind != NODE_MAP || pools->n > MAX_POOLS)
        return tree_fail(pools, error, "cluster.pools is %s, expected a map of at most %d pools",
                         pools->kind == NODE_MAP ? "longer" : tree_describe(pools, found),
                         MAX_POOLS);
    for (size_t i = 0; i < pools->n; i++)
        if (check_pool(pools->of[i], error) < 0)
            return pools_blame(root, i, error);
    return 0;
}

/* ---- reading ---- */

int pools_lay(const struct node *root, size_t i, struct node **laid, struct ifl_error *error)
{
    struct node *pool = tree_copy(pools_of(root)->of[i]);
    int code = 0;
    *laid = tree_copy(root);
    if (!pool || !*laid)
        code = ifl_fail_nomem(error);
    if (code == 0) {
        tree_drop(pool, "count");
        tree_drop(tree_at(*laid, "cluster"), "pools");
        code = layer_lay(*laid, pool, error);
    }
    tree_free(pool);
    if (code < 0) {
        tree_free(*laid);
        *laid = NULL;
    }
    return code;
}

int pools_describe(const struct node *root, size_t i, struct pool_config *pool,
                   struct ifl_error *error)
{
    static const struct ifl_param field = {"count", IFL_INT, 0,          1,          0,
                                           65536,   NULL,    "replicas", "of a pool"};
    const struct node *node = pools_of(root)->of[i], *count = tree_child(node, "count");
    char where[MAX_KEY_CHARS];
    snprintf(pool->name, sizeof pool->name, "%s", node->key);
    pool->count = 1;
    if (!count || tree_is_null(count))
        return 0;
    return field_read(count, key_join("cluster.pools", node->key, where), &field, &pool->count,
                      error);
}

int pools_check(const struct node *root, const struct config *config, struct ifl_error *error)
{
    const struct node *pools = pools_of(root), *replicas = tree_at(root, "cluster.replicas");
    int64_t n = 0;
    for (size_t i = 0; i < config->n_pools; i++) {
        const struct config *pool = config->pools[i].config;
        n += config_pool_replicas(config, i);
        if (pool->cost.model == COST_RECORDED)
            return tree_fail(pools->of[i], error,
                             "pool %s: cost.model is recorded, expected another one in a cluster "
                             "with pools",
                             config->pools[i].name);
    }
    if (replicas && !tree_is_null(replicas))
        return tree_fail(replicas, error,
                         "cluster.replicas is set beside cluster.pools, expected the count of each "
                         "pool alone");
    if (config->executor != EXECUTOR_SIM)
        return tree_fail(pools, error,
                         "cluster.pools is set, expected none where an engine executes: it is one "
                         "replica");
    if (n < 1 || n > 65536)
        return tree_fail(pools, error,
                         "cluster.pools has %lld replicas in all, ranks of parallel.data counted, "
                         "expected 1 to 65536",
                         (long long)n);
    return 0;
}

int pools_blame(const struct node *root, size_t i, struct ifl_error *error)
{
    const char *name = pools_of(root)->of[i]->key;
    char reason[sizeof error->text], before[MAX_POOL_NAME + 8];
    snprintf(before, sizeof before, "pool %.*s: ", MAX_POOL_NAME, name);
    if (error->code != IFL_E_INPUT || strncmp(error->text, before, strlen(before)) == 0)
        return error->code;
    snprintf(reason, sizeof reason, "%s", error->text);
    snprintf(error->text, sizeof error->text, "%s%.*s", before,
             (int)(sizeof error->text - strlen(before) - 1), reason);
    return error->code;
}

static int check_maps_of(const struct node *root, struct ifl_error *error)
{
    for (size_t i = 0; i < n_key_sections; i++) {
        const char *where = key_sections[i].where;
        const struct node *map = *where ? tree_at(root, where) : root;
        const bool is_word = map && map->kind == NODE_SCALAR && key_has_short_form(where);
        const bool is_list = map && map->kind == NODE_LIST && key_sections[i].may_be_list;
        if (map && map->kind != NODE_MAP && !is_word && !is_list &&
            fields_read(map, where, NULL, 0, NULL, NULL, error) < 0)
            return error->code;
    }
    return 0;
}

int pools_check_maps(const struct node *root, struct ifl_error *error)
{
    int code = check_maps_of(root, error);
    if (code == 0)
        code = pools_check_shape(root, error);
    for (size_t i = 0; i < pools_n(root) && code == 0; i++)
        if ((code = check_maps_of(pools_of(root)->of[i], error)) < 0)
            pools_blame(root, i, error);
    return code;
}
