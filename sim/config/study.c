/* A study: the file with its edits, and the configurations of its points.
 *
 * A point is a combination of the sweep's values and, innermost, a replication. Every point is read
 * and checked once when the study is loaded, and read again before it is simulated. Configurations
 * are not kept, so that memory does not grow with the points. */
#include "config/config.h"

#include <string.h>

#include "inflight/random.h"

#include "config/check_company.h"
#include "config/check_draws.h"
#include "config/check_router.h"
#include "config/keys.h"
#include "config/layers.h"
#include "config/migration.h"
#include "config/pools.h"
#include "config/read.h"
#include "config/study_parts.h"
#include "config/sweep.h"
#include "config/variants.h"

static const char replication_axis[] = "replication";

/* Keys that name presets. What one of them says, the other does not. */
static const struct preset_key {
    const char *kind, *key;
} preset_keys[] = {{"serving", "serving.preset"},
                   {"routing", "cluster.preset"},
                   {"links", "cluster.links.preset"}};

enum { N_PRESET_KEYS = sizeof preset_keys / sizeof *preset_keys };

/* ---- one point ---- */

/* Gives an error about a name the place of the node with that name. */
static int blame(const struct node *node, struct ifl_error *error)
{
    char reason[sizeof error->text];
    if (*error->file || error->code != IFL_E_INPUT)
        return error->code;
    snprintf(reason, sizeof reason, "%s", error->text);
    return tree_fail(node, error, "%s", reason);
}

static bool names_preset(const struct node *name)
{
    const char *text = tree_text(name);
    return text && *text;
}

static const struct node *find_preset(const struct study *study, const char *kind, const char *name)
{
    for (size_t i = 0; i < study->n_presets; i++)
        if (strcmp(study->presets[i].name, name) == 0 && strcmp(study->presets[i].kind, kind) == 0)
            return study->presets[i].root;
    return NULL;
}

/* Lays the presets that the upper layer names on `root`. */
static int lay_presets(const struct study *study, const struct node *upper, struct node *root,
                       struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < N_PRESET_KEYS && code == 0; i++) {
        const struct node *name = tree_at(upper, preset_keys[i].key);
        if (names_preset(name))
            code = layer_lay(root, find_preset(study, preset_keys[i].kind, name->text), error);
    }
    return code;
}

/* Lays the file with the sweep's values over its preset, as a tree that the caller frees; NULL
 * after an error. */
static int lay_over_preset(const struct study *study, const struct node *upper, struct node **root,
                           struct ifl_error *error)
{
    *root = tree_node(NODE_MAP, upper);
    int code = *root ? lay_presets(study, upper, *root, error) : ifl_fail_nomem(error);
    if (code == 0)
        code = layer_lay(*root, upper, error);
    if (code < 0) {
        tree_free(*root);
        *root = NULL;
    }
    return code;
}

static int read_laid(const struct node *root, struct config *config, struct ifl_error *error)
{
    int code = config_read(root, config, error);
    if (code == 0 && (code = config_check(root, config, error)) < 0)
        config_finish(config);
    config->there = code == 0 ? company_there(root) : 0;
    return code;
}

static int read_over_preset(const struct study *study, const struct node *upper,
                            struct config *config, struct ifl_error *error)
{
    struct node *root;
    int code = lay_over_preset(study, upper, &root, error);
    if (code == 0)
        code = read_laid(root, config, error);
    tree_free(root);
    return code;
}

static int read_pool(const struct study *study, const struct node *upper, size_t i,
                     struct config *config, struct ifl_error *error)
{
    struct node *laid, *root = NULL;
    int code = pools_lay(upper, i, &laid, error);
    if (code == 0)
        code = lay_over_preset(study, laid, &root, error);
    if (code == 0)
        code = read_laid(root, config, error);
    if (code < 0 && !(root && pools_share_place(root, error)))
        pools_blame(upper, i, error);
    tree_free(root);
    tree_free(laid);
    return code;
}

