/* Writes a study as one file, from which the same study can be read: the resolved configuration of
 * its first point, with the file's own keys where points differ. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/random.h"

#include "base/new_file.h"
#include "config/keys.h"
#include "config/pools.h"
#include "config/read.h"
#include "config/study_parts.h"
#include "config/sweep.h"

#ifndef INFLIGHT_VERSION
#define INFLIGHT_VERSION "unversioned"
#endif

static bool is_below(const char *dotted, const char *map)
{
    return strncmp(dotted, map, strlen(map)) == 0;
}

static bool of_preset(const char *dotted)
{
    return is_below(dotted, "serving.") || is_below(dotted, "workload.predictor.");
}

static bool of_routing(const char *dotted)
{
    return is_below(dotted, "cluster.router.") || is_below(dotted, "cluster.news.") ||
           is_below(dotted, "cluster.handover.") || is_below(dotted, "cluster.migration.");
}

/* True if serving and the predictor, or the router and its news, are those of the file, over a
 * preset that differs. */
static bool presets_differ(const struct study *study)
{
    return sweep_changes_policies(study->sweep, study->touched);
}

static bool routers_differ(const struct study *study)
{
    return study_sweeps(study, "cluster.preset");
}

/* Keys that are not written with their resolved values:
 *   - keys of the sweep. Where its maps set them, the file's own keys are copied in their place,
 *     since these apply at points where the maps leave them alone;
 *   - where the sweep changes policies or the preset of the router, the keys of presets. The file's
 *     own keys are copied in their place, since these apply on every preset;
 *   - `live`, which concerns no report, and holds a server's api_key. */
static bool differs(const void *context, const char *dotted)
{
    const struct study *study = context;
    const char *inner = key_in_pool(dotted);
    if (is_below(dotted, "live."))
        return true;
    if (study_sweeps(study, dotted))
        return true;
    /* What a sweep says of all pools is not written with each, unless it says its own. */
    if (inner && study_sweeps(study, inner) && !tree_at(study->user, dotted))
        return true;
    return (of_preset(inner ? inner : dotted) && presets_differ(study)) ||
           (of_routing(dotted) && routers_differ(study));
}

static int put_copy(struct node *root, const char *key, const struct node *node,
                    struct ifl_error *error)
{
    return node ? tree_append(root, key, tree_copy(node), error) : 0;
}

static int put_pools_serving(const struct study *study, size_t i, struct node *root,
                             struct ifl_error *error)
{
    const struct node *pool = tree_at(study->user, "cluster.pools")->of[i];
    const struct node *serving = tree_child(pool, "serving");
    char where[MAX_KEY_CHARS], path[MAX_KEY_CHARS];
    key_join("cluster.pools", pool->key, where);
    return serving ? tree_put(root, key_join(where, "serving", path), serving, error) : 0;
}

/* The file's own keys of the router. */
static int put_routing(const struct study *study, struct node *root, struct ifl_error *error)
{
    static const char *const maps[] = {"cluster.router", "cluster.news", "cluster.handover",
                                       "cluster.migration"};
    int code = 0;
    for (size_t i = 0; i < sizeof maps / sizeof *maps && code == 0; i++) {
        const struct node *own = tree_at(study->user, maps[i]);
        code = own ? tree_put(root, maps[i], own, error) : 0;
    }
    return code;
}

/* Copies the file's own values of the keys below `path` that maps of the sweep set. */
static int put_touched(const struct study *study, const char *path, const struct node *touched,
                       struct node *root, struct ifl_error *error)
{
    char below[MAX_KEY_CHARS];
    const struct node *own = *path ? tree_at(study->user, path) : study->user;
    if (!own || tree_is_null(own) || (of_preset(path) && presets_differ(study)) ||
        (of_routing(path) && routers_differ(study)))
        return 0;
    if (*path && (touched->kind != NODE_MAP || !key_is_section(path)))
        return sweep_decides(study->sweep, path) ? 0 : tree_put(root, path, own, error);
    int code = 0;
    for (size_t i = 0; i < touched->n && code == 0; i++)
        code = put_touched(study, key_join(path, touched->of[i]->key, below), touched->of[i], root,
                           error);
    return code;
}

