/* The pools of a point: what they serve, how many replicas they have, and how many blocks. */
#include <stdio.h>
#include <string.h>

#include "run/point_parts.h"

/* The model that a pool serves, as the trace numbers it: 0 if it serves any, a number of no row if
 * the trace does not name it. */
static uint32_t model_number(const struct ifl_trace *trace, const char *name)
{
    uint32_t number = 0;
    if (!*name)
        return 0;
    while (number < trace->n_models && strcmp(trace->model_names[number], name) != 0)
        number++;
    return number + 1;
}

void point_describe_pools(const struct point_options *options, struct point *point)
{
    const struct config *config = options->config;
    static const unsigned roles_of[] = {[POOL_PREFILLS] = IFL_PREFILLS,
                                        [POOL_DECODES] = IFL_DECODES,
                                        [POOL_BOTH] = IFL_PREFILLS | IFL_DECODES};
    for (size_t i = 0; i < point->n_pools; i++) {
        const struct config *of = config_of_pool(config, i);
        point->fleet_pools[i] = (struct fleet_pool){
            .name = config->n_pools > 0 ? config->pools[i].name : NULL,
            .first = point->n_replicas,
            .n = config_pool_replicas(config, i),
            .n_ranks = (uint32_t)of->data_parallel,
            .n_engines = config_engines(of),
            .model = model_number(point_trace(options, point), of->model),
            .roles = config->n_pools > 0 ? roles_of[config->pools[i].role] : 0,
            .door = of->serving.door,
        };
        point->named[i] = (struct ifl_pool){
            .name = point->fleet_pools[i].name,
            .model = of->model,
            .hardware = of->hardware,
            .first = (int32_t)point->n_replicas,
            .n_replicas = (int32_t)point->fleet_pools[i].n,
            .n_gpus = config_pool_gpus(config, i),
            .n_in_flight = config_overlap(of).depth,
        };
        point->n_replicas += point->fleet_pools[i].n;
    }
}

int point_blame_pool(const struct config *config, size_t pool, struct ifl_error *error)
{
    char reason[sizeof error->text];
    if (config->n_pools == 0 || error->code != IFL_E_INPUT)
        return error->code;
    snprintf(reason, sizeof reason, "%s", error->text);
    snprintf(error->text, sizeof error->text, "pool %s: %.*s", config->pools[pool].name,
             (int)sizeof error->text - MAX_POOL_NAME - 8, reason);
    return error->code;
}

/* Virtual engines have equal parts of the blocks (vLLM v0, worker/cache_engine.py). */
static int share_pool(const struct config *config, struct ifl_limits *limits,
                      struct ifl_error *error)
{
    const int32_t n_engines = (int32_t)config_engines(config);
    limits->n_blocks /= n_engines;
    limits->n_host_blocks /= n_engines;
    return limits->n_blocks > 0 ? 0
                                : ifl_fail(error, IFL_E_INPUT,
                                           "the pool has no block for each of %d virtual engines "
                                           "(serving.in_flight.batches)",
                                           n_engines);
}

int point_size_pools(const struct point_options *options, struct point *point,
                     struct ifl_error *error)
{
    char arithmetic[MACHINE_TEXT_BYTES];
    for (size_t i = 0; i < point->n_pools; i++) {
        struct point_pool *pool = &point->pools[i];
        const struct config *config = config_of_pool(options->config, i);
        if (machine_size_pool(&pool->machine, config, &pool->limits, arithmetic, error) < 0)
            return point_blame_pool(options->config, i, error);
        point_say_of(options, i, arithmetic);
        if (point_trace(options, point)->n_clients > 1)
            pool->limits.n_clients = point_trace(options, point)->n_clients;
        if (share_pool(config, &pool->limits, error) < 0 ||
            adapter_table_make(point_trace(options, point), config, &pool->machine, &pool->adapters,
                               error) < 0)
            return point_blame_pool(options->config, i, error);
        adapter_table_limit(&pool->adapters, config, &pool->limits);
    }
    return 0;
}
