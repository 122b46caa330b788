/* Laying one configuration over another. */
#include "config/layers.h"

#include <string.h>

#include "config/keys.h"

/* The module's policy in this layer; NULL if the layer names none. */
static const char *policy_in(const struct node *root, const char *module_path)
{
    const struct node *name = tree_child(tree_at(root, module_path), "policy");
    return name && name->kind == NODE_SCALAR && !tree_is_null(name) ? name->text : NULL;
}

static void drop_at(struct node *root, const char *path)
{
    char around[MAX_KEY_CHARS];
    const char *dot = strrchr(path, '.');
    snprintf(around, sizeof around, "%.*s", (int)(dot - path), path);
    tree_drop(tree_at(root, around), dot + 1);
}

int layer_lay(struct node *under, const struct node *over, struct ifl_error *error)
{
    for (size_t i = 0; i < n_key_sections; i++) {
        const char *path = key_sections[i].where;
        if (!key_sections[i].is_module)
            continue;
        const char *below = policy_in(under, path), *above = policy_in(over, path);
        if (below && above && strcmp(below, above) != 0)
            drop_at(under, path);
    }
    return tree_overlay(under, over, error);
}

/* Clears the places of the maps around a value, so that the file's maps keep their places when this
 * layer is laid over them. */
static void forget_maps(struct node *layer)
{
    for (struct node *map = layer; map->kind == NODE_MAP && map->n == 1; map = map->of[0])
        map->line = map->column = 0;
}

int layer_of(const char *dotted, const struct node *value, struct node **layer,
             struct ifl_error *error)
{
    *layer = tree_node(NODE_MAP, value);
    if (!*layer)
        return ifl_fail_nomem(error);
    int code = tree_put(*layer, dotted, value, error);
    if (code == 0)
        forget_maps(*layer);
    if (code == 0)
        code = layer_expand(*layer, error);
    if (code < 0) {
        tree_free(*layer);
        *layer = NULL;
    }
    return code;
}

static int expand_filter(struct node *root, struct ifl_error *error)
{
    /* In vLLM's benchmark, prompts or outputs below 4 tokens, prompts above 1024 and sums above
     * 2048 are left out. */
    static const struct {
        const char *key, *sharegpt;
    } bounds[] = {{"workload.filter.min_prompt", "4"},
                  {"workload.filter.min_output", "4"},
                  {"workload.filter.max_prompt", "1024"},
                  {"workload.filter.max_total", "2048"}};
    const struct node *word = tree_at(root, "workload.filter");
    if (!word || word->kind != NODE_SCALAR || tree_is_null(word))
        return 0;
    const bool none = strcmp(word->text, "none") == 0;
    if (!none && strcmp(word->text, "sharegpt") != 0) {
        char found[128];
        return tree_fail(word, error, "workload.filter is %s, expected none, sharegpt or a map",
                         tree_describe(word, found));
    }
    struct node *filter = tree_node(NODE_MAP, word);
    if (!filter)
        return ifl_fail_nomem(error);
    int code = tree_put(root, "workload.filter", filter, error);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds && code == 0; i++) {
        struct node *value = tree_scalar(none ? "0" : bounds[i].sharegpt, false, filter);
        code = value ? tree_put(root, bounds[i].key, value, error) : ifl_fail_nomem(error);
        tree_free(value);
    }
    tree_free(filter);
    return code;
}

/* Expands names in a list of modules to maps: `admit: [prompt-fits, {policy: ...}]`. */
static int expand_list(struct node *list, struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < list->n && code == 0; i++) {
        struct node *word = list->of[i];
        if (word->kind != NODE_SCALAR || tree_is_null(word))
            continue;
        struct node *map = tree_node(NODE_MAP, word), *name = tree_copy(word);
        code = map && name ? tree_append(map, "policy", name, error) : ifl_fail_nomem(error);
        if (code < 0) {
            tree_free(map);
            continue;
        }
        list->of[i] = map;
        tree_free(word);
    }
    return code;
}

/* Expands `order: fcfs` to `order: {policy: fcfs}`. */
static int expand_module(struct node *root, const struct key_section *section,
                         struct ifl_error *error)
{
    const char *path = section->where;
    char policy[MAX_KEY_CHARS];
    struct node *word = tree_at(root, path);
    if (word && word->kind == NODE_LIST && section->may_be_list)
        return expand_list(word, error);
    if (!word || word->kind != NODE_SCALAR || tree_is_null(word))
        return 0;
    struct node *name = tree_copy(word), *map = tree_node(NODE_MAP, word);
    int code = name && map ? tree_put(root, path, map, error) : ifl_fail_nomem(error);
    if (code == 0)
        code = tree_put(root, key_join(path, "policy", policy), name, error);
    tree_free(name);
    tree_free(map);
    return code;
}

int layer_expand(struct node *root, struct ifl_error *error)
{
    int code = expand_filter(root, error);
    for (size_t i = 0; i < n_key_sections && code == 0; i++)
        if (key_sections[i].is_module)
            code = expand_module(root, &key_sections[i], error);
    return code;
}
