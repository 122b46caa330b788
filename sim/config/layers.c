/* Overrides one configuration with another. */
#include "config/layers.h"

#include <string.h>

#include "config/keys.h"

/* The module's policy in this layer; NULL if the layer names none. */
static const char *policy_of(const struct node *module)
{
    return tree_text(tree_child(module, "policy"));
}

static void clear_parameters(struct node *below, const struct node *above)
{
    const char *was = policy_of(below), *is = policy_of(above);
    if (was && is && strcmp(was, is) != 0)
        while (below->n > 0)
            tree_drop(below, below->of[0]->key);
}

/* The first node with a place: maps that layer_of makes around a value have none. */
static const struct node *placed(const struct node *node)
{
    while (node->line == 0 && node->kind != NODE_SCALAR && node->n > 0)
        node = node->of[0];
    return node;
}

/* Refuses a key that has a number over one module, and one that has none, or one too large, over a
 * list of modules. */
static int check_element(const char *path, const struct node *below, const struct node *above,
                         struct ifl_error *error)
{
    const bool numbers = tree_is_elements(above);
    for (size_t i = 0; i < above->n && above->kind == NODE_MAP && !policy_of(above); i++) {
        const char *key = above->of[i]->key;
        const struct node *at = placed(above->of[i]);
        if (below->kind == NODE_LIST && !numbers)
            return tree_fail(at, error,
                             "%s.%.100s is set, and %s is a list of %zu modules, expected a number "
                             "before the key, as in %s.0.%.100s",
                             path, key, path, below->n, path, key);
        if (below->kind == NODE_LIST && !tree_element(below, key))
            return tree_fail(at, error,
                             "%s.%s is set, and %s is a list of %zu modules, expected a number "
                             "below that",
                             path, key, path, below->n);
        if (below->kind == NODE_MAP && numbers && policy_of(below))
            return tree_fail(at, error, "%s.%s is set, and %s is one module, expected no number",
                             path, key, path);
    }
    return 0;
}

static int lay_module(const char *path, struct node *below, const struct node *above,
                      struct ifl_error *error)
{
    if (check_element(path, below, above, error) < 0)
        return error->code;
    clear_parameters(below, above);
    for (size_t i = 0; i < above->n && tree_is_elements(above); i++)
        clear_parameters(tree_element(below, above->of[i]->key), above->of[i]);
    return 0;
}

static int lay_modules(struct node *under, const struct node *over, struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < n_key_sections && code == 0; i++) {
        const char *path = key_sections[i].where;
        struct node *below = tree_at(under, path), *above = tree_at(over, path);
        if (key_sections[i].is_module && below && above)
            code = lay_module(path, below, above, error);
    }
    return code;
}

static struct node *pools_of(const struct node *root)
{
    struct node *pools = tree_at(root, "cluster.pools");
    return pools && pools->kind == NODE_MAP ? pools : NULL;
}

/* A pool is laid over a pool as a configuration over a configuration. */
int layer_lay(struct node *under, const struct node *over, struct ifl_error *error)
{
    struct node *below = pools_of(under), *above = pools_of(over);
    int code = lay_modules(under, over, error);
    for (size_t i = 0; below && above && i < above->n && code == 0; i++) {
        struct node *pool = tree_child(below, above->of[i]->key);
        if (pool)
            code = lay_modules(pool, above->of[i], error);
    }
    return code == 0 ? tree_overlay(under, over, error) : code;
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
    if (!tree_text(word))
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

/* Expands names in a list of modules to maps: `admit: [prompt-fits, {policy: ...}]`; and in a map
 * of some of its elements: `admit: {0: prompt-fits}`. */
static int expand_list(struct node *list, struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < list->n && code == 0; i++) {
        struct node *word = list->of[i];
        if (!tree_text(word))
            continue;
        struct node *map = tree_node(NODE_MAP, word), *name = tree_copy(word);
        code = map && name ? tree_append(map, "policy", name, error) : ifl_fail_nomem(error);
        if (code < 0) {
            tree_free(map);
            continue;
        }
        map->key = word->key;
        word->key = NULL;
        list->of[i] = map;
        tree_free(word);
    }
    return code;
}

/* Expands the word at `path` to a map with the word under `key`. */
static int expand_word(struct node *root, const char *path, const char *key,
                       struct ifl_error *error)
{
    char dotted[MAX_KEY_CHARS];
    const struct node *word = tree_at(root, path);
    if (!tree_text(word))
        return 0;
    struct node *name = tree_copy(word), *map = tree_node(NODE_MAP, word);
    int code = name && map ? tree_put(root, path, map, error) : ifl_fail_nomem(error);
    if (code == 0)
        code = tree_put(root, key_join(path, key, dotted), name, error);
    tree_free(name);
    tree_free(map);
    return code;
}

/* Expands `order: fcfs` to `order: {policy: fcfs}`. */
static int expand_module(struct node *root, const struct key_section *section,
                         struct ifl_error *error)
{
    struct node *word = tree_at(root, section->where);
    if (word && section->may_be_list && (word->kind == NODE_LIST || tree_is_elements(word)))
        return expand_list(word, error);
    return expand_word(root, section->where, "policy", error);
}

static int expand_words(struct node *root, struct ifl_error *error)
{
    int code = expand_word(root, "deployment", "base", error);
    for (size_t i = 0; i < n_key_sections && code == 0; i++)
        if (key_sections[i].is_module)
            code = expand_module(root, &key_sections[i], error);
    return code;
}

int layer_expand(struct node *root, struct ifl_error *error)
{
    struct node *pools = pools_of(root);
    int code = expand_filter(root, error);
    if (code == 0)
        code = expand_words(root, error);
    for (size_t i = 0; pools && i < pools->n && code == 0; i++)
        code = expand_words(pools->of[i], error);
    return code;
}