/* The point's own configuration is that of its first pool. */
static int read_pools(const struct study *study, const struct node *upper, struct config *config,
                      struct ifl_error *error)
{
    const size_t n = pools_n(upper);
    struct pool_config *pools = calloc(n, sizeof *pools);
    int code = pools ? read_pool(study, upper, 0, config, error) : ifl_fail_nomem(error);
    if (code < 0) {
        free(pools);
        return code;
    }
    config->pools = pools;
    for (size_t i = 0; i < n && code == 0; i++) {
        struct config *of = calloc(1, sizeof *of);
        code = of ? pools_describe(upper, i, &pools[i], error) : ifl_fail_nomem(error);
        if (code == 0)
            code = read_pool(study, upper, i, of, error);
        if (code == 0)
            pools[config->n_pools++].config = of;
        else
            free(of);
        if (code == 0)
            config->there |= of->there;
    }
    if (code == 0)
        code = pools_check(upper, config, error);
    if (code < 0)
        config_finish(config);
    return code;
}

static size_t n_replications(const struct study *study)
{
    return study->replications ? study->replications->n : 1;
}

/* Replication 0 is the same run as without replications. Seeds depend on no swept value, so all
 * policies and rates see the same requests (common random numbers). */
static void reseed(struct config *config, size_t replication)
{
    if (replication == 0)
        return;
    const uint64_t shift = ifl_mix(replication);
    config->workload.arrivals.seed = ifl_mix(config->workload.arrivals.seed ^ shift);
    config->workload.window.shuffle_seed = ifl_mix(config->workload.window.shuffle_seed ^ shift);
    config->workload.patience.seed = ifl_mix(config->workload.patience.seed ^ shift);
    config->workload.retries.seed = ifl_mix(config->workload.retries.seed ^ shift);
}

int study_layers(const struct study *study, size_t point, struct node **root,
                 struct ifl_error *error)
{
    ifl_assert(point < study->n_points);
    struct node *upper = tree_copy(study->user), *pool = NULL;
    int code = upper ? sweep_lay(study->sweep, point / n_replications(study), upper, error)
                     : ifl_fail_nomem(error);
    *root = NULL;
    if (code == 0 && pools_n(upper) > 0)
        code = pools_lay(upper, 0, &pool, error);
    if (code == 0)
        code = lay_over_preset(study, pool ? pool : upper, root, error);
    tree_free(pool);
    tree_free(upper);
    return code;
}

/* Of a placement the rate of each candidate is searched, and the target is met by what is made of
 * them. */
int study_read_layers(const struct study *study, const struct node *upper, size_t replication,
                      struct config *config, struct ifl_error *error)
{
    int code = pools_check_shape(upper, error);
    if (code == 0)
        code = pools_n(upper) > 0 ? read_pools(study, upper, config, error)
                                  : read_over_preset(study, upper, config, error);
    if (code == 0 &&
        (migration_check(upper, config, error) < 0 || router_check(upper, config, error) < 0 ||
         replications_check(upper, config, error) < 0)) {
        code = error->code;
        config_finish(config);
    }
    if (code == 0) {
        snprintf(config->path, sizeof config->path, "%s", study->path);
        config->said = company_said(upper);
        config->there |= company_there(upper);
        reseed(config, replication);
    }
    if (code == 0 && study->placement)
        config->capacity.target_rps = 0;
    return code;
}

int study_read(const struct study *study, size_t point, struct config *config,
               struct ifl_error *error)
{
    ifl_assert(point < study->n_points || study->n_points == 0); /* 0: it is being loaded */
    struct node *upper = tree_copy(study->user);
    int code = upper ? sweep_lay(study->sweep, point / n_replications(study), upper, error)
                     : ifl_fail_nomem(error);
    if (code == 0)
        code = study_read_layers(study, upper, point % n_replications(study), config, error);
    tree_free(upper);
    return code;
}

/* ---- all points ---- */

static int learn_preset(struct study *study, const char *kind, const struct node *name,
                        struct ifl_error *error)
{
    if (!names_preset(name) || find_preset(study, kind, name->text))
        return 0;
    struct known_preset *presets =
        realloc(study->presets, (study->n_presets + 1) * sizeof *presets);
    if (!presets)
        return ifl_fail_nomem(error);
    study->presets = presets;
    struct known_preset *preset = &presets[study->n_presets];
    if (preset_load(kind, name->text, &preset->root, error) < 0)
        return blame(name, error);
    preset->kind = kind;
    preset->name = strdup(name->text);
    if (!preset->name) {
        tree_free(preset->root);
        return ifl_fail_nomem(error);
    }
    study->n_presets++;
    return 0;
}

static int learn_presets_in(struct study *study, const struct node *layer, struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < N_PRESET_KEYS && code == 0; i++)
        code = learn_preset(study, preset_keys[i].kind, tree_at(layer, preset_keys[i].key), error);
    return code;
}

