/* The axes of a sweep and their points. */
#include "config/sweep.h"

#include <string.h>

#include "inflight/nearest.h"

#include "config/keys.h"
#include "config/layers.h"
#include "config/variants.h"

static size_t n_axes(const struct node *sweep)
{
    return sweep ? sweep->n : 0;
}

/* "varients" is near to no key of a configuration. */
static int check_key(const struct node *axis, struct ifl_error *error)
{
    static const char *const word[] = {"variants"};
    if (axis_is_variants(axis))
        return 0;
    if (!strchr(axis->key, '.') && ifl_nearest(axis->key, word, 1))
        return tree_fail(axis, error, "unknown key %.100s, did you mean variants?", axis->key);
    const bool takes_maps = key_has_short_form(axis->key) || axis_holds_maps(axis);
    return key_check(axis->key, !takes_maps, axis, error);
}

static int check_words(const struct node *axis, struct ifl_error *error)
{
    char found[128];
    for (size_t i = 0; i < axis->n; i++) {
        const struct node *value = axis->of[i];
        if (value->kind != NODE_SCALAR || (!value->quoted && !*value->text))
            return tree_fail(value, error, "sweep of %s holds %s, expected single values or maps",
                             axis->key, tree_describe(value, found));
    }
    return 0;
}

static int check_axis(const struct node *axis, struct ifl_error *error)
{
    char found[128];
    const bool is_variants = axis_is_variants(axis), is_list = axis->kind == NODE_LIST;
    if (check_key(axis, error) < 0)
        return error->code;
    if (strcmp(axis->key, "sweep") == 0)
        return tree_fail(axis, error, "sweep is swept, expected keys of a point");
    if (strncmp(axis->key, "output.", strlen("output.")) == 0)
        return tree_fail(axis, error, "%s is swept, expected one output for all points", axis->key);
    if (strcmp(axis->key, "replications") == 0)
        return tree_fail(axis, error, "replications is swept, expected one number for all points");
    if (axis->n == 0 || (is_variants && is_list))
        return tree_fail(axis, error, "sweep of %s is %s, expected a %s", axis->key,
                         axis->kind == NODE_SCALAR ? tree_describe(axis, found)
                         : is_list                 ? axis->n ? "a list" : "an empty list"
                                                   : "an empty map",
                         is_variants ? "map of names to configurations" : "list of values");
    return is_list ? check_words(axis, error) : variants_check(axis, error);
}

int sweep_check(const struct node *sweep, size_t *n_points, struct ifl_error *error)
{
    char found[128];
    *n_points = 1;
    if (sweep && sweep->kind != NODE_MAP)
        return tree_fail(sweep, error, "sweep is %s, expected a map of keys to lists",
                         tree_describe(sweep, found));
    for (size_t i = 0; i < n_axes(sweep); i++) {
        if (check_axis(sweep->of[i], error) < 0)
            return error->code;
        *n_points *= sweep->of[i]->n;
        if (*n_points > MAX_POINTS)
            return tree_fail(sweep->of[i], error, "the sweep has %zu points and more, at most %d",
                             *n_points, MAX_POINTS);
    }
    return 0;
}

const struct node *sweep_value(const struct node *sweep, size_t point, size_t axis)
{
    ifl_assert(axis < sweep->n);
    for (size_t later = axis + 1; later < sweep->n; later++)
        point /= sweep->of[later]->n;
    return sweep->of[axis]->of[point % sweep->of[axis]->n];
}