static int gather_resolved(const struct study *study, struct node *root, struct ifl_error *error)
{
    const struct key_skip skip = {differs, study};
    const struct node *predictor = tree_at(study->user, "workload.predictor");
    int code = config_write(&study->first, &skip, root, error);
    if (code == 0 && presets_differ(study))
        code = put_copy(root, "serving", tree_child(study->user, "serving"), error);
    for (size_t i = 0; i < pools_n(study->user) && code == 0; i++)
        if (presets_differ(study))
            code = put_pools_serving(study, i, root, error);
    if (code == 0 && presets_differ(study) && predictor)
        code = tree_put(root, "workload.predictor", predictor, error);
    if (code == 0 && routers_differ(study))
        code = put_routing(study, root, error);
    const struct node *given = tree_at(study->user, "capacity.placement.given");
    if (code == 0 && given)
        code = tree_put(root, "capacity.placement.given", given, error);
    return code == 0 && study->touched ? put_touched(study, "", study->touched, root, error) : code;
}

/* Where maps of the sweep meet pools, what a key of a pool falls back on is not the same at all
 * points: the file's keys are written as they are. */
static int gather(const struct study *study, struct node *root, struct ifl_error *error)
{
    const bool with_pools = pools_n(study->user) > 0 || tree_at(study->touched, "cluster.pools");
    int code = study->touched && with_pools ? tree_overlay(root, study->user, error)
                                            : gather_resolved(study, root, error);
    if (code == 0 && study_n_swept(study) && !study->placement)
        code = put_copy(root, "sweep", study->sweep, error);
    return code;
}

int study_write(const struct study *study, FILE *out, struct ifl_error *error)
{
    struct node *root = tree_node(NODE_MAP, study->user);
    if (!root)
        return ifl_fail_nomem(error);
    int code = gather(study, root, error);
    if (code == 0 && fprintf(out, "# inflight %s\n", INFLIGHT_VERSION) < 0)
        code =
            ifl_fail(error, IFL_E_IO, "the configuration cannot be written: %s", strerror(errno));
    if (code == 0)
        code = tree_print(root, out, error);
    tree_free(root);
    return code;
}

int study_write_file(const struct study *study, const char *path, struct ifl_error *error)
{
    struct new_file file;
    return new_file_open(&file, path, error) < 0
               ? error->code
               : new_file_close(&file, study_write(study, file.out, error), error);
}

/* The presets' contents, for the hash: study_write writes only their names if policies change. */
static int write_presets(const struct study *study, FILE *out, struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < study->n_presets && code == 0; i++)
        code = tree_print(study->presets[i].root, out, error);
    return code;
}

static void hash_bytes(uint64_t *hash, const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        *hash = ifl_mix(*hash ^ (unsigned char)text[i]);
}

int study_text_make(struct study_text *made, const struct study *study, struct ifl_error *error)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&text, &n_bytes);
    *made = (struct study_text){0};
    if (!out)
        return ifl_fail_nomem(error);
    int code = study_write(study, out, error);
    if (code == 0 && fflush(out) != 0)
        code = ifl_fail_nomem(error);
    made->n_bytes = n_bytes;
    if (code == 0)
        code = write_presets(study, out, error);
    if (fclose(out) != 0 && code == 0)
        code = ifl_fail_nomem(error);
    made->text = text;
    made->hash = n_bytes;
    if (code == 0)
        hash_bytes(&made->hash, text, n_bytes);
    else
        study_text_drop(made);
    return code;
}

void study_text_drop(struct study_text *text)
{
    free(text->text);
    *text = (struct study_text){0};
}

int study_text_save(const struct study_text *text, const char *path, struct ifl_error *error)
{
    struct new_file file;
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    /* What fwrite could not write, new_file_close finds. */
    (void)fwrite(text->text, 1, text->n_bytes, file.out);
    return new_file_close(&file, 0, error);
}
