#include "config/pools.h"

#include <string.h>

#include "config/check_engine.h"
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
        tree_drop(pool, "role");
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
    static const struct ifl_param role_field = {"role", IFL_CHOICE, 0,  0,          0,
                                                0,      POOL_ROLES, "", "of a pool"};
    const struct node *node = pools_of(root)->of[i], *count = tree_child(node, "count"),
                      *role = tree_child(node, "role");
    char where[MAX_KEY_CHARS];
    key_join("cluster.pools", node->key, where);
    snprintf(pool->name, sizeof pool->name, "%s", node->key);
    pool->count = 1;
    pool->role = POOL_UNSAID;
    if (role && !tree_is_null(role)) {
        if (field_read(role, where, &role_field, &pool->role, error) < 0)
            return error->code;
        pool->role += POOL_PREFILLS;
    }
    if (!count || tree_is_null(count))
        return 0;
    return field_read(count, where, &field, &pool->count, error);
}

/* ---- roles ---- */

static size_t first_with(const struct config *config, int32_t without)
{
    size_t i = 0;
    while (i < config->n_pools && (config->pools[i].count == 0 || config->pools[i].role == without))
        i++;
    return i;
}

/* A prompt that a plan starts at once may load from tiers; one that waits for its load apart would
 * move twice at one replica. */
static bool loads_apart(const struct config *pool)
{
    for (int t = 0; t < N_TIERS; t++) {
        const struct tier_config *tier = &pool->serving.kv.tiers[t];
        if (tier_is_there(tier) && tier_has_link(tier) && tier->loads == TIER_LOADS_APART)
            return true;
    }
    return false;
}

/* What a pool with a role may not be. */
static const char *against_role(const struct config *pool, int32_t role)
{
    const struct in_flight_config *in_flight = &pool->serving.in_flight;
    if (config_engines(pool) > 1)
        return "serving.in_flight.batches is engines and parallel.pipeline above 1, expected "
               "shared or slots";
    if (config_pipelines(pool) && in_flight->request == OVERLAP_TOKENS)
        return "serving.in_flight.request is tokens and parallel.pipeline above 1, expected "
               "one-step or chunks";
    if (pool->data_parallel > 1)
        return "parallel.data is above 1, expected 1";
    if (config_has_tiers(pool) && role != POOL_PREFILLS)
        return "serving.kv.tiers is set, expected none but with role prefill";
    if (loads_apart(pool))
        return "serving.kv.tiers has a tier with loads apart, expected before or layers";
    if (config_swaps_apart(pool))
        return "serving.swap is overlap, expected step";
    return pool->workload.beams.search ? "workload.beams.search is true, expected false" : NULL;
}

static int check_roles(const struct node *pools, const struct config *config,
                       struct ifl_error *error)
{
    const size_t prefills = first_with(config, POOL_DECODES),
                 decodes = first_with(config, POOL_PREFILLS);
    if (prefills == config->n_pools || decodes == config->n_pools)
        return tree_fail(pools, error,
                         "cluster.pools has no pool with the role %s and a count above 0, expected "
                         "one beside those that %s",
                         prefills == config->n_pools ? "prefill" : "decode",
                         prefills == config->n_pools ? "decode" : "prefill");
    const char *model = config->pools[prefills].config->model;
    for (size_t i = 0; i < config->n_pools; i++) {
        const struct config *pool = config->pools[i].config;
        if (strcmp(pool->model, model) != 0)
            return tree_fail(pools->of[i], error,
                             "pool %s: model is %s, and that of pool %s is %s, expected one model "
                             "where pools have roles: its K/V moves between them",
                             config->pools[i].name, *pool->model ? pool->model : "none",
                             config->pools[prefills].name, *model ? model : "none");
        const char *against = against_role(pool, config->pools[i].role);
        if (against)
            return tree_fail(pools->of[i], error, "pool %s: %s where pools have roles",
                             config->pools[i].name, against);
    }
    return 0;
}

static int check_handover(const struct node *root, const struct config *config,
                          struct ifl_error *error)
{
    const struct handover_rules *rules = &config->handover;
    const bool pushes = rules->order == HANDOVER_PUSH;
    const char *wrong = NULL;
    if (!pushes && rules->overlap != MOVE_AT_END)
        wrong =
            "cluster.handover.overlap is set and order pull, expected order push: nothing moves "
            "before there are blocks for it";
    else if (pushes && rules->blocks_destination)
        wrong =
            "cluster.handover.blocks_destination is true and order push, expected order pull: a "
            "step would wait for a prompt that may wait for it";
    else if (pushes && rules->lease_ns > 0)
        wrong = "cluster.handover.lease_s is set and order push, expected order pull: there are "
                "blocks before there is K/V";
    else if (pushes && rules->fail_frac > 0 && rules->lost == LOST_RECOMPUTE)
        wrong = "cluster.handover.fail_frac is set, order push and lost recompute, expected lost "
                "fail: no server that is pushed to computes a prompt";
    if (wrong) {
        const struct node *at = tree_at(root, "cluster.handover");
        return tree_fail(at ? at : root, error, "%s", wrong);
    }
    if (config->links.gb_per_s > 0 && config->links.token_bytes == 0 && !*config->model) {
        const struct node *at = tree_at(root, "cluster.links");
        return tree_fail(
            at ? at : root, error,
            "cluster.links.token_bytes is missing or 0, expected the bytes of K/V of a "
            "token where no model is named");
    }
    return 0;
}

/* The router mixed-pools divides the pools: the first ones are for prompts. */
static int check_prompt_pools(const struct node *root, const struct config *config,
                              struct ifl_error *error)
{
    static const char key[] = "cluster.router.prompt_pools";
    static const struct ifl_param field = {"prompt_pools", IFL_INT, 0,       1,        1,
                                           1 << 16,        NULL,    "pools", "of them"};
    const struct ifl_policy *router = config->serving.modules[IFL_ROUTE].policy;
    const struct node *node = tree_at(root, key);
    int32_t n;
    if (!node || tree_is_null(node) || !router || strcmp(router->name, "mixed-pools") != 0)
        return 0;
    if (field_read(node, "cluster.router", &field, &n, error) < 0)
        return error->code;
    return (size_t)n <= config->n_pools
               ? 0
               : tree_fail(node, error, "%s is %d, expected at most the number of pools, %zu", key,
                           n, config->n_pools);
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
    if (config_hands_over(config) &&
        (check_roles(pools, config, error) < 0 || check_handover(root, config, error) < 0))
        return error->code;
    if (check_prompt_pools(root, config, error) < 0)
        return error->code;
    const char *refused = engine_refuses_pools(config);
    if (refused)
        return tree_fail(pools, error, "%s where an engine executes", refused);
    if (n < 1 || n > 65536)
        return tree_fail(pools, error,
                         "cluster.pools has %lld replicas in all, ranks of parallel.data counted, "
                         "expected 1 to 65536",
                         (long long)n);
    return 0;
}

static bool has_place(const struct node *node, const struct ifl_error *error)
{
    bool has = node->line == error->line && node->column == error->column && node->file &&
               strcmp(node->file, error->file) == 0;
    for (size_t i = 0; i < node->n && !has; i++)
        has = has_place(node->of[i], error);
    return has;
}

bool pools_share_place(const struct node *laid, const struct ifl_error *error)
{
    for (size_t i = 0; i < laid->n; i++)
        if (!key_is_of_pools(laid->of[i]->key) && has_place(laid->of[i], error))
            return true;
    return false;
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