/* Those that the maps of an axis name, for all pools or for one. */
static int learn_presets_of_maps(struct study *study, const struct node *axis,
                                 struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < axis->n && axis_holds_maps(axis) && code == 0; i++) {
        struct node *layer;
        code = variants_layer(axis, axis->of[i], &layer, error);
        if (code == 0)
            code = learn_presets_in(study, layer, error);
        const struct node *pools = tree_at(layer, "cluster.pools");
        for (size_t p = 0; pools && p < pools->n && code == 0; p++)
            code = learn_preset(study, preset_keys[0].kind,
                                tree_at(pools->of[p], preset_keys[0].key), error);
        tree_free(layer);
    }
    return code;
}

/* Those of the key `preset`, one of preset_keys or that of a pool. own: the keys beside it. */
static int learn_presets_of(struct study *study, const char *preset, const struct node *own,
                            const struct preset_key *of, struct ifl_error *error)
{
    const struct node *swept = tree_child(study->sweep, preset);
    int code = swept ? 0 : learn_preset(study, of->kind, tree_at(own, of->key), error);
    for (size_t i = 0; swept && i < swept->n && code == 0; i++)
        code = learn_preset(study, of->kind, swept->of[i], error);
    return code;
}

int study_learn_presets(struct study *study, struct ifl_error *error)
{
    const struct node *pools = tree_at(study->user, "cluster.pools");
    char where[MAX_KEY_CHARS], preset[MAX_KEY_CHARS];
    int code = 0;
    for (size_t i = 0; i < N_PRESET_KEYS && code == 0; i++)
        code = learn_presets_of(study, preset_keys[i].key, study->user, &preset_keys[i], error);
    for (size_t i = 0; pools && i < pools->n && code == 0; i++) {
        key_join("cluster.pools", pools->of[i]->key, where);
        code = learn_presets_of(study, key_join(where, "serving.preset", preset), pools->of[i],
                                &preset_keys[0], error);
    }
    for (size_t i = 0; study->sweep && i < study->sweep->n && code == 0; i++)
        code = learn_presets_of_maps(study, study->sweep->of[i], error);
    return code;
}

static int name_replications(struct study *study, struct ifl_error *error)
{
    char number[16];
    int code = 0;
    if (study->first.replications < 2)
        return 0;
    struct node *list = tree_node(NODE_LIST, study->user);
    study->replications = list;
    if (!list)
        return ifl_fail_nomem(error);
    for (int32_t r = 0; r < study->first.replications && code == 0; r++) {
        snprintf(number, sizeof number, "%d", r);
        struct node *text = tree_scalar(number, false, list);
        code = text ? tree_append(list, NULL, text, error) : ifl_fail_nomem(error);
    }
    return code;
}

/* Reports have a column of pools at all points or at none. */
static int check_pools(const struct study *study, size_t point, const struct config *config,
                       struct ifl_error *error)
{
    const bool has = config->n_pools > 0;
    if (has == (study->first.n_pools > 0))
        return 0;
    for (size_t axis = 0; axis < study->sweep->n; axis++) {
        const struct node *value = sweep_value(study->sweep, point, axis);
        if (axis_is_variants(study->sweep->of[axis]))
            return tree_fail(value, error,
                             "variant %.100s has %s, unlike the first point, expected pools at all "
                             "points or at none",
                             value->key, has ? "pools" : "no pools");
    }
    return tree_fail(study->sweep, error, "only some points have pools, expected all or none");
}

static void note_traits(struct study_traits *any, const struct config *config)
{
    any->flies_engine |= config->executor != EXECUTOR_SIM;
    any->gives_up |= config_gives_up_anywhere(config);
    any->hands_over |= config_hands_over(config);
    any->migrates |= config_migrates(config);
    any->swaps_apart |= config_swaps_apart_anywhere(config);
    any->has_tiers |= config_has_tiers_anywhere(config);
    any->speculates |= config_speculates_anywhere(config);
    any->may_leave |=
        config->workload.patience.process != PATIENCE_NONE || config->workload.deadline_s > 0;
}

/* Keys that have no effect at any point: another one that they need is nowhere. */
static int check_company(const struct study *study, size_t n_points, uint64_t rules,
                         struct ifl_error *error)
{
    int code = 0;
    for (size_t point = 0; rules && point < n_points && code == 0; point++) {
        struct node *upper = tree_copy(study->user);
        code = upper ? sweep_lay(study->sweep, point, upper, error) : ifl_fail_nomem(error);
        if (code == 0)
            code = company_refuse(upper, rules, error);
        tree_free(upper);
    }
    return code;
}

