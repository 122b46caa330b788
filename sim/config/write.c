/* Writing one point: every key of the table with its value, whether it was given or not. */
#include "config/read.h"

#include <string.h>

#include "config/keys.h"

enum { MAX_VALUE_BYTES = 8192 };

static int put_yaml(struct node *root, const char *dotted, const char *yaml,
                    struct ifl_error *error)
{
    struct node *value;
    int code = tree_parse(yaml, strlen(yaml), dotted, &value, error);
    if (code == 0)
        code = tree_put(root, dotted, value, error);
    tree_free(value);
    return code;
}

/* What is printed of a number or a choice is the scalar itself; only texts may need quotes. */
static int put_field(const struct ifl_param *field, const void *base, struct node *root,
                     const char *path, struct ifl_error *error)
{
    char text[MAX_VALUE_BYTES];
    field_print(field, base, text, sizeof text);
    if (field->type == IFL_TEXT)
        return put_yaml(root, path, text, error);
    struct node *value = tree_scalar(text, false, root);
    const int code = value ? tree_put(root, path, value, error) : ifl_fail_nomem(error);
    tree_free(value);
    return code;
}

static int put_fields(const struct key_skip *skip, const char *where,
                      const struct ifl_param *fields, size_t n, const void *base, struct node *root,
                      struct ifl_error *error)
{
    char path[MAX_KEY_CHARS];
    int code = 0;
    for (size_t i = 0; i < n && code == 0; i++) {
        key_join(where, fields[i].name, path);
        if (!skip->skips(skip->context, path) && !field_is_left_out(&fields[i], base))
            code = put_field(&fields[i], base, root, path, error);
    }
    return code;
}

/* Prints {policy: NAME, key: value, ...} to `text`, for the module at `where`. */
static void print_module(const struct key_skip *skip, const char *where,
                         const struct module_config *module, char *text, size_t n_bytes)
{
    char value[MAX_VALUE_BYTES], path[MAX_KEY_CHARS];
    size_t at = (size_t)snprintf(text, n_bytes, "{policy: %s", module->policy->name);
    for (size_t i = 0; i < module->policy->n_params && at < n_bytes; i++) {
        const struct ifl_param *param = &module->policy->params[i];
        if (skip->skips(skip->context, key_join(where, param->name, path)))
            continue;
        field_print(param, module->params, value, sizeof value);
        at += (size_t)snprintf(text + at, n_bytes - at, ", %s: %s", param->name, value);
    }
    if (at < n_bytes)
        snprintf(text + at, n_bytes - at, "}");
}

static int put_admits(const struct key_skip *skip, const struct key_section *section,
                      const struct serving_config *serving, struct node *root,
                      struct ifl_error *error)
{
    char text[(1 + MAX_MORE_ADMITS) * MAX_VALUE_BYTES] = "[", number[24], where[MAX_KEY_CHARS];
    size_t at = 1;
    if (skip->skips(skip->context, section->where))
        return 0;
    for (size_t i = 0; i <= MAX_MORE_ADMITS && serving_admit(serving, i)->policy; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s", i ? ", " : "");
        snprintf(number, sizeof number, "%zu", i);
        print_module(skip, key_join(section->where, number, where), serving_admit(serving, i),
                     text + at, MAX_VALUE_BYTES);
        at += strlen(text + at);
    }
    snprintf(text + at, sizeof text - at, "]");
    return put_yaml(root, section->where, text, error);
}

static int put_module(const struct key_skip *skip, const struct key_section *section,
                      const struct serving_config *serving, struct node *root,
                      struct ifl_error *error)
{
    const struct module_config *module = &serving->modules[section->kind];
    char path[MAX_KEY_CHARS];
    if (section->kind == IFL_ADMIT && serving_admit(serving, 1)->policy)
        return put_admits(skip, section, serving, root, error);
    key_join(section->where, "policy", path);
    if (skip->skips(skip->context, path))
        return 0;
    const int code = put_yaml(root, path, module->policy->name, error);
    if (code < 0)
        return code;
    return put_fields(skip, section->where, module->policy->params, module->policy->n_params,
                      module->params, root, error);
}

/* 64 pairs of at most 2 x 24 characters stay far below the buffer. */
static int put_pieces(const struct key_skip *skip, const struct ifl_arrivals *arrivals,
                      struct node *root, struct ifl_error *error)
{
    static const char *const path = "workload.arrivals.pieces";
    static const struct ifl_param number = {.type = IFL_REAL};
    char text[MAX_VALUE_BYTES] = "[", from[32], rate[32];
    size_t at = 1;
    if (!arrivals->n_pieces || skip->skips(skip->context, path))
        return 0;
    for (size_t i = 0; i < arrivals->n_pieces; i++) {
        field_print(&number, &arrivals->piece_from_s[i], from, sizeof from);
        field_print(&number, &arrivals->piece_rate_rps[i], rate, sizeof rate);
        at += (size_t)snprintf(text + at, sizeof text - at, "[%s, %s], ", from, rate);
    }
    snprintf(text + at - strlen(", "), sizeof text - at, "]");
    return put_yaml(root, path, text, error);
}

static int put_rates(const struct key_skip *skip, const char *path, const struct gpu_rates *rates,
                     struct node *root, struct ifl_error *error)
{
    static const struct ifl_param number = {.type = IFL_REAL};
    char text[MAX_VALUE_BYTES] = "{", of[32];
    size_t at = 1;
    if (!rates->n || skip->skips(skip->context, path))
        return 0;
    field_print(&number, &rates->of[0], of, sizeof of);
    if (!*rates->hardware[0])
        return put_yaml(root, path, of, error);
    for (size_t i = 0; i < rates->n; i++) {
        field_print(&number, &rates->of[i], of, sizeof of);
        at += (size_t)snprintf(text + at, sizeof text - at, "'%s': %s, ", rates->hardware[i], of);
    }
    snprintf(text + at - strlen(", "), sizeof text - at, "}");
    return put_yaml(root, path, text, error);
}

