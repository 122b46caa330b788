#include "config/placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "config/keys.h"
#include "config/layers.h"
#include "config/pools.h"
#include "config/study_parts.h"
#include "config/sweep.h"
#include "config/variants.h"

/* Tokens that the K/V pool of a replica which takes no time has room for: thousands of the longest
 * requests. */
enum { FREE_TOKENS = 1 << 24 };

/* ---- what a candidate takes ---- */

static int64_t gpus_of(const struct placement *placement, const struct placed *parts, size_t i)
{
    return (int64_t)parts[i].count * placement->pools[i].n_ranks * parts[i].tensor *
           parts[i].pipeline;
}

int32_t placement_gpus(const struct placement *placement, const struct placed *parts)
{
    int64_t n = 0;
    for (size_t i = 0; i < placement->n_pools; i++)
        n += gpus_of(placement, parts, i);
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

double placement_usd_per_hour(const struct placement *placement, const struct placed *parts)
{
    double usd = 0;
    for (size_t i = 0; i < placement->n_pools; i++)
        if (parts[i].count > 0)
            usd += (double)gpus_of(placement, parts, i) * placement->pools[i].usd_per_gpu_hour;
    return usd;
}

bool placement_affords(const struct placement *placement, const struct placed *parts)
{
    const struct placement_config *of = &placement->config;
    if (of->max_gpus > 0 && placement_gpus(placement, parts) > of->max_gpus)
        return false;
    return of->max_usd_per_hour == 0 ||
           placement_usd_per_hour(placement, parts) <= of->max_usd_per_hour * (1 + 1e-12);
}

void placement_name(const struct placement *placement, const struct placed *parts, char *text,
                    size_t n_bytes)
{
    size_t at = 0;
    *text = '\0';
    for (size_t i = 0; i < placement->n_pools && at < n_bytes; i++)
        if (parts[i].count > 0)
            at += (size_t)snprintf(text + at, n_bytes - at, "%s%s %d x tp%d pp%d", at ? ", " : "",
                                   placement->pools[i].name, parts[i].count, parts[i].tensor,
                                   parts[i].pipeline);
}

/* ---- the candidates ---- */

static bool fits_nodes(const struct placement_config *of, const struct placed *part)
{
    const int64_t n_gpus = (int64_t)part->tensor * part->pipeline;
    return of->node_gpus == 0 ||
           (part->tensor <= of->node_gpus && n_gpus <= (int64_t)of->node_gpus * of->max_nodes);
}

static bool is_known(const struct placement *placement, const struct placed *parts)
{
    const size_t n_bytes = placement->n_pools * sizeof *parts;
    for (size_t i = 0; i < placement->n; i++)
        if (memcmp(placement_at(placement, i), parts, n_bytes) == 0)
            return true;
    return false;
}

static int add(struct placement *placement, const struct placed *parts, struct ifl_error *error)
{
    const size_t n_pools = placement->n_pools;
    if (array_room(&placement->of, placement->n, &placement->cap, 64,
                   n_pools * sizeof *placement->of) < 0)
        return ifl_fail_nomem(error);
    memcpy(&placement->of[placement->n++ * n_pools], parts, n_pools * sizeof *parts);
    return 0;
}

static int consider(struct placement *placement, const struct placed *parts, bool fits,
                    struct ifl_error *error)
{
    for (size_t i = 0; i < placement->n_pools; i++)
        fits = fits && (parts[i].count == 0 || fits_nodes(&placement->config, &parts[i]));
    if (fits && placement_affords(placement, parts) && placement->n < MAX_POINTS)
        return add(placement, parts, error);
    placement->n_outside++;
    return 0;
}

/* One pool after the other; the others take no time. */
static int list_apart(struct placement *placement, struct ifl_error *error)
{
    const struct placement_config *of = &placement->config;
    int code = 0;
    for (size_t i = 0; i < placement->n_pools; i++)
        for (int32_t t = 0; t < of->tensor.n; t++)
            for (int32_t p = 0; p < of->pipeline.n && code == 0; p++) {
                struct placed parts[MAX_PLACED_POOLS];
                for (size_t k = 0; k < placement->n_pools; k++)
                    parts[k] = (struct placed){1, 1, 0};
                parts[i] = (struct placed){of->tensor.of[t], of->pipeline.of[p], 1};
                code = consider(placement, parts, true, error);
            }
    return code;
}

static int list_pairs(struct placement *placement, int32_t n_nodes, const struct placed *first,
                      struct ifl_error *error)
{
    const struct placement_config *of = &placement->config;
    int code = 0;
    for (int32_t t = 0; t < of->tensor.n; t++)
        for (int32_t p = 0; p < of->pipeline.n && code == 0; p++) {
            const struct placed second = {of->tensor.of[t], of->pipeline.of[p], 1};
            const int64_t in_node =
                (int64_t)first->tensor * first->pipeline + (int64_t)second.tensor * second.pipeline;
            const struct placed parts[] = {
                {first->tensor, first->pipeline * n_nodes, 1},
                {second.tensor, second.pipeline * n_nodes, 1},
            };
            if (!is_known(placement, parts))
                code = consider(placement, parts, of->node_gpus == 0 || in_node <= of->node_gpus,
                                error);
        }
    return code;
}

static int list_segments(struct placement *placement, struct ifl_error *error)
{
    const struct placement_config *of = &placement->config;
    int code = 0;
    for (int32_t n_nodes = 1; n_nodes <= of->max_nodes; n_nodes++)
        for (int32_t t = 0; t < of->tensor.n; t++)
            for (int32_t p = 0; p < of->pipeline.n && code == 0; p++) {
                const struct placed first = {of->tensor.of[t], of->pipeline.of[p], 1};
                code = list_pairs(placement, n_nodes, &first, error);
            }
    return code;
}

/* Counts as the odometer of a car: the last pool's counts turn fastest. */
static int list_together(struct placement *placement, struct ifl_error *error)
{
    const struct placement_config *of = &placement->config;
    const size_t n_each = (size_t)of->tensor.n * (size_t)of->pipeline.n * (size_t)of->counts.n;
    size_t at[MAX_PLACED_POOLS] = {0};
    size_t i = 0;
    int code = 0;
    while (code == 0 && i < placement->n_pools && placement->n < MAX_POINTS) {
        struct placed parts[MAX_PLACED_POOLS];
        for (size_t k = 0; k < placement->n_pools; k++) {
            const size_t rest = at[k] / (size_t)of->counts.n;
            parts[k] = (struct placed){of->tensor.of[rest / (size_t)of->pipeline.n],
                                       of->pipeline.of[rest % (size_t)of->pipeline.n],
                                       of->counts.of[at[k] % (size_t)of->counts.n]};
        }
        code = consider(placement, parts, true, error);
        for (i = 0; i < placement->n_pools; i++) {
            size_t *digit = &at[placement->n_pools - 1 - i];
            if (++*digit < n_each)
                break;
            *digit = 0;
        }
    }
    return code;
}

/* ---- the sweep ---- */

static int put_text(struct node *root, const char *pool, const char *key, const char *text,
                    struct ifl_error *error)
{
    char where[MAX_KEY_CHARS], path[MAX_KEY_CHARS];
    struct node *value = tree_scalar(text, !*text, root);
    key_join("cluster.pools", pool, where);
    const int code =
        value ? tree_put(root, key_join(where, key, path), value, error) : ifl_fail_nomem(error);
    tree_free(value);
    return code;
}

static int put_number(struct node *root, const char *pool, const char *key, int32_t n,
                      struct ifl_error *error)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    return put_text(root, pool, key, text, error);
}

