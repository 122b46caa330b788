/* Checks what tiers below the device need: a prefix cache, whole blocks, a size. */
#include "config/tiers.h"

#include <stdio.h>
#include <string.h>

#include "inflight/minmax.h"

static const char *const names[] = {
    [TIER_HOST] = "host", [TIER_DISK] = "disk", [TIER_STORE] = "store"};

const char *tier_name(int tier)
{
    return names[tier];
}

static int fail(const struct node *root, const char *tier, const char *key, const char *what,
                struct ifl_error *error)
{
    char dotted[96];
    snprintf(dotted, sizeof dotted, "serving.kv.tiers.%s.%s", tier, key);
    const struct node *at = tree_at(root, dotted);
    return tree_fail(at ? at : root, error, "%s %s", dotted, what);
}

/* What comes to the first tier is stored there as it is in this one. */
static int check_prefetch(const struct node *root, const struct config *config, int t,
                          struct ifl_error *error)
{
    const struct tier_config *of = config->serving.kv.tiers;
    const int32_t block_tokens = config->serving.kv.block_tokens;
    if (!tier_is_there(&of[TIER_HOST]))
        return fail(
            root, names[t], "prefetch",
            "is set and there is no tier host, expected one: what is prefetched comes there",
            error);
    if (ifl_max(of[t].unit_tokens, block_tokens) ==
        ifl_max(of[TIER_HOST].unit_tokens, block_tokens))
        return 0;
    return fail(root, names[t], "prefetch",
                "is set and unit_tokens differ from those of the tier host, expected the same",
                error);
}

static int check_one(const struct node *root, const struct config *config, int t,
                     struct ifl_error *error)
{
    const struct tier_config *tier = &config->serving.kv.tiers[t];
    const int32_t block_tokens = config->serving.kv.block_tokens;
    const int n_sizes = (tier->blocks > 0) + (tier->gib > 0) + (tier->device_ratio > 0);
    if (n_sizes > 1)
        return fail(root, names[t], tier->gib > 0 ? "gib" : "device_ratio",
                    "is set beside another size, expected one of blocks, gib and device_ratio",
                    error);
    if (tier->unit_tokens % block_tokens != 0)
        return fail(root, names[t], "unit_tokens",
                    "is no multiple of serving.kv.block_tokens, expected units of whole blocks",
                    error);
    if (tier->stores == TIER_STORES_EVICTED && tier->unit_tokens > block_tokens)
        return fail(root, names[t], "unit_tokens",
                    "is more than a block and stores is evicted, expected a block: the device "
                    "evicts block by block",
                    error);
    if (tier->stores == TIER_STORES_EVICTED && tier->store_after > 1)
        return fail(root, names[t], "store_after",
                    "is above 1 and stores is evicted, expected stores computed", error);
    if ((tier->gib > 0 || tier->gb_per_s > 0) && config->links.token_bytes == 0 && !*config->model)
        return fail(root, names[t], tier->gib > 0 ? "gib" : "gb_per_s",
                    "is set where no model is named, expected cluster.links.token_bytes, the bytes "
                    "of K/V of a token",
                    error);
    return tier->prefetch == TIER_LOADS_ITSELF ? 0 : check_prefetch(root, config, t, error);
}

const char *config_against_moves(const struct config *config)
{
    if (cost_computed(&config->cost) == COST_RECORDED)
        return "cost.model is recorded, expected a model that computes how long steps last";
    if (config_pipelines(config))
        return "serving.in_flight.pipelined is true and parallel.pipeline above 1, expected one "
               "step at a time";
    if (config->data_parallel > 1)
        return "parallel.data is above 1, expected 1";
    if (config_speculates(config))
        return "serving.speculation guesses tokens, expected none";
    return config->workload.beams.search ? "workload.beams.search is true, expected false" : NULL;
}

/* A batching module that has steps wait for what it loads, as a decode replica's may. */
static bool loads_before_steps(const struct module_config *batching)
{
    const struct ifl_policy *policy = batching->policy;
    for (size_t i = 0; policy && i < policy->n_params; i++) {
        const struct ifl_param *param = &policy->params[i];
        if (param->type == IFL_BOOL && strcmp(param->name, "before_step") == 0)
            return *(const bool *)((const char *)batching->params + param->offset);
    }
    return false;
}

const char *tiers_against(const struct config *config)
{
    if (config->serving.kv.prefix_cache == PREFIX_CACHE_NONE)
        return "serving.kv.prefix_cache is none, expected hash or radix";
    if (loads_before_steps(&config->serving.modules[IFL_BATCHING]))
        return "serving.batching.before_step is true, expected false: key loads of a tier says "
               "which steps wait";
    return config_against_moves(config);
}

/* An engine really keeps K/V, in host memory. */
static int check_engine(const struct node *root, const struct config *config,
                        struct ifl_error *error)
{
    const struct tier_config *host = &config->serving.kv.tiers[TIER_HOST];
    if (config->executor == EXECUTOR_SIM)
        return 0;
    for (int t = 0; t < N_TIERS; t++)
        if (t != TIER_HOST && tier_is_there(&config->serving.kv.tiers[t]))
            return fail(root, names[t], "blocks",
                        "is set, expected host alone where an engine executes", error);
    if (!tier_has_link(host))
        return fail(root, names[TIER_HOST], "gb_per_s",
                    "and latency_s are 0, expected a link where an engine executes: what it "
                    "copies takes time",
                    error);
    return 0;
}

int tiers_check(const struct node *root, const struct config *config, struct ifl_error *error)
{
    const struct node *at = tree_at(root, "serving.kv.tiers");
    if (!config_has_tiers(config))
        return 0;
    if (tiers_against(config))
        return tree_fail(at ? at : root, error, "%s, where there are tiers (serving.kv.tiers)",
                         tiers_against(config));
    for (int t = 0; t < N_TIERS; t++)
        if (tier_is_there(&config->serving.kv.tiers[t]) && check_one(root, config, t, error) < 0)
            return error->code;
    return check_engine(root, config, error);
}