/* A key of a pool that the file lacks would make a pool of a misspelt name. */
static int check_pool(const char *dotted, const struct node *value, const struct node *root,
                      struct ifl_error *error)
{
    char pool[MAX_KEY_CHARS];
    const char *inner = key_in_pool(dotted), *words[MAX_POOLS];
    if (!inner || !*inner)
        return 0;
    snprintf(pool, sizeof pool, "%.*s", (int)(inner - dotted) - 1, dotted);
    const struct node *pools = tree_at(root, "cluster.pools");
    size_t n = 0;
    if (tree_at(root, pool))
        return 0;
    for (; pools && n < pools->n && n < MAX_POOLS; n++)
        words[n] = pools->of[n]->key;
    const char *name = pool + strlen("cluster.pools."), *near = ifl_nearest(name, words, n);
    return tree_fail(value, error, "there is no pool %.60s in cluster.pools%s%s%s", name,
                     near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

/* Lays one value of a key over a configuration. */
static int lay_value(const char *dotted, const struct node *value, struct node *root,
                     struct ifl_error *error)
{
    struct node *layer;
    if (check_pool(dotted, value, root, error) < 0 || layer_of(dotted, value, &layer, error) < 0)
        return error->code;
    const int code = layer_lay(root, layer, error);
    tree_free(layer);
    return code;
}

/* A pool that the file lacks is a new one, with its count, or has a misspelt name. */
static int check_new_pools(const struct node *layer, const struct node *root,
                           struct ifl_error *error)
{
    const struct node *pools = tree_at(layer, "cluster.pools");
    char dotted[MAX_KEY_CHARS], key[MAX_KEY_CHARS];
    int code = 0;
    for (size_t i = 0; pools && pools->kind == NODE_MAP && i < pools->n && code == 0; i++) {
        if (!tree_at(root, "cluster.pools") || tree_child(pools->of[i], "count"))
            continue;
        key_join("cluster.pools", pools->of[i]->key, dotted);
        code = check_pool(key_join(dotted, "count", key), pools->of[i], root, error);
    }
    return code;
}

static int lay_variant(const struct node *variant, struct node *root, struct ifl_error *error)
{
    return check_new_pools(variant, root, error) < 0 ? error->code
                                                     : layer_lay(root, variant, error);
}

const char *sweep_name(const struct node *sweep, size_t point, size_t axis)
{
    const struct node *value = sweep_value(sweep, point, axis);
    return value->key ? value->key : value->text;
}

const char *sweep_axis_name(const struct node *axis)
{
    return axis_is_variants(axis) ? "variant" : axis->key;
}

int sweep_lay(const struct node *sweep, size_t point, struct node *root, struct ifl_error *error)
{
    int code = 0;
    for (size_t axis = 0; axis < n_axes(sweep) && code == 0; axis++) {
        const struct node *value = sweep_value(sweep, point, axis);
        code = axis_is_variants(sweep->of[axis])
                   ? lay_variant(value, root, error)
                   : lay_value(sweep->of[axis]->key, value, root, error);
    }
    return code;
}

/* True if the key is the map or a key below it: "a.b" holds "a.b" and "a.b.c". */
static bool holds(const char *map, const char *dotted)
{
    const size_t n_chars = strlen(map);
    return strncmp(map, dotted, n_chars) == 0 &&
           (dotted[n_chars] == '\0' || dotted[n_chars] == '.');
}

/* The name of a deployment sets its base alone. */
static bool decides(const char *axis, const char *dotted)
{
    const bool names_base = strcmp(axis, "deployment") == 0;
    return names_base ? strcmp(dotted, "deployment.base") == 0 : holds(axis, dotted);
}

/* The number of a list's module is no matter. */
static bool sets(const char *axis, const char *dotted)
{
    char plain[MAX_KEY_CHARS];
    return decides(axis, dotted) || decides(key_plain(axis, plain), dotted);
}

/* Keys of pools are compared within their pool. */
static bool sets_anywhere(const char *axis, const char *dotted)
{
    const char *in_axis = key_in_pool(axis), *in_dotted = key_in_pool(dotted);
    if (!in_axis || !in_dotted)
        return !in_axis && !in_dotted && sets(axis, dotted);
    const size_t n_chars = (size_t)(in_axis - axis);
    return strncmp(axis, dotted, n_chars) == 0 && sets(in_axis, in_dotted);
}

bool sweep_decides(const struct node *sweep, const char *dotted)
{
    for (size_t axis = 0; axis < n_axes(sweep); axis++)
        if (!axis_holds_maps(sweep->of[axis]) && sets_anywhere(sweep->of[axis]->key, dotted))
            return true;
    return false;
}

/* True if the maps name a policy for the module, or list several. */
static bool names_policy(const struct node *touched, const char *module)
{
    const struct node *map = tree_at(touched, module);
    return map && (map->kind != NODE_MAP || tree_child(map, "policy"));
}

bool sweep_changes_policies(const struct node *sweep, const struct node *touched)
{
    char policy[MAX_KEY_CHARS];
    bool changes = tree_at(touched, "serving.preset") != NULL;
    for (size_t axis = 0; axis < n_axes(sweep); axis++) {
        const char *key = sweep->of[axis]->key, *inner = key_in_pool(key);
        key = inner ? inner : key;
        changes |= sets(key, "serving.preset");
        for (size_t i = 0; i < n_key_sections; i++)
            if (key_sections[i].is_module && holds("serving", key_sections[i].where))
                changes |= sets(key, key_join(key_sections[i].where, "policy", policy));
    }
    for (size_t i = 0; i < n_key_sections; i++)
        if (key_sections[i].is_module && holds("serving", key_sections[i].where))
            changes |= names_policy(touched, key_sections[i].where);
    return changes;
}

/* ---- edits ---- */

/* An edit has no line and column: its text takes the place of the file's name. */
static void forget_place(struct node *node)
{
    node->line = node->column = 0;
    for (size_t i = 0; i < node->n; i++)
        forget_place(node->of[i]);
}

static int parse_edit(const char *edit, char key[MAX_KEY_CHARS], struct node **value,
                      struct ifl_error *error)
{
    char name[sizeof error->file];
    const size_t n_chars = strcspn(edit, "=");
    *value = NULL;
    snprintf(name, sizeof name, "--set %s", edit);
    if (edit[n_chars] != '=' || n_chars == 0 || n_chars >= MAX_KEY_CHARS)
        return ifl_fail_at(error, name, 0, 0, "not an edit, expected path.to.key=value");
    snprintf(key, MAX_KEY_CHARS, "%.*s", (int)n_chars, edit);
    const char *text = edit + n_chars + 1;
    if (!text[strspn(text, " ")])
        return ifl_fail_at(error, name, 0, 0, "no value, expected one (null for the default)");
    const int code = tree_parse(text, strlen(text), name, value, error);
    if (code == 0)
        forget_place(*value);
    else
        error->line = error->column = 0;
    return code;
}

/* Removes the axes that the edit fixes. */
static void drop_axes(struct node *sweep, const char *key)
{
    for (size_t axis = n_axes(sweep); axis-- > 0;)
        if (holds(key, sweep->of[axis]->key) || holds(sweep->of[axis]->key, key))
            tree_drop(sweep, sweep->of[axis]->key);
}

static int edit_variant(const char *path, const struct node *value, struct node *sweep,
                        struct ifl_error *error)
{
    if (!tree_child(sweep, "variants") &&
        tree_set(sweep, "variants", tree_node(NODE_MAP, value), error) < 0)
        return error->code;
    return variants_set(tree_child(sweep, "variants"), path, value, error);
}

static int edit_sweep(const char *axis, const struct node *value, struct node **sweep,
                      struct ifl_error *error)
{
    if (!*axis) {
        tree_free(*sweep);
        *sweep = tree_is_null(value) ? NULL : tree_copy(value);
        return *sweep || tree_is_null(value) ? 0 : ifl_fail_nomem(error);
    }
    if (!*sweep)
        *sweep = tree_node(NODE_MAP, value);
    if (!*sweep)
        return ifl_fail_nomem(error);
    if ((*sweep)->kind == NODE_MAP && strncmp(axis, "variants.", strlen("variants.")) == 0)
        return edit_variant(axis + strlen("variants."), value, *sweep, error);
    if (!tree_is_null(value))
        return tree_set(*sweep, axis, tree_copy(value), error);
    if ((*sweep)->kind == NODE_MAP)
        tree_drop(*sweep, axis);
    return 0;
}

static int edit_key(const char *key, const struct node *value, struct node *root,
                    struct node *sweep, struct ifl_error *error)
{
    if (key_check(key, false, value, error) < 0)
        return error->code;
    if (sweep && sweep->kind == NODE_MAP)
        drop_axes(sweep, key);
    const int code = lay_value(key, value, root, error);
    return code < 0 ? code : variants_edit(sweep, key, value, error);
}

int edit_apply(const char *edit, struct node *root, struct node **sweep, struct ifl_error *error)
{
    char key[MAX_KEY_CHARS] = "";
    struct node *value;
    int code = parse_edit(edit, key, &value, error);
    if (code == 0 && holds("sweep", key))
        code =
            edit_sweep(key + strlen("sweep") + (key[strlen("sweep")] == '.'), value, sweep, error);
    else if (code == 0)
        code = edit_key(key, value, root, *sweep, error);
    tree_free(value);
    return code;
}