/* A pool that takes no time: a nanosecond a step on no hardware. */
static int put_free(struct node *root, const struct placement *placement, size_t i,
                    struct ifl_error *error)
{
    static const char *const keys[][2] = {
        {"hardware", ""},           {"cost.model", "linear"},
        {"cost.step_s", "1e-9"},    {"cost.prefill_token_s", "0"},
        {"cost.decode_seq_s", "0"}, {"cost.context_token_s", "0"}};
    const char *name = placement->pools[i].name;
    int code =
        put_number(root, name, "serving.kv.num_blocks", placement->pools[i].free_blocks, error);
    for (size_t k = 0; k < sizeof keys / sizeof *keys && code == 0; k++)
        code = put_text(root, name, keys[k][0], keys[k][1], error);
    return code;
}

static bool holds_for(const struct node *given, const char *key, const char *value)
{
    const char *text = tree_text(tree_child(given, key));
    return !text || strcmp(text, value) == 0;
}

static const char *const of_given[] = {"pool", "tensor", "pipeline"};

/* Lays the keys that are given at these degrees over the pool's, the later over the earlier. */
static int put_given(struct node *root, const struct node *given, const char *pool,
                     const struct placed *part, struct ifl_error *error)
{
    char where[MAX_KEY_CHARS], tensor[16], pipeline[16];
    int code = 0;
    snprintf(tensor, sizeof tensor, "%d", part->tensor);
    snprintf(pipeline, sizeof pipeline, "%d", part->pipeline);
    for (size_t i = 0; given && i < given->n && code == 0; i++) {
        if (!holds_for(given->of[i], "pool", pool) || !holds_for(given->of[i], "tensor", tensor) ||
            !holds_for(given->of[i], "pipeline", pipeline))
            continue;
        struct node *keys = tree_copy(given->of[i]);
        for (size_t k = 0; keys && k < sizeof of_given / sizeof *of_given; k++)
            tree_drop(keys, of_given[k]);
        code =
            keys ? tree_overlay(tree_at(root, key_join("cluster.pools", pool, where)), keys, error)
                 : ifl_fail_nomem(error);
        tree_free(keys);
    }
    return code;
}