static int check_point(struct study *study, size_t point, struct ifl_error *error)
{
    struct config config = {0};
    int code = study_read(study, point, &config, error);
    if (code < 0)
        return code;
    note_traits(&study->any, &config);
    study->first.said |= config.said; /* of all points */
    study->first.there |= config.there;
    study->any.may_leave |= study_sweeps(study, "workload.trace");
    code = check_pools(study, point, &config, error);
    config_finish(&config);
    return code;
}

static int check_points(struct study *study, struct ifl_error *error)
{
    size_t n_combinations;
    if (sweep_check(study->sweep, &n_combinations, error) < 0 ||
        variants_touched(study->sweep, &study->touched, error) < 0 ||
        study_learn_presets(study, error) < 0 || study_read(study, 0, &study->first, error) < 0)
        return error->code;
    study->has_first = true;
    note_traits(&study->any, &study->first);
    for (size_t i = 1; i < n_combinations; i++)
        if (check_point(study, i, error) < 0)
            return error->code;
    const uint64_t alone = study->first.said & ~study->first.there;
    if (check_company(study, n_combinations, alone, error) < 0)
        return error->code;
    const int code = name_replications(study, error);
    study->n_points = n_combinations * n_replications(study);
    return code;
}

/* ---- the whole ---- */

/* Loads the file. Its sweep is taken out of the tree. */
static int load_user(struct study *study, const char *path, struct ifl_error *error)
{
    if (tree_load(path, &study->user, error) < 0 || pools_check_maps(study->user, error) < 0 ||
        layer_expand(study->user, error) < 0)
        return error->code;
    const struct node *sweep = tree_child(study->user, "sweep");
    if (sweep && !tree_is_null(sweep)) {
        study->sweep = tree_copy(sweep);
        if (!study->sweep)
            return ifl_fail_nomem(error);
    }
    tree_drop(study->user, "sweep");
    return variants_prepare(study->sweep, error);
}

static int load(struct study *study, const struct study_options *options, struct ifl_error *error)
{
    int code = load_user(study, options->path, error);
    for (size_t i = 0; i < options->n_sets && code == 0; i++) {
        code = edit_apply(options->sets[i], study->user, &study->sweep, error);
        if (code == 0)
            code = variants_prepare(study->sweep, error);
    }
    if (code == 0 && options->places)
        code = placement_expand(study, error);
    if (code == 0)
        code = check_points(study, error);
    if (code == IFL_E_INPUT && !*error->file)
        snprintf(error->file, sizeof error->file, "%s", options->path);
    return code;
}

int study_load(const struct study_options *options, struct study **study, struct ifl_error *error)
{
    *study = calloc(1, sizeof **study);
    if (!*study)
        return ifl_fail_nomem(error);
    snprintf((*study)->path, sizeof(*study)->path, "%s", options->path);
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
    if (study->has_first)
        config_finish(&study->first);
    for (size_t i = 0; i < study->n_presets; i++) {
        tree_free(study->presets[i].root);
        free(study->presets[i].name);
    }
    free(study->presets);
    tree_free(study->replications);
    tree_free(study->user);
    tree_free(study->sweep);
    tree_free(study->touched);
    placement_free(study->placement);
    free(study);
}

size_t study_n_points(const struct study *study)
{
    return study->n_points;
}

size_t study_n_replications(const struct study *study)
{
    return n_replications(study);
}

size_t study_n_axes(const struct study *study)
{
    return study_n_swept(study) + (study->replications != NULL);
}

const char *study_axis(const struct study *study, size_t axis)
{
    ifl_assert(axis < study_n_axes(study));
    if (axis == study_n_swept(study))
        return replication_axis;
    return sweep_axis_name(study->sweep->of[axis]);
}

const char *study_value(const struct study *study, size_t point, size_t axis)
{
    ifl_assert(point < study_n_points(study) && axis < study_n_axes(study));
    const size_t n = n_replications(study);
    return axis < study_n_swept(study) ? sweep_name(study->sweep, point / n, axis)
                                       : study->replications->of[point % n]->text;
}

const struct config *study_first(const struct study *study)
{
    return &study->first;
}

bool study_sweeps(const struct study *study, const char *dotted)
{
    return sweep_decides(study->sweep, dotted) || tree_at(study->touched, dotted);
}

struct study_traits study_any(const struct study *study)
{
    return study->any;
}
