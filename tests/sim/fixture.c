#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/tree.h"
#include "config/registry.h"
#include "inspector.h"
#include "run/speculation.h"

void fixture_module(struct fixture *f, enum ifl_kind kind, const char *name, const char *params)
{
    struct ifl_error error = {0};
    struct module_config *m = &f->modules[kind];
    struct node *map = NULL;
    free(m->params);
    m->policy = registry_find(kind, name);
    ifl_require(m->policy);
    m->params = calloc(1, m->policy->params_bytes + 1);
    if (params)
        ifl_require(tree_parse(params, strlen(params), "params", &map, &error) == 0);
    if (fields_read(map, name, m->policy->params, m->policy->n_params, NULL, m->params, &error) <
        0) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    tree_free(map);
}

void fixture_vllm(struct fixture *f, const char *batching_params, const char *tail_params)
{
    fixture_module(f, IFL_BATCHING, "prefill-first", batching_params);
    fixture_module(f, IFL_ORDER, "fcfs", NULL);
    fixture_module(f, IFL_ADMIT, "prompt-fits", NULL);
    fixture_module(f, IFL_PREEMPT, "tail", tail_params);
}

void fixture_trace(struct fixture *f, size_t n)
{
    ifl_trace_free(&f->trace);
    f->trace.n = n;
    f->trace.has_stamps = true;
    f->trace.arrival_ns = calloc(n, sizeof *f->trace.arrival_ns);
    f->trace.n_prompt = calloc(n, sizeof *f->trace.n_prompt);
    f->trace.n_output = calloc(n, sizeof *f->trace.n_output);
    f->trace.priority = calloc(n, sizeof *f->trace.priority);
    f->trace.client = calloc(n, sizeof *f->trace.client);
}

/* A fixture without pools is one. */
static struct fixture_pool pool_of(const struct fixture *f, size_t i)
{
    return f->n_pools > 0 ? f->pools[i]
                          : (struct fixture_pool){.n_replicas = f->n_replicas ? f->n_replicas : 1,
                                                  .limits = f->limits,
                                                  .linear = f->linear,
                                                  .prefix_cache = f->prefix_cache,
                                                  .leave = f->leave,
                                                  .door = f->door};
}

static uint32_t lay_out(const struct fixture *f, struct fleet_pool pools[FIXTURE_MAX_POOLS])
{
    uint32_t n = 0;
    for (size_t i = 0; i == 0 || i < f->n_pools; i++) {
        const struct fixture_pool of = pool_of(f, i);
        pools[i] = (struct fleet_pool){.name = f->n_pools > 0 ? "pool" : NULL,
                                       .first = n,
                                       .n = of.n_replicas,
                                       .model = of.model,
                                       .roles = of.roles,
                                       .door = of.door};
        n += of.n_replicas;
    }
    return n;
}

static int create_tiers(const struct fixture *f, struct kv_tier tiers[N_TIERS])
{
    struct kv_tier *above = NULL;
    int rc = 0;
    for (int t = 0; t < N_TIERS && rc == 0; t++) {
        if (!f->tiers[t].on)
            continue;
        rc = kv_tier_create(&tiers[t], &f->tiers[t]);
        if (above && f->tiers[t].stores == TIER_STORES_EVICTED)
            above->below = &tiers[t];
        above = &tiers[t];
    }
    return rc;
}

static bool has_tiers(const struct fixture *f)
{
    return f->tiers[TIER_HOST].on || f->tiers[TIER_DISK].on || f->tiers[TIER_STORE].on;
}

