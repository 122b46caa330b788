#include "config/variants.h"

#include <string.h>

#include "inflight/nearest.h"

#include "config/keys.h"
#include "config/layers.h"
#include "config/pools.h"

static const char variants_key[] = "variants";

bool axis_is_variants(const struct node *axis)
{
    return strcmp(axis->key, variants_key) == 0;
}

/* ---- names of maps in a list ---- */

static void print_leaves(FILE *out, const struct node *node, bool *any)
{
    for (size_t i = 0; i < node->n; i++) {
        const struct node *child = node->of[i];
        if (child->kind == NODE_MAP) {
            print_leaves(out, child, any);
            continue;
        }
        fprintf(out, "%s%s", *any ? ", " : "", child->key);
        *any = true;
        if (child->kind == NODE_SCALAR)
            fprintf(out, " %s", child->text);
        for (size_t k = 0; child->kind == NODE_LIST && k < child->n; k++)
            if (child->of[k]->kind == NODE_SCALAR)
                fprintf(out, " %s", child->of[k]->text);
    }
}

/* A word's own text, or the keys of a map with their values; NULL without memory. */
static char *name_of(const struct node *value)
{
    char *name = NULL;
    size_t n_bytes;
    bool any = false;
    FILE *out = open_memstream(&name, &n_bytes);
    if (!out)
        return NULL;
    if (value->kind == NODE_MAP)
        print_leaves(out, value, &any);
    else
        fputs(value->text ? value->text : "", out);
    if (fclose(out) == 0)
        return name;
    free(name);
    return NULL;
}

/* Gives the name's text to the value as its key. */
static int add_named(struct node *named, const char *key, const struct node *value,
                     struct ifl_error *error)
{
    char *name = name_of(value);
    int code = IFL_OK;
    if (!name)
        return ifl_fail_nomem(error);
    if (tree_child(named, name))
        code = tree_fail(value, error,
                         "two values of %s are both %.100s, expected different ones, or a map of "
                         "names to values",
                         key, name);
    else
        code = tree_append(named, name, tree_copy(value), error);
    free(name);
    return code;
}

bool axis_holds_maps(const struct node *axis)
{
    bool any = axis_is_variants(axis);
    for (size_t i = 0; i < axis->n; i++)
        any |= axis->of[i]->kind == NODE_MAP;
    return any;
}

static int name_values(struct node *sweep, const struct node *axis, struct ifl_error *error)
{
    struct node *named = tree_node(NODE_MAP, axis);
    int code = named ? IFL_OK : ifl_fail_nomem(error);
    for (size_t i = 0; i < axis->n && code == IFL_OK; i++)
        code = axis->of[i]->kind == NODE_LIST
                   ? tree_fail(axis->of[i], error,
                               "sweep of %s holds a list beside maps, expected a map of names to "
                               "values",
                               axis->key)
                   : add_named(named, axis->key, axis->of[i], error);
    if (code == IFL_OK)
        return tree_set(sweep, axis->key, named, error);
    tree_free(named);
    return code;
}

/* ---- one form ---- */

/* A variant that says nothing is what the file says. */
static int expand_variant(struct node *variants, struct node *variant, struct ifl_error *error)
{
    if (tree_is_null(variant))
        return tree_set(variants, variant->key, tree_node(NODE_MAP, variant), error);
    if (variant->kind != NODE_MAP)
        return IFL_OK;
    const int code = pools_check_maps(variant, error);
    return code < 0 ? code : layer_expand(variant, error);
}

int variants_prepare(struct node *sweep, struct ifl_error *error)
{
    int code = IFL_OK;
    for (size_t i = 0; sweep && sweep->kind == NODE_MAP && i < sweep->n && code == IFL_OK; i++) {
        struct node *axis = sweep->of[i];
        if (axis_is_variants(axis))
            for (size_t v = 0; axis->kind == NODE_MAP && v < axis->n && code == IFL_OK; v++)
                code = expand_variant(axis, axis->of[v], error);
        else if (axis->kind == NODE_LIST && axis_holds_maps(axis))
            code = name_values(sweep, axis, error);
    }
    return code;
}

int variants_layer(const struct node *axis, const struct node *value, struct node **layer,
                   struct ifl_error *error)
{
    if (!axis_is_variants(axis))
        return layer_of(axis->key, value, layer, error);
    *layer = tree_copy(value);
    return *layer ? IFL_OK : ifl_fail_nomem(error);
}

/* ---- checks ---- */

static bool is_one_line(const char *name)
{
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return *name;
}

static int check_variant(const struct node *variant, struct ifl_error *error)
{
    static const char *const of_a_study[] = {"sweep", "output", "replications"};
    char found[128];
    if (variant->kind != NODE_MAP)
        return tree_fail(variant, error, "variant %.100s is %s, expected a map of keys",
                         variant->key, tree_describe(variant, found));
    for (size_t i = 0; i < sizeof of_a_study / sizeof *of_a_study; i++) {
        const struct node *child = tree_child(variant, of_a_study[i]);
        if (child)
            return tree_fail(child, error,
                             "variant %.100s sets %s, expected keys that points may differ in",
                             variant->key, of_a_study[i]);
    }
    return IFL_OK;
}

static int check_value(const struct node *axis, const struct node *value, struct ifl_error *error)
{
    struct node *layer;
    if (tree_is_null(value))
        return tree_fail(value, error, "%.100s of %s has no value, expected one", value->key,
                         axis->key);
    if (value->kind != NODE_MAP)
        return IFL_OK;
    int code = layer_of(axis->key, value, &layer, error);
    if (code == IFL_OK)
        code = pools_check_maps(layer, error);
    tree_free(layer);
    return code;
}

