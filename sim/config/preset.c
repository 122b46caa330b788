/* Presets: configs/serving/NAME.yaml. A preset has the `serving` part of a published system and, if
 * its scheduler reads predictions, the error of these predictions.
 *
 *     about: {system: ..., version: ..., source: ..., reproduces: ...}
 *     extends: OTHER
 *     serving: {batching: {policy: ...}, ...}
 *     workload: {predictor: {...}}
 *
 * A preset of a router, configs/routing/NAME.yaml, has these maps of `cluster` instead:
 *
 *     cluster: {router: {policy: ...}, news: {...}, handover: {...}, migration: {...}}
 *
 * and one of a link, configs/links/NAME.yaml,
 *
 *     cluster: {links: {latency_s: ..., gb_per_s: ...}}
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

/* What a kind of preset holds. */
struct contents {
    const char *kind;                           /* as data_resolve takes it */
    const char *main;                           /* a map that it must have */
    const char *others[4];                      /* its maps, NULL-ended */
    const char *limited, *only[5], *only_names; /* of this map only these maps, NULL-ended */
};

static const struct contents *contents_of(const char *kind)
{
    static const struct contents all[] = {
        {"serving",
         "serving",
         {"about", "serving", "workload"},
         "workload",
         {"predictor"},
         "predictor"},
        {"routing",
         "cluster",
         {"about", "cluster"},
         "cluster",
         {"router", "news", "handover", "migration"},
         "router, news, handover or migration"},
        {"links", "cluster", {"about", "cluster"}, "cluster", {"links"}, "links"},
    };
    size_t i = sizeof all / sizeof *all - 1;
    while (i > 0 && strcmp(kind, all[i].kind) != 0)
        i--;
    return &all[i];
}

/* A preset may hold no other part of the workload, or of the cluster. */
static int check_limited(const struct contents *contents, const struct node *map,
                         struct ifl_error *error)
{
    if (map && map->kind != NODE_MAP)
        return tree_fail(map, error, "%s is not a map, expected one", contents->limited);
    for (size_t i = 0; map && i < map->n; i++) {
        size_t k = 0;
        while (contents->only[k] && strcmp(map->of[i]->key, contents->only[k]) != 0)
            k++;
        if (!contents->only[k])
            return tree_fail(map->of[i], error, "%s.%.100s in a preset, expected %s",
                             contents->limited, map->of[i]->key, contents->only_names);
    }
    return 0;
}

static int read_preset(const char *kind, const char *name, struct node **root,
                       struct preset_fields *preset, struct ifl_error *error)
{
    const struct contents *contents = contents_of(kind);
    char path[512];
    *root = NULL;
    if (data_resolve(kind, name, path, error) < 0 || tree_load(path, root, error) < 0)
        return error->code;
    int code = fields_read(*root, "", fields, 1, contents->others, preset, error);
    const struct node *map = tree_child(*root, contents->main);
    const struct node *inner = tree_child(map, "preset");
    if (code == 0 && (!map || map->kind != NODE_MAP))
        code = tree_fail(map ? map : *root, error, "%s is not a map, expected one", contents->main);
    if (code == 0 && !inner)
        code = check_limited(contents, tree_child(*root, contents->limited), error);
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

static int load_chain(const char *kind, const char *name, int depth, struct node **root,
                      struct ifl_error *error)
{
    struct preset_fields preset = {0};
    struct node *own, *below = NULL;
    *root = NULL;
    if (depth == MAX_CHAIN)
        return ifl_fail(error, IFL_E_INPUT, "presets extend each other in a circle, through %.200s",
                        name);
    if (read_preset(kind, name, &own, &preset, error) < 0)
        return error->code;
    tree_drop(own, "about");
    int code = 0;
    if (*preset.extends && load_chain(kind, preset.extends, depth + 1, &below, error) < 0)
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

int preset_load(const char *kind, const char *name, struct node **root, struct ifl_error *error)
{
    return load_chain(kind, name, 0, root, error);
}

int preset_about(const char *kind, const char *name, struct node **about, struct ifl_error *error)
{
    struct preset_fields preset = {0};
    struct node *root;
    *about = NULL;
    if (read_preset(kind, name, &root, &preset, error) < 0)
        return error->code;
    const struct node *found = tree_child(root, "about");
    if (found)
        *about = tree_copy(found);
    tree_free(root);
    return found && !*about ? ifl_fail_nomem(error) : 0;
}
