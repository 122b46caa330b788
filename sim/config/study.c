/* A study: the file, edited, and the checked configuration of every point of its sweep. */
#include "config/config.h"

#include <errno.h>
#include <string.h>

#include "config/keys.h"
#include "config/layers.h"
#include "config/read.h"
#include "config/sweep.h"

#ifndef INFLIGHT_VERSION
#define INFLIGHT_VERSION "unversioned"
#endif

struct study {
    struct node *user;  /* the file with the edits, without the sweep */
    struct node *sweep; /* NULL: one point */
    struct config *points;
    size_t n_points, n_read;
};

/* ---- one point ---- */

/* A message about a name belongs where the name stands. */
static int blame(const struct node *node, struct ifl_error *error)
{
    char reason[sizeof error->text];
    if (*error->file || error->code != IFL_E_INPUT)
        return error->code;
    snprintf(reason, sizeof reason, "%s", error->text);
    return tree_fail(node, error, "%s", reason);
}

/* Puts the preset that the upper layer names under it. */
static int lay_preset(const struct node *upper, struct node *root, struct ifl_error *error)
{
    const struct node *name = tree_at(upper, "serving.preset");
    struct node *preset;
    if (!name || name->kind != NODE_SCALAR || tree_is_null(name) || !*name->text)
        return 0;
    if (preset_load(name->text, &preset, error) < 0)
        return blame(name, error);
    const int code = layer_lay(root, preset, error);
    tree_free(preset);
    return code;
}

static int lay_point(const struct study *study, size_t point, struct node *upper, struct node *root,
                     struct ifl_error *error)
{
    int code = sweep_lay(study->sweep, point, upper, error);
    if (code == 0)
        code = lay_preset(upper, root, error);
    return code == 0 ? layer_lay(root, upper, error) : code;
}

static int read_point(struct study *study, const char *path, struct ifl_error *error)
{
    struct config *config = &study->points[study->n_read];
    struct node *upper = tree_copy(study->user), *root = tree_node(NODE_MAP, study->user);
    int code = upper && root ? 0 : ifl_fail_nomem(error);
    if (code == 0)
        code = lay_point(study, study->n_read, upper, root, error);
    if (code == 0)
        code = config_read(root, config, error);
    if (code == 0) {
        study->n_read++;
        code = config_check(root, config, error);
    }
    tree_free(upper);
    tree_free(root);
    snprintf(config->path, sizeof config->path, "%s", path);
    return code;
}

static int read_points(struct study *study, const char *path, struct ifl_error *error)
{
    int code = sweep_check(study->sweep, &study->n_points, error);
    if (code < 0)
        return code;
    study->points = calloc(study->n_points, sizeof *study->points);
    if (!study->points)
        return ifl_fail_nomem(error);
    while (study->n_read < study->n_points && code == 0)
        code = read_point(study, path, error);
    return code;
}

/* ---- the whole ---- */

/* Layers would cover a value that stands where a map belongs, so it is found before. */
static int check_maps(const struct node *user, struct ifl_error *error)
{
    for (size_t i = 0; i < n_key_sections; i++) {
        const char *where = key_sections[i].where;
        const struct node *map = *where ? tree_at(user, where) : user;
        const bool is_word = map && map->kind == NODE_SCALAR && key_has_short_form(where);
        if (map && map->kind != NODE_MAP && !is_word &&
            fields_read(map, where, NULL, 0, NULL, NULL, error) < 0)
            return error->code;
    }
    return 0;
}

/* The file's own keys; its sweep apart. */
static int load_user(struct study *study, const char *path, struct ifl_error *error)
{
    if (tree_load(path, &study->user, error) < 0 || check_maps(study->user, error) < 0 ||
        layer_expand(study->user, error) < 0)
        return error->code;
    const struct node *sweep = tree_child(study->user, "sweep");
    if (sweep && !tree_is_null(sweep)) {
        study->sweep = tree_copy(sweep);
        if (!study->sweep)
            return ifl_fail_nomem(error);
    }
    tree_drop(study->user, "sweep");
    return 0;
}

static int load(struct study *study, const struct study_options *options, struct ifl_error *error)
{
    int code = load_user(study, options->path, error);
    for (size_t i = 0; i < options->n_sets && code == 0; i++)
        code = edit_apply(options->sets[i], study->user, &study->sweep, error);
    if (code == 0)
        code = read_points(study, options->path, error);
    if (code == IFL_E_INPUT && !*error->file)
        snprintf(error->file, sizeof error->file, "%s", options->path);
    return code;
}

int study_load(const struct study_options *options, struct study **study, struct ifl_error *error)
{
    *study = calloc(1, sizeof **study);
    if (!*study)
        return ifl_fail_nomem(error);
    const int code = load(*study, options, error);
    if (code < 0) {
        study_free(*study);
        *study = NULL;
    }
    return code;
}

void study_free(struct study *study)
{
    if (!study)
        return;
    for (size_t i = 0; i < study->n_read; i++)
        config_finish(&study->points[i]);
    free(study->points);
    tree_free(study->user);
    tree_free(study->sweep);
    free(study);
}

size_t study_n_points(const struct study *study)
{
    return study->n_points;
}

size_t study_n_axes(const struct study *study)
{
    return study->sweep ? study->sweep->n : 0;
}

const char *study_axis(const struct study *study, size_t axis)
{
    return study->sweep->of[axis]->key;
}

const char *study_value(const struct study *study, size_t point, size_t axis)
{
    return sweep_value(study->sweep, point, axis)->text;
}

const struct config *study_point(const struct study *study, size_t point)
{
    return &study->points[point];
}

/* ---- writing ---- */

/* Keys that differ between points: the sweep says them, and where it changes the policies, the
 * file's own serving keys say what they say on every preset. */
static bool differs(const void *context, const char *dotted)
{
    const struct study *study = context;
    const bool serving = strncmp(dotted, "serving.", strlen("serving.")) == 0;
    return sweep_decides(study->sweep, dotted) || (serving && sweep_changes_policies(study->sweep));
}

static int put_copy(struct node *root, const char *key, const struct node *node,
                    struct ifl_error *error)
{
    return node ? tree_append(root, key, tree_copy(node), error) : 0;
}

static int gather(const struct study *study, struct node *root, struct ifl_error *error)
{
    const struct key_skip skip = {differs, study};
    int code = config_write(&study->points[0], &skip, root, error);
    if (code == 0 && sweep_changes_policies(study->sweep))
        code = put_copy(root, "serving", tree_child(study->user, "serving"), error);
    if (code == 0 && study_n_axes(study))
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