int variants_check(const struct node *axis, struct ifl_error *error)
{
    int code = IFL_OK;
    for (size_t i = 0; i < axis->n && code == IFL_OK; i++) {
        const struct node *value = axis->of[i];
        if (!is_one_line(value->key))
            return tree_fail(value, error, "a name of %s is %s, expected a line of text", axis->key,
                             *value->key ? "not one line" : "empty");
        code =
            axis_is_variants(axis) ? check_variant(value, error) : check_value(axis, value, error);
    }
    return code;
}

/* ---- what maps set ---- */

/* The axis of the whole key: of a module and of a deployment also the word in its place. */
static bool is_swept(const struct node *sweep, const char *key)
{
    char word[MAX_KEY_CHARS];
    snprintf(word, sizeof word, "%s", key);
    char *last = strrchr(word, '.');
    if (last && (strcmp(last, ".policy") == 0 || strcmp(key, "deployment.base") == 0))
        *last = '\0';
    return tree_child(sweep, key) || (key_has_short_form(word) && tree_child(sweep, word));
}

static int check_unswept(const struct node *sweep, const char *path, const struct node *node,
                         struct ifl_error *error)
{
    char below[MAX_KEY_CHARS];
    if (*path && (node->kind != NODE_MAP || !key_is_section(path)))
        return is_swept(sweep, path)
                   ? tree_fail(node, error,
                               "%s is set in a variant and swept as well, expected one of the two",
                               path)
                   : IFL_OK;
    int code = IFL_OK;
    for (size_t i = 0; i < node->n && code == IFL_OK; i++)
        code = check_unswept(sweep, key_join(path, node->of[i]->key, below), node->of[i], error);
    return code;
}

static int add_layer(struct node *touched, const struct node *axis, const struct node *value,
                     struct ifl_error *error)
{
    struct node *layer;
    int code = variants_layer(axis, value, &layer, error);
    if (code == IFL_OK)
        code = tree_overlay(touched, layer, error);
    tree_free(layer);
    return code;
}

int variants_touched(const struct node *sweep, struct node **touched, struct ifl_error *error)
{
    int code = IFL_OK;
    *touched = NULL;
    for (size_t i = 0; sweep && i < sweep->n; i++) {
        const struct node *axis = sweep->of[i];
        for (size_t v = 0; v < axis->n && axis_holds_maps(axis) && code == IFL_OK; v++) {
            if (!*touched && !(*touched = tree_node(NODE_MAP, sweep)))
                return ifl_fail_nomem(error);
            if (axis_is_variants(axis))
                code = check_unswept(sweep, "", axis->of[v], error);
            if (code == IFL_OK)
                code = add_layer(*touched, axis, axis->of[v], error);
        }
    }
    if (code < 0) {
        tree_free(*touched);
        *touched = NULL;
    }
    return code;
}

/* ---- edits ---- */

/* The map that holds the key; the key's own node where that is at the top. */
static const struct node *around(const struct node *variant, const char *dotted)
{
    char path[MAX_KEY_CHARS];
    snprintf(path, sizeof path, "%s", dotted);
    char *last = strrchr(path, '.');
    if (last)
        *last = '\0';
    return tree_at(variant, path);
}

int variants_edit(struct node *sweep, const char *dotted, const struct node *value,
                  struct ifl_error *error)
{
    struct node *variants =
                    sweep && sweep->kind == NODE_MAP ? tree_child(sweep, variants_key) : NULL,
                *layer;
    int code = IFL_OK;
    for (size_t v = 0; variants && v < variants->n && code == IFL_OK; v++) {
        if (variants->of[v]->kind != NODE_MAP || !around(variants->of[v], dotted))
            continue;
        code = layer_of(dotted, value, &layer, error);
        if (code == IFL_OK)
            code = layer_lay(variants->of[v], layer, error);
        tree_free(layer);
    }
    return code;
}

/* The variant of the longest name that begins the path; *rest is what stands behind it. A name may
 * have dots. */
static struct node *find_variant(const struct node *variants, const char *path, const char **rest)
{
    struct node *found = NULL;
    size_t most = 0;
    for (size_t v = 0; v < variants->n; v++) {
        const size_t n_chars = strlen(variants->of[v]->key);
        if (n_chars <= most || strncmp(path, variants->of[v]->key, n_chars) != 0 ||
            (path[n_chars] && path[n_chars] != '.'))
            continue;
        found = variants->of[v];
        most = n_chars;
        *rest = path + n_chars + (path[n_chars] == '.');
    }
    return found;
}

/* NAME.path.to.key of a variant that is not there. */
static int fail_absent(const struct node *variants, const char *path, const struct node *value,
                       struct ifl_error *error)
{
    enum { MAX_NAMES = 64 };
    char name[MAX_KEY_CHARS];
    const char *names[MAX_NAMES];
    size_t n = 0;
    for (; n < variants->n && n < MAX_NAMES; n++)
        names[n] = variants->of[n]->key;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "."), path);
    const char *near = ifl_nearest(name, names, n);
    return tree_fail(value, error,
                     "there is no variant %.60s in sweep.variants, expected one that is there, or "
                     "a map of keys for a new one%s%.60s%s",
                     name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

int variants_set(struct node *variants, const char *path, const struct node *value,
                 struct ifl_error *error)
{
    const char *rest = "";
    struct node *variant = find_variant(variants, path, &rest);
    if (variant && *rest)
        return tree_put(variant, rest, value, error);
    if (tree_is_null(value)) {
        if (variant)
            tree_drop(variants, variant->key);
        return IFL_OK;
    }
    /* Names may have dots, but a variant is a map. */
    return !variant && value->kind == NODE_SCALAR && strchr(path, '.')
               ? fail_absent(variants, path, value, error)
               : tree_set(variants, path, tree_copy(value), error);
}