static int check_given(const struct placement *placement, const struct node *given,
                       struct ifl_error *error)
{
    static const struct ifl_param degree = {"", IFL_INT, 0, 1, 1, 65536, NULL, "", "a degree"};
    char found[128];
    int32_t any;
    if (!given || tree_is_null(given))
        return 0;
    if (given->kind != NODE_LIST)
        return tree_fail(given, error, "capacity.placement.given is %s, expected a list of maps",
                         tree_describe(given, found));
    for (size_t i = 0; i < given->n; i++) {
        const struct node *of = given->of[i], *pool = tree_child(of, "pool");
        bool known = !pool;
        if (of->kind != NODE_MAP)
            return tree_fail(of, error,
                             "capacity.placement.given holds %s, expected a map of pool, tensor, "
                             "pipeline and keys of a pool",
                             tree_describe(of, found));
        for (size_t p = 0; p < placement->n_pools; p++)
            known = known || holds_for(of, "pool", placement->pools[p].name);
        if (!known)
            return tree_fail(pool, error,
                             "capacity.placement.given names pool %s, expected one of "
                             "cluster.pools",
                             tree_describe(pool, found));
        for (size_t k = 1; k < sizeof of_given / sizeof *of_given; k++) {
            struct ifl_param param = degree;
            const struct node *value = tree_child(of, of_given[k]);
            param.name = of_given[k];
            if (value && field_read(value, "capacity.placement.given", &param, &any, error) < 0)
                return error->code;
        }
    }
    return 0;
}

static int put_parts(const struct study *study, struct node *root, const struct placed *parts,
                     struct ifl_error *error)
{
    const struct placement *placement = study->placement;
    const struct node *given = tree_at(study->user, "capacity.placement.given");
    int code = 0;
    for (size_t i = 0; i < placement->n_pools && code == 0; i++) {
        const char *name = placement->pools[i].name;
        if (put_number(root, name, "parallel.tensor", parts[i].tensor, error) < 0 ||
            put_number(root, name, "parallel.pipeline", parts[i].pipeline, error) < 0)
            return error->code;
        code = put_number(root, name, "count", parts[i].count ? parts[i].count : 1, error);
        if (code == 0)
            code = parts[i].count > 0 ? put_given(root, given, name, &parts[i], error)
                                      : put_free(root, placement, i, error);
    }
    return code;
}

static int add_variant(const struct study *study, struct node *variants, const struct placed *parts,
                       struct ifl_error *error)
{
    char name[64 * MAX_PLACED_POOLS];
    struct node *variant = tree_node(NODE_MAP, variants);
    int code = variant ? put_parts(study, variant, parts, error) : ifl_fail_nomem(error);
    placement_name(study->placement, parts, name, sizeof name);
    if (code == 0)
        return tree_append(variants, name, variant, error);
    tree_free(variant);
    return code;
}

static int make_sweep(struct study *study, const struct node *like, struct ifl_error *error)
{
    const struct placement *placement = study->placement;
    struct node *variants = tree_node(NODE_MAP, like);
    int code = variants ? 0 : ifl_fail_nomem(error);
    for (size_t i = 0; i < placement->n && code == 0; i++)
        code = add_variant(study, variants, placement_at(placement, i), error);
    if (code == 0 && !(study->sweep = tree_node(NODE_MAP, like)))
        code = ifl_fail_nomem(error);
    if (code < 0) {
        tree_free(variants);
        return code;
    }
    code = tree_append(study->sweep, "variants", variants, error);
    return code == 0 ? variants_prepare(study->sweep, error) : code;
}

/* ---- the study ---- */

