/* The tiers below the devices of a point's replicas: each replica has its own host and disk; a pool
 * has one store. */
#include <math.h>
#include <stdlib.h>

#include "config/tiers.h"
#include "inflight/minmax.h"
#include "run/point_parts.h"

/* ---- what a deployment found in its cache ---- */

static double found_frac(const struct point *point, size_t pool)
{
    return point->pools[pool].machine.platform.deployment.cache.hit_frac;
}

/* It is a store that others fill, without a link. */
static int check_found(const struct config *config, struct ifl_error *error)
{
    const char *why = tiers_against(config);
    if (!why && config->executor != EXECUTOR_SIM)
        why = "executor is an engine, expected sim: an engine computes what it has not kept";
    if (!why && tier_is_there(&config->serving.kv.tiers[TIER_STORE]))
        why = "serving.kv.tiers.store is set, expected one of the two";
    return why ? ifl_fail_at(error, config->path, 0, 0,
                             "%s, where deployment.cache.hit_frac is above 0", why)
               : 0;
}

/* Sets *finds: some replica has tiers below its device, or a deployment with cache.hit_frac. */
static int finds_below(const struct config *config, const struct point *point, bool *finds,
                       struct ifl_error *error)
{
    *finds = config_has_tiers_anywhere(config);
    for (size_t p = 0; p < point->n_pools; p++) {
        if (found_frac(point, p) <= 0)
            continue;
        *finds = true;
        if (config_hands_over(config))
            return ifl_fail_at(error, config->path, 0, 0,
                               "cluster.pools have roles, where deployment.cache.hit_frac is above "
                               "0, expected replicas that compute whole requests");
        if (check_found(config_of_pool(config, p), error) < 0)
            return error->code;
    }
    return 0;
}

static void give(struct tier_rules *rules, double hit_frac)
{
    rules->on = true;
    rules->hit_frac = hit_frac;
}

/* ---- tiers ---- */

static struct tier_rules rules_of(const struct tier_config *tier, int32_t n_device_blocks,
                                  int32_t block_tokens, double block_bytes)
{
    const int32_t unit_blocks = ifl_max(tier->unit_tokens / block_tokens, 1);
    const double gib = tier->gib > 0 ? tier->gib * 1024 * 1024 * 1024 / block_bytes : 0;
    const double n_blocks = tier->blocks + gib + tier->device_ratio * n_device_blocks;
    return (struct tier_rules){
        .on = tier_is_there(tier),
        .n_units = (int32_t)fmin(n_blocks / unit_blocks, 1e9),
        .unit_blocks = unit_blocks,
        .min_tokens = tier->min_tokens,
        .store_after = tier->store_after,
        .stores = (enum tier_store)tier->stores,
        .loads = (enum tier_load)tier->loads,
        .evicts = (enum tier_evict)tier->evicts,
        .begin_older = tier->begin_first,
        .prefetch = (enum tier_prefetch)tier->prefetch,
        .prefetch_tokens = tier->prefetch_tokens,
        .prefetch_ns = tier->prefetch_timeout_ns,
        .prefetch_token_ns = tier->prefetch_token_s * 1e9,
        .answers = tier->answers,
        .keeps = tier->keeps,
        .linked = tier_has_link(tier),
        .hit_frac = tier->hit_frac,
    };
}

static void describe_links(const struct config *config, const struct handover_size *size,
                           struct tier_links *links)
{
    const int64_t layer_pieces = (int64_t)2 * size->n_layers * config->tensor_parallel;
    links->block_bytes = size->token_bytes * config->serving.kv.block_tokens;
    links->n_layers = size->n_layers;
    for (int t = 0; t < N_TIERS; t++) {
        const struct tier_config *tier = &config->serving.kv.tiers[t];
        links->spec[t] = tier->link;
        links->block_pieces[t] = tier->pieces == PIECES_LAYERS   ? layer_pieces
                                 : tier->pieces == PIECES_BLOCKS ? 1
                                                                 : 0;
    }
}

