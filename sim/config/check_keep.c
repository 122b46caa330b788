#include "config/check_keep.h"

#include "cost/model.h"

#define REFUSE(of, what) ((struct keep_refusal){"serving.kv.keep." of, "serving.kv.keep." of what})

/* The parts of the budget leave room for one another. */
static struct keep_refusal refuse_budget(const struct keep *keep)
{
    const int32_t fixed = keep->method == KEEP_STREAMING ? keep->sink_tokens : keep->window_tokens;
    if (keep->budget_tokens <= fixed)
        return keep->method == KEEP_STREAMING
                   ? REFUSE("budget_tokens",
                            " is not above sink_tokens, expected more: the rest of "
                            "it are the last tokens")
                   : REFUSE("budget_tokens", " is not above window_tokens, expected more: the "
                                             "window selects the rest of it");
    if (keep->kernel_tokens % 2 == 0)
        return REFUSE("kernel_tokens", " is even, expected an odd number: as many neighbours on "
                                       "either side of a token");
    return (struct keep_refusal){NULL, NULL};
}

static struct keep_refusal refuse_cache(const struct kv_config *kv)
{
    if (kv->prefix_cache == PREFIX_CACHE_RADIX)
        return REFUSE("method", " gives up K/V and serving.kv.prefix_cache is radix, expected none "
                                "or hash: a tree's blocks are not written again");
    if (kv->prefix_cache == PREFIX_CACHE_HASH && keep_each_step(&kv->keep))
        return REFUSE("method",
                      " writes over K/V at each step and serving.kv.prefix_cache is hash, "
                      "expected none: no prefix would stay whole");
    return (struct keep_refusal){NULL, NULL};
}

/* Engines choose by votes, heads alike in number, in blocks that no other request reads. */
static struct keep_refusal refuse_engine(const struct config *config)
{
    const struct keep *keep = &config->serving.kv.keep;
    if (keep->method == KEEP_PYRAMIDKV)
        return REFUSE("method", " is pyramidkv, expected another one where an engine executes: its "
                                "layers keep equally much");
    if (config->pipeline_parallel > 1)
        return REFUSE("method",
                      " gives up K/V and parallel.pipeline is above 1, expected 1 where an "
                      "engine executes");
    if (keep->place == KEEP_IN_PLACE)
        return REFUSE("place", " is in-place, expected gather where an engine executes");
    if (config->serving.kv.prefix_cache != PREFIX_CACHE_NONE)
        return REFUSE("method", " gives up K/V, expected serving.kv.prefix_cache none beside it "
                                "where an engine executes: it gathers within a request's blocks");
    return (struct keep_refusal){NULL, NULL};
}

struct keep_refusal keep_refused(const struct config *config)
{
    const struct kv_config *kv = &config->serving.kv;
    struct keep_refusal refusal = {NULL, NULL};
    if (kv->keep.method == KEEP_ALL || kv->keep.budget_tokens == 0)
        return refusal;
    if (kv->allocator == KV_BUDDY)
        return REFUSE("method",
                      " gives up K/V and serving.kv.allocator is buddy, expected paged: a "
                      "contiguous run is given back whole");
    if (config_pipelines(config))
        return REFUSE("method", " gives up K/V and serving.in_flight.pipelined is true, expected "
                                "one step at a time");
    if (config_speculates(config))
        return REFUSE("method", " gives up K/V and serving.draft guesses tokens, expected none: "
                                "guesses that do not hold would have displaced K/V");
    if (config->workload.beams.search)
        return REFUSE("method",
                      " gives up K/V and workload.beams.search is true, expected no beams: "
                      "they copy each other's blocks");
    refusal = refuse_budget(&kv->keep);
    if (!refusal.key)
        refusal = refuse_cache(kv);
    if (!refusal.key && config->executor != EXECUTOR_SIM)
        refusal = refuse_engine(config);
    return refusal;
}

static bool gives_up(const struct config *config)
{
    const struct keep *keep = &config->serving.kv.keep;
    struct model model;
    struct ifl_error unread;
    /* Models are loaded only where their length decides. */
    if (!keep_may_give_up(keep, config_max_tokens(config, INT32_MAX)))
        return false;
    const bool has_length = *config->model && config->serving.max_model_len == 0 &&
                            model_load(config->model, &model, &unread) == 0;
    return keep_may_give_up(keep, config_max_tokens(config, has_length ? model.max_model_len : 0));
}

bool config_gives_up_anywhere(const struct config *config)
{
    for (size_t i = 0; i < config_n_pools(config); i++)
        if (gives_up(config_of_pool(config, i)))
            return true;
    return false;
}