/* What the search needs of the configuration and lacks; NULL: nothing. */
static const char *lack(const struct study *study, const struct config *config)
{
    const struct placement_config *of = &config->capacity.placement;
    const bool pairs = of->search != PLACEMENT_TOGETHER;
    const bool is_pair =
        config->n_pools == 2 &&
        ((config->pools[0].role == POOL_PREFILLS && config->pools[1].role == POOL_DECODES) ||
         (config->pools[0].role == POOL_DECODES && config->pools[1].role == POOL_PREFILLS));
    if (study_n_swept(study) > 0)
        return "capacity.placement stands beside a sweep, expected one of the two";
    if (config->n_pools == 0 || config->n_pools > MAX_PLACED_POOLS)
        return "capacity.placement is set, expected 1 to 8 pools in cluster.pools, whose placement "
               "is searched";
    if (pairs && !is_pair)
        return "capacity.placement.search is apart or segments, expected two pools in "
               "cluster.pools, one with the role prefill and one with the role decode";
    if (config->capacity.criterion == CAPACITY_GOODPUT)
        return "capacity.criterion is goodput, which is no limit, expected another one, or "
               "capacity.objectives, beside capacity.placement";
    if (of->search == PLACEMENT_APART && config->cost.ensemble > 0)
        return "cost.ensemble is above 0 beside capacity.placement.search apart, expected 0: the "
               "pool that is not searched has no costs to draw";
    if (of->search == PLACEMENT_APART && config->capacity.target_rps == 0 && of->max_gpus == 0 &&
        of->max_usd_per_hour == 0)
        return "capacity.placement.search is apart, expected a capacity.target_rps, max_gpus or "
               "max_usd_per_hour: how many replicas follows from them";
    return NULL;
}

static int describe(struct placement *placement, const struct config *config,
                    const struct node *like, struct ifl_error *error)
{
    placement->config = config->capacity.placement;
    placement->target_rps = config->capacity.target_rps;
    placement->n_pools = config->n_pools;
    for (size_t i = 0; i < config->n_pools; i++) {
        const struct config *of = config->pools[i].config;
        snprintf(placement->pools[i].name, sizeof placement->pools[i].name, "%s",
                 config->pools[i].name);
        placement->pools[i].role = config->pools[i].role;
        placement->pools[i].n_ranks = of->data_parallel;
        placement->pools[i].free_blocks = FREE_TOKENS / of->serving.kv.block_tokens + 1;
        placement->pools[i].usd_per_gpu_hour =
            gpu_rate_of(&config->capacity.usd_per_gpu_hour, of->hardware);
        if (placement->config.max_usd_per_hour > 0 && isnan(placement->pools[i].usd_per_gpu_hour))
            return tree_fail(like, error,
                             "capacity.placement.max_usd_per_hour is set and pool %s has no price, "
                             "expected one of its hardware in capacity.usd_per_gpu_hour",
                             config->pools[i].name);
    }
    return 0;
}

static int list(struct placement *placement, const struct node *like, struct ifl_error *error)
{
    static int (*const lists[])(struct placement *,
                                struct ifl_error *) = {[PLACEMENT_APART] = list_apart,
                                                       [PLACEMENT_SEGMENTS] = list_segments,
                                                       [PLACEMENT_TOGETHER] = list_together};
    const int code = lists[placement->config.search](placement, error);
    if (code == 0 && placement->n == MAX_POINTS)
        return tree_fail(like, error,
                         "capacity.placement has %d candidates or more, expected fewer",
                         MAX_POINTS);
    if (code == 0 && placement->n == 0)
        return tree_fail(like, error,
                         "capacity.placement leaves no candidate of %zu, expected a larger "
                         "node_gpus, max_nodes, max_gpus or max_usd_per_hour",
                         placement->n_outside);
    return code;
}

int placement_expand(struct study *study, struct ifl_error *error)
{
    const struct node *map = tree_at(study->user, "capacity.placement");
    struct config config = {0};
    if (!map || tree_is_null(map))
        return 0;
    struct placement *placement = calloc(1, sizeof *placement);
    if (!placement)
        return ifl_fail_nomem(error);
    int code = study_learn_presets(study, error);
    if (code == 0)
        code = study_read_layers(study, study->user, 0, &config, error);
    study->placement = placement;
    if (code < 0)
        return code;
    const char *lacks = lack(study, &config);
    code = lacks ? tree_fail(map, error, "%s", lacks) : describe(placement, &config, map, error);
    config_finish(&config);
    if (code == 0)
        code = check_given(placement, tree_child(map, "given"), error);
    if (code == 0)
        code = list(placement, map, error);
    return code == 0 ? make_sweep(study, map, error) : code;
}

void placement_free(struct placement *placement)
{
    if (placement)
        free(placement->of);
    free(placement);
}

const struct placement *study_placement(const struct study *study)
{
    return study->placement;
}

int placement_read(const struct study *study, const struct placed *parts, size_t replication,
                   struct config *config, struct ifl_error *error)
{
    struct node *over = tree_node(NODE_MAP, study->user), *upper = tree_copy(study->user);
    int code = over && upper ? put_parts(study, over, parts, error) : ifl_fail_nomem(error);
    if (code == 0)
        code = layer_lay(upper, over, error);
    if (code == 0)
        code = study_read_layers(study, upper, replication, config, error);
    tree_free(upper);
    tree_free(over);
    return code;
}