static int create_replicas(const struct fixture *f, struct replica *replicas,
                           struct kv_tier tiers[N_TIERS], struct ifl_error *error)
{
    uint32_t number = 0;
    int rc = 0;
    for (size_t i = 0; i == 0 || i < f->n_pools; i++) {
        const struct fixture_pool of = pool_of(f, i);
        struct replica_options options = {.modules = of.modules ? of.modules : f->modules,
                                          .limits = of.limits,
                                          .allocator = f->allocator,
                                          .prefix_cache = of.prefix_cache,
                                          .unhashed = f->unhashed,
                                          .publish = f->publish,
                                          .swap_full = f->swap_full,
                                          .keep = f->keep,
                                          .windows = f->windows,
                                          .wants_work = f->check_blocks,
                                          .max_samples = f->max_samples,
                                          .leave = of.leave,
                                          .overlap = f->overlap,
                                          .moves = f->hands_over || f->migration.interval_ns > 0,
                                          .loads_before = f->handover.blocks_destination,
                                          .swaps_apart = f->swaps_apart,
                                          .beams = f->beams,
                                          .speculation = f->speculation,
                                          .adapters = f->adapters_of};
        for (int t = 0; t < N_TIERS; t++)
            options.tiers[t] = f->tiers[t].on && i == 0 ? &tiers[t] : NULL;
        for (uint32_t k = 0; k < of.n_replicas && rc == 0; k++, number++) {
            options.number = number;
            rc = replica_create(&replicas[number], &options, error);
        }
    }
    return rc;
}

static void create_costs(const struct fixture *f, struct executor_sim *sim,
                         struct cost *costs[FIXTURE_MAX_POOLS], struct ifl_error *error)
{
    uint32_t first = 0;
    for (size_t i = 0; i == 0 || i < f->n_pools; i++) {
        const struct fixture_pool of = pool_of(f, i);
        costs[i] = cost_create_linear(&of.linear, error);
        if (f->adapters_of.n > 0)
            cost_adapt(costs[i], &f->adapter_cost);
        executor_sim_cost(sim, costs[i], first, of.n_replicas);
        first += of.n_replicas;
    }
}

/* Behind the last request a replica holds nothing. */
static void check_emptied(struct fixture *f, const struct replica *replica)
{
    const struct kv_pool *device = &replica->kv.device, *host = &replica->kv.host;
    const bool empty = device->n_free == device->n_blocks && host->n_free == host->n_blocks &&
                       replica->kv.token_slots == 0 && replica->kv.internal_slots == 0 &&
                       replica->here.n_seqs_here == 0 && replica->here.n_unanswered_tokens == 0 &&
                       replica->here.pool.n_live == 0 && replica->moving.n == 0 &&
                       replica->moving.n_blocks == 0 && replica->moving.n_loaded == 0 &&
                       replica->moving.n_loaded_blocks == 0 && replica->moving.n_before == 0;
    if (!empty && !f->complaint[0])
        snprintf(f->complaint, sizeof f->complaint,
                 "replica %u is left with %d blocks, %lld tokens, %lld never used, %lld sequences, "
                 "%lld unanswered tokens, %zu records, %d moving, %d loaded",
                 (unsigned)replica->fixed.number, device->n_blocks - device->n_free,
                 (long long)replica->kv.token_slots, (long long)replica->kv.internal_slots,
                 (long long)replica->here.n_seqs_here, (long long)replica->here.n_unanswered_tokens,
                 replica->here.pool.n_live, replica->moving.n, replica->moving.n_loaded);
}