static int fail_nomem(int tier, uint32_t replica, const struct tier_rules *rules,
                      struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_NOMEM,
                    "out of memory: serving.kv.tiers.%s of replica %u has %lld K/V blocks",
                    tier_name(tier), replica, (long long)rules->n_units * rules->unit_blocks);
}

/* The tiers of that replica; with_store: and of its pool. 0 or IFL_E_NOMEM. */
static int create_own(const struct config *config, struct point *point, uint32_t replica,
                      const struct tier_rules rules[N_TIERS], bool with_store,
                      struct ifl_error *error)
{
    for (int t = 0; t < N_TIERS; t++) {
        struct kv_tier *tier = &point->tiers[replica].of[t];
        if (!rules[t].on || (t == TIER_STORE && !with_store))
            continue;
        if (kv_tier_create(tier, &rules[t]) < 0)
            return fail_nomem(t, replica, &rules[t], error);
        if (config->executor != EXECUTOR_SIM &&
            !(tier->places = tier_places_create(rules[t].unit_blocks)))
            return fail_nomem(t, replica, &rules[t], error);
    }
    return 0;
}

int point_create_tiers(const struct config *config, struct point *point, struct ifl_error *error)
{
    bool finds;
    const int rc = finds_below(config, point, &finds, error);
    if (rc < 0 || !finds)
        return rc;
    point->tier_links = calloc(point->n_pools, sizeof *point->tier_links);
    point->tiers = calloc(point->n_replicas, sizeof *point->tiers);
    if (!point->tier_links || !point->tiers)
        return ifl_fail_nomem(error);
    for (size_t p = 0; p < point->n_pools; p++) {
        const struct config *of = config_of_pool(config, p);
        const struct handover_size size = machine_kv_moved(&point->pools[p].machine, of);
        describe_links(of, &size, &point->tier_links[p]);
        struct tier_rules rules[N_TIERS];
        for (int t = 0; t < N_TIERS; t++)
            rules[t] = rules_of(&of->serving.kv.tiers[t], point->pools[p].limits.n_blocks,
                                of->serving.kv.block_tokens, point->tier_links[p].block_bytes);
        if (found_frac(point, p) > 0)
            give(&rules[TIER_STORE], found_frac(point, p));
        for (uint32_t i = 0; i < point->fleet_pools[p].n; i++)
            if (create_own(config, point, point->fleet_pools[p].first + i, rules, i == 0, error) <
                0)
                return error->code;
    }
    return 0;
}

/* Each tier that stores what is evicted gets it from the one above. */
void point_tiers_of(const struct point *point, const struct fleet_pool *pool, uint32_t number,
                    struct kv_tier *of[N_TIERS])
{
    struct kv_tier *above = NULL;
    for (int t = 0; t < N_TIERS; t++) {
        const uint32_t owner = t == TIER_STORE ? pool->first : number;
        struct kv_tier *tier = point->tiers ? &point->tiers[owner].of[t] : NULL;
        of[t] = tier && tier->rules.on ? tier : NULL;
        if (of[t] && above && of[t]->rules.stores == TIER_STORES_EVICTED)
            above->below = of[t];
        above = of[t] ? of[t] : above;
    }
}

/* Beside the units that it holds those that a plan evicts and those that loads under way still
 * read: no more than the device has blocks, each. */
size_t point_tier_places(const struct point *point, uint32_t replica)
{
    const struct kv_tier *tier = point->tiers ? &point->tiers[replica].of[TIER_HOST] : NULL;
    if (!tier || !tier->places)
        return 0;
    const size_t n_blocks = (size_t)point->replicas[replica].fixed.limits.n_blocks;
    return ((size_t)tier->rules.n_units + 2 * n_blocks) * (size_t)tier->rules.unit_blocks;
}

void point_destroy_tiers(struct point *point)
{
    for (uint32_t i = 0; point->tiers && i < point->n_replicas; i++)
        for (int t = 0; t < N_TIERS; t++)
            kv_tier_destroy(&point->tiers[i].of[t]);
    free(point->tiers);
    free(point->tier_links);
}
