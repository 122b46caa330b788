/* Presets: configs/serving/NAME.yaml. A preset has the `serving` part of a published system and, if
 * its scheduler reads predictions, the error of these predictions.
 *
 *     about: {system: ..., version: ..., source: ..., reproduces: ...}
 *     extends: OTHER
 *     serving: {batching: {policy: ...}, ...}
 *     workload: {predictor: {...}}
 */
#include "base/data.h"
#include "config/layers.h"

#include <string.h>

#include "config/config.h"

/* More than any sensible chain of presets: a longer one extends itself in a circle. */
enum { MAX_CHAIN = 16 };

struct preset_fields {
    char extends[512];
};

static const struct ifl_param fields[] = {
    {"extends", IFL_TEXT, offsetof(struct preset_fields, extends), 0, 0, 512, NULL, "",
     "the preset that lies below this one"},
};

/* A preset may hold no part of the workload but the predictor. */
static int check_workload(const struct node *workload, struct ifl_error *error)
{
    if (workload && workload->kind != NODE_MAP)
        return tree_fail(workload, error, "workload is not a map, expected one");
    for (size_t i = 0; workload && i < workload->n; i++)
        if (strcmp(workload->of[i]->key, "predictor") != 0)
            return tree_fail(workload->of[i], error,
                             "workload.%.100s in a preset, expected predictor",
                             workload->of[i]->key);
    return 0;
}

static int read_preset(const char *name, struct node **root, struct preset_fields *preset,
                       struct ifl_error *error)
{
    static const char *const others[] = {"about", "serving", "workload", NULL};
    char path[512];
    *root = NULL;
    if (data_resolve("serving", name, path, error) < 0 || tree_load(path, root, error) < 0)
        return error->code;
    int code = fields_read(*root, "", fields, 1, others, preset, error);
    const struct node *serving = tree_child(*root, "serving");
    const struct node *inner = tree_child(serving, "preset");
    if (code == 0 && (!serving || serving->kind != NODE_MAP))
        code = tree_fail(serving ? serving : *root, error, "serving is not a map, expected one");
    if (code == 0)
        code = check_workload(tree_child(*root, "workload"), error);
    if (code == 0 && inner)
        code = tree_fail(inner, error, "a preset in a preset, expected `extends` at its top");
    if (code < 0) {
        tree_free(*root);
        *root = NULL;
    }
    return code;
}

/* An unknown preset is an error at the `extends` that names it. */
static int blame(const struct node *root, struct ifl_error *error)
{
    char reason[sizeof error->text];
    const struct node *extends = tree_child(root, "extends");
    if (*error->file || !extends || error->code != IFL_E_INPUT)
        return error->code;
    snprintf(reason, sizeof reason, "%s", error->text);
    return tree_fail(extends, error, "%s", reason);
}

static int load_chain(const char *name, int depth, struct node **root, struct ifl_error *error)
{
    struct preset_fields preset = {0};
    struct node *own, *below = NULL;
    *root = NULL;
    if (depth == MAX_CHAIN)
        return ifl_fail(error, IFL_E_INPUT, "presets extend each other in a circle, through %.200s",
                        name);
    if (read_preset(name, &own, &preset, error) < 0)
        return error->code;
    tree_drop(own, "about");
    int code = 0;
    if (*preset.extends && load_chain(preset.extends, depth + 1, &below, error) < 0)
        code = blame(own, error);
    tree_drop(own, "extends");
    if (code == 0 && below)
        code = layer_lay(below, own, error);
    if (below || code < 0)
        tree_free(own);
    if (code < 0)
        tree_free(below);
    else
        *root = below ? below : own;
    return code;
}

int preset_load(const char *name, struct node **root, struct ifl_error *error)
{
    return load_chain(name, 0, root, error);
}

int preset_about(const char *name, struct node **about, struct ifl_error *error)
{
    struct preset_fields preset = {0};
    struct node *root;
    *about = NULL;
    if (read_preset(name, &root, &preset, error) < 0)
        return error->code;
    const struct node *found = tree_child(root, "about");
    if (found)
        *about = tree_copy(found);
    tree_free(root);
    return found && !*about ? ifl_fail_nomem(error) : 0;
}