int fixture_fly(struct fixture *f, struct ifl_error *error)
{
    struct fleet_pool pools[FIXTURE_MAX_POOLS];
    struct cost *costs[FIXTURE_MAX_POOLS] = {NULL};
    const uint32_t n_replicas = lay_out(f, pools);
    struct replica *replicas = calloc(n_replicas, sizeof *replicas);
    struct kv_tier tiers[N_TIERS] = {0};
    struct tier_links tier_links[FIXTURE_MAX_POOLS];
    struct module router = {0};
    struct workload workload = {0};
    struct inspector x = {
        .replica = replicas, .complaint = f->complaint, .complaint_bytes = sizeof f->complaint};
    struct swap_link swap_links[FIXTURE_MAX_POOLS];
    struct flight flight = {
        .replicas = replicas,
        .n_replicas = n_replicas,
        .pools = pools,
        .n_pools = f->n_pools > 0 ? f->n_pools : 1,
        .router = n_replicas > 1 || gateway_is_there(&f->gateway) ? &router : NULL,
        .seed = f->seed,
        .news = f->news,
        .gateway = f->gateway,
        .handover = f->hands_over ? &f->handover : NULL,
        .swaps = f->swaps_apart ? swap_links : NULL,
        .migration = f->migration.interval_ns > 0 ? &f->migration : NULL,
        .moved = f->moved,
        .link = f->link,
        .tiers = has_tiers(f) ? tier_links : NULL,
        .workload = &workload,
        .executor = f->check_blocks ? &inspector_ops : &executor_sim_ops,
        .executor_self = f->check_blocks ? (void *)&x : (void *)&x.sim,
        .recorder = (struct ifl_recorder *)(void *)&f->capture,
        .steady_runs = !f->no_steady_runs,
        .check_steady = f->check_steady,
    };
    for (size_t i = 0; i < FIXTURE_MAX_POOLS; i++) {
        tier_links[i] = f->tier_links;
        swap_links[i] = f->swap_link;
    }
    executor_sim_create(&x.sim, NULL, n_replicas, error);
    create_costs(f, &x.sim, costs, error);
    if (f->overlap.n_stages > 1) {
        struct stages stages;
        stages_cut_evenly(&stages, f->overlap.n_stages);
        executor_sim_pipeline(&x.sim, &stages, 0, n_replicas, 1, f->overlap.depth, error);
    }
    size_t parts_bytes = 0;
    int rc = create_tiers(f, tiers) < 0 ? ifl_fail_nomem(error)
                                        : create_replicas(f, replicas, tiers, error);
    if (rc == 0 && f->check_blocks && inspector_create(&x) < 0)
        rc = ifl_fail_nomem(error);
    if (rc == 0 && f->modules[IFL_ROUTE].policy)
        rc = module_create_router(&router, &f->modules[IFL_ROUTE], &f->limits, n_replicas,
                                  &parts_bytes, error);
    if (rc == 0)
        rc = workload_create(&workload, &f->trace, f->concurrency, error);
    workload.patience = f->patience;
    if (rc == 0 && f->retries.most > 0)
        workload_retry(&workload, &f->retries);
    if (rc == 0)
        rc = workload_go_through(&workload, &f->front, error);
    if (rc == 0)
        rc = flight_run(&flight, error);
    if (rc == 0 && f->check_blocks)
        inspector_end(&x);
    for (uint32_t i = 0; rc == 0 && i < n_replicas; i++)
        check_emptied(f, &replicas[i]);
    f->n_plans = flight.n_plans;
    f->n_repeats = flight.n_repeats;
    for (uint32_t i = 0; i < n_replicas; i++)
        for (size_t k = 0; k < replicas[i].refusals.n; k++) {
            struct refusal_count count = replicas[i].refusals.of[k];
            if (count.by == &x.watched) /* ends with this function */
                count.by = x.planner;
            refusals_add(&f->refusals, &count);
        }
    f->n_at_door = flight.rejected.n_at_door;
    executor_sim_destroy(&x.sim);
    for (size_t i = 0; i < FIXTURE_MAX_POOLS; i++)
        cost_destroy(costs[i]);
    workload_destroy(&workload);
    module_destroy(&router);
    for (uint32_t i = 0; i < n_replicas; i++) {
        speculation_add(&replicas[i], &f->guesses);
        replica_destroy(&replicas[i]);
    }
    free(replicas);
    for (int t = 0; t < N_TIERS; t++)
        kv_tier_destroy(&tiers[t]);
    inspector_destroy(&x);
    return rc;
}

void fixture_free(struct fixture *f)
{
    for (int kind = 0; kind < N_MODULES; kind++)
        free(f->modules[kind].params);
    ifl_trace_free(&f->trace);
    capture_free(&f->capture);
    *f = (struct fixture){0};
}