static int put_degrees(const struct key_skip *skip, const struct placement_config *of,
                       struct node *root, struct ifl_error *error)
{
    const struct {
        const char *path;
        const struct degrees *of;
    } lists[] = {{"capacity.placement.tensor", &of->tensor},
                 {"capacity.placement.pipeline", &of->pipeline},
                 {"capacity.placement.counts", &of->counts}};
    int code = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && code == 0; i++) {
        char text[16 * MAX_DEGREES] = "";
        size_t at = 0;
        for (int32_t k = 0; k < lists[i].of->n; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", k ? ", " : "[",
                                   lists[i].of->of[k]);
        snprintf(text + at, sizeof text - at, "]");
        if (!skip->skips(skip->context, lists[i].path))
            code = put_yaml(root, lists[i].path, text, error);
    }
    return code;
}

/* Copies what the configuration says. The profile, which has the rest, is written by its name. */
static int put_deployment(const struct key_skip *skip, const char *where, const struct node *map,
                          struct node *root, struct ifl_error *error)
{
    char path[MAX_KEY_CHARS];
    int code = 0;
    for (size_t i = 0; map && i < map->n && code == 0; i++) {
        const struct node *child = map->of[i];
        key_join(where, child->key, path);
        if (child->kind == NODE_MAP)
            code = put_deployment(skip, path, child, root, error);
        else if (!tree_is_null(child) && !skip->skips(skip->context, path))
            code = tree_put(root, path, child, error);
    }
    return code;
}

static int put_section(const struct key_skip *skip, const struct key_section *section,
                       const struct config *config, struct node *root, struct ifl_error *error)
{
    if (section->is_module)
        return put_module(skip, section, &config->serving, root, error);
    if (section->is_deployment)
        return strcmp(section->where, "deployment") != 0
                   ? 0
                   : put_deployment(skip, section->where, config->deployment, root, error);
    const bool places = strcmp(section->where, "capacity.placement") == 0;
    if (places && !config->capacity.placement.on)
        return 0;
    int code = put_fields(skip, section->where, section->keys->fields, section->keys->n_fields,
                          config, root, error);
    if (code == 0 && places)
        code = put_degrees(skip, &config->capacity.placement, root, error);
    if (code == 0 && strcmp(section->where, "workload.arrivals") == 0)
        code = put_pieces(skip, &config->workload.arrivals, root, error);
    if (code == 0 && strcmp(section->where, "capacity") == 0)
        code = put_rates(skip, "capacity.usd_per_gpu_hour", &config->capacity.usd_per_gpu_hour,
                         root, error);
    if (code == 0 && strcmp(section->where, "capacity") == 0)
        code =
            put_rates(skip, "capacity.watts_per_gpu", &config->capacity.watts_per_gpu, root, error);
    return code;
}

static int put_sections(const struct key_skip *skip, const struct config *config, struct node *root,
                        struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < n_key_sections && code == 0; i++)
        code = put_section(skip, &key_sections[i], config, root, error);
    return code;
}

/* ---- pools: all keys that a pool may have are written with each of them ---- */

struct pool_skip {
    const struct key_skip *skip;
    char where[MAX_KEY_CHARS]; /* "cluster.pools.NAME" */
};

static const char *const pool_role_names[] = {
    [POOL_PREFILLS] = "prefill", [POOL_DECODES] = "decode", [POOL_BOTH] = "both"};

static bool is_written_with_pools(const void *context, const char *dotted)
{
    const struct pool_skip *of = context;
    return key_is_of_pools(dotted) || strcmp(dotted, "cluster.replicas") == 0 ||
           of->skip->skips(of->skip->context, dotted);
}

static bool is_not_of_pool(const void *context, const char *dotted)
{
    const struct pool_skip *of = context;
    char path[2 * MAX_KEY_CHARS];
    snprintf(path, sizeof path, "%s.%s", of->where, dotted);
    return !key_is_of_pools(dotted) || of->skip->skips(of->skip->context, path);
}

static int put_pool(const struct key_skip *skip, const struct pool_config *pool, struct node *root,
                    struct ifl_error *error)
{
    char path[MAX_KEY_CHARS], count[16];
    struct pool_skip of = {.skip = skip};
    const struct key_skip inner = {is_not_of_pool, &of};
    key_join("cluster.pools", pool->name, of.where);
    snprintf(count, sizeof count, "%d", pool->count);
    struct node *map = tree_node(NODE_MAP, root);
    int code = map ? 0 : ifl_fail_nomem(error);
    if (code == 0 && !skip->skips(skip->context, key_join(of.where, "count", path)))
        code = put_yaml(map, "count", count, error);
    if (code == 0 && pool->role != POOL_UNSAID &&
        !skip->skips(skip->context, key_join(of.where, "role", path)))
        code = put_yaml(map, "role", pool_role_names[pool->role], error);
    if (code == 0)
        code = put_sections(&inner, pool->config, map, error);
    if (code == 0)
        code = tree_put(root, of.where, map, error);
    tree_free(map);
    return code;
}

int config_write(const struct config *config, const struct key_skip *skip, struct node *root,
                 struct ifl_error *error)
{
    const struct pool_skip of = {.skip = skip};
    const struct key_skip outer = {is_written_with_pools, &of};
    int code = put_sections(config->n_pools > 0 ? &outer : skip, config, root, error);
    for (size_t i = 0; i < config->n_pools && code == 0; i++)
        code = put_pool(skip, &config->pools[i], root, error);
    return code;
}
