#include "run/point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/registry.h"
#include "cost/adapter_cost.h"
#include "fit/spread.h"
#include "inflight/minmax.h"
#include "run/engine_setup.h"
#include "run/point_parts.h"
#include "run/workload_load.h"

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static size_t most_requests(const struct point_options *options, const struct point *point)
{
    return options->source ? options->source->most_requests : point->trace.n;
}

/* ---- the parts, each on those before it ---- */

static bool records_work(const struct point_options *options)
{
    return options->reports.work_path || options->reports.timeline_path;
}

static int32_t max_samples(const struct point_options *options, const struct point *point)
{
    const struct ifl_trace *trace = point_trace(options, point);
    int32_t most = options->source ? options->source->most_samples : 1;
    for (size_t i = 0; trace->samples && i < trace->n; i++)
        most = ifl_max(most, trace->samples[i]);
    return most;
}

static int create_costs(const struct point_options *options, struct point *point,
                        struct ifl_error *error)
{
    for (size_t i = 0; i < point->n_pools; i++) {
        const struct config *config = config_of_pool(options->config, i);
        struct point_pool *pool = &point->pools[i];
        char unused[MACHINE_TEXT_BYTES];
        machine_unused_costs(config, unused);
        point_say_of(options, i, unused);
        if (cost_computed(&config->cost) == COST_RECORDED)
            continue;
        pool->cost = machine_cost(&pool->machine, config, error);
        if (!pool->cost)
            return error->code;
        if (pool->adapters.n > 0) {
            const struct adapter_cost adapters = adapter_table_cost(&pool->machine, config);
            cost_adapt(pool->cost, &adapters);
        }
    }
    return 0;
}

/* The cost of a pool, and its pipelines. */
static int simulate_pool(const struct config *config, const struct point_pool *pool,
                         const struct fleet_pool *of, struct executor_sim *sim,
                         struct ifl_error *error)
{
    const int32_t depth = config->pipeline_parallel + config->serving.in_flight.ahead;
    executor_sim_cost(sim, pool->cost, of->first, of->n);
    return config_pipelines(config)
               ? executor_sim_pipeline(sim, &pool->machine.stages, of->first, of->n,
                                       config_engines(config), depth, error)
               : 0;
}

static int create_simulator(const struct point_options *options, struct point *point,
                            struct ifl_error *error)
{
    const struct cost_config *cost = &options->config->cost;
    if (create_costs(options, point, error) < 0)
        return error->code;
    if (cost->model == COST_RECORDED) {
        const struct recorded_options recorded = {
            .name = cost->dir,
            .otherwise = (enum recorded_otherwise)cost->otherwise,
            .predictor = point->pools[0].cost,
            .trace = &point->trace,
            .recorder = point->recorder,
        };
        point->recorded = recorded_create(&recorded, error);
        if (!point->recorded)
            return error->code;
    }
    int rc = executor_sim_create(&point->simulator, NULL, point->n_replicas, error);
    for (size_t i = 0; rc == 0 && i < point->n_pools; i++)
        rc = simulate_pool(config_of_pool(options->config, i), &point->pools[i],
                           &point->fleet_pools[i], &point->simulator, error);
    point->simulator.recorded = point->recorded;
    point->simulator.noise = options->trial.noise;
    return rc;
}

static struct engine_setup engine_setup_of(const struct point_options *options,
                                           const struct point *point, size_t pool, uint32_t number)
{
    const struct point_pool *of = &point->pools[pool];
    const struct replica *replica = &point->replicas[number];
    return (struct engine_setup){
        .config = config_of_pool(options->config, pool),
        .model = &of->machine.model,
        .stages = &of->machine.stages,
        .draft_model = &of->machine.draft_model,
        .limits = of->limits,
        .n_requests = most_requests(options, point),
        .max_samples = max_samples(options, point),
        .source = options->source,
        .gives_up = replica->fixed.gives_up,
        .pool = &replica->kv.device,
        .adapters = &of->adapters,
        .adapter_names = point_trace(options, point)->adapter_names,
        .stop = options->stop,
        .notes = options->notes,
        .hands_over = config_hands_over(options->config),
        .n_places = point_tier_places(point, number),
    };
}

static int create_executor(const struct point_options *options, struct point *point,
                           struct ifl_error *error)
{
    const struct config *config = options->config;
    if (config->executor == EXECUTOR_SIM)
        return create_simulator(options, point, error);
    struct engine_setup *setups = calloc(point->n_replicas, sizeof *setups);
    if (!setups)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < point->n_pools; i++)
        for (uint32_t k = 0; k < point->fleet_pools[i].n; k++) {
            const uint32_t number = point->fleet_pools[i].first + k;
            setups[number] = engine_setup_of(options, point, i, number);
        }
    point->engine = engine_set_up(setups, point->n_replicas, error);
    free(setups);
    return point->engine ? 0 : error->code;
}

/* K/V is given up by requests of one answer, at the replica that computes all of them: answers to a
 * prompt would share its blocks, and a hand-over names whole tokens. */
static int refuse_kept(const struct config *config, const struct replica_options *options,
                       struct ifl_error *error)
{
    if (!keep_may_give_up(&options->keep, options->limits.max_model_tokens) ||
        (options->max_samples <= 1 && !options->moves))
        return 0;
    if (options->moves)
        return ifl_fail_at(
            error, config->path, 0, 0,
            "serving.kv.keep.method gives up K/V and requests move between replicas, "
            "expected all where K/V moves between replicas");
    return ifl_fail_at(error, config->path, 0, 0,
                       "serving.kv.keep.method gives up K/V and a request has %d samples, expected "
                       "1: they share the K/V of their prompt",
                       options->max_samples);
}

static int refuse_windows(const struct config *config, const struct replica_options *options,
                          struct ifl_error *error)
{
    if (options->windows.n_groups == 0 || options->allocator != KV_BUDDY)
        return 0;
    return ifl_fail_at(error, config->path, 0, 0,
                       "serving.kv.allocator is buddy and serving.kv.windows is groups, expected "
                       "hold for %s, in which layers have a window or a state",
                       config->model);
}

/* An engine's answers to one prompt share blocks, which come from one table alone. */
static int refuse_samples(const struct config *config, const struct replica_options *options,
                          struct ifl_error *error)
{
    if (config->executor == EXECUTOR_SIM || !options->moves || options->max_samples <= 1)
        return 0;
    return ifl_fail_at(error, config->path, 0, 0,
                       "a request has %d samples and replicas hand requests over, expected 1 where "
                       "an engine executes",
                       options->max_samples);
}

static int create_replicas_of(const struct point_options *options, struct point *point, size_t pool,
                              uint32_t *n_created, struct ifl_error *error)
{
    const struct config *all = options->config, *config = config_of_pool(all, pool);
    const struct fleet_pool *of = &point->fleet_pools[pool];
    struct replica_options replica = {
        .modules = config->serving.modules,
        .limits = point->pools[pool].limits,
        .allocator = config->serving.kv.allocator,
        .prefix_cache = config->serving.kv.prefix_cache,
        .unhashed = config->serving.kv.unhashed,
        .publish = config->serving.kv.publish,
        .swap_full = config->serving.kv.swap_full,
        .keep = machine_keep(&point->pools[pool].machine, config),
        .windows = machine_windows(&point->pools[pool].machine, config),
        .leave = config->serving.leave,
        .overlap = config_overlap(config),
        .seed = all->workload.arrivals.seed,
        .wants_work = all->executor != EXECUTOR_SIM || config->cost.model == COST_RECORDED ||
                      records_work(options) || options->source,
        .max_samples = max_samples(options, point),
        .beams = all->workload.beams,
        .moves = config_hands_over(all) || config_migrates(all),
        .loads_before = all->handover.blocks_destination,
        .swaps_apart = config_swaps_apart(config),
        .adapters = adapter_table_options(&point->pools[pool].adapters, config),
    };
    struct speculation *speculation = &point->pools[pool].speculation;
    int rc = speculation_create(speculation, config, point_trace(options, point), error);
    replica.speculation = speculation_options(speculation, config);
    if (rc == 0 && config_speculates(config) && replica.max_samples > 1)
        rc = ifl_fail(error, IFL_E_INPUT,
                      "serving.draft guesses tokens and the trace asks for several samples of a "
                      "prompt, expected one, or serving.draft none");
    if (rc == 0)
        rc = refuse_kept(config, &replica, error);
    if (rc == 0)
        rc = refuse_windows(config, &replica, error);
    if (rc == 0)
        rc = refuse_samples(config, &replica, error);
    for (replica.number = of->first; rc == 0 && replica.number < of->first + of->n;
         replica.number++) {
        ++*n_created;
        point_tiers_of(point, of, replica.number, replica.tiers);
        rc = replica_create(&point->replicas[replica.number], &replica, error);
    }
    return rc;
}

static int create_replicas(const struct point_options *options, struct point *point,
                           struct point_result *result, struct ifl_error *error)
{
    const struct config *config = options->config;
    uint32_t n_created = 0;
    int rc = point_size_pools(options, point, error);
    if (rc < 0)
        return rc;
    result->limits = point->pools[0].limits;
    point_describe_pools(options, point);
    point->replicas = calloc(point->n_replicas, sizeof *point->replicas);
    rc = point->replicas ? point_create_tiers(config, point, error) : ifl_fail_nomem(error);
    if (rc == 0)
        rc = point_create_swaps(config, point, error);
    for (size_t i = 0; rc == 0 && i < point->n_pools; i++)
        rc = create_replicas_of(options, point, i, &n_created, error);
    point->n_replicas = n_created;
    const struct module_config *router = &config->serving.modules[IFL_ROUTE];
    size_t parts_bytes = 0; /* routers have no part of a request */
    return rc < 0 ? rc
                  : module_create_router(&point->router, router, &result->limits, point->n_replicas,
                                         &parts_bytes, error);
}

static void destroy_pools(struct point *point)
{
    for (size_t i = 0; i < point->n_pools; i++) {
        cost_destroy(point->pools[i].cost);
        speculation_destroy(&point->pools[i].speculation);
        adapter_table_free(&point->pools[i].adapters);
    }
    free(point->pools);
    free(point->fleet_pools);
    free(point->named);
}

static void destroy_replicas(struct point *point)
{
    for (uint32_t i = 0; i < point->n_replicas; i++)
        replica_destroy(&point->replicas[i]);
    free(point->replicas);
    module_destroy(&point->router);
    point_destroy_tiers(point);
    free(point->swap_links);
}

/* Requests go through the front end before they are routed: there is one, that of the first pool.
 */
static const struct front_end *front_end_of(const struct point *point)
{
    return &point->pools[0].machine.platform.deployment.front_end;
}

/* The trace says of some request when it leaves. */
static bool may_leave(const struct ifl_trace *trace)
{
    return trace->abort_ns || trace->abort_tokens || trace->deadline_ns;
}

static int create_recorder(const struct point_options *options, struct point *point,
                           struct ifl_error *error)
{
    struct ifl_recorder_options reports = options->reports;
    reports.point = options->point;
    reports.n_requests =
        most_requests(options, point) * (1 + (size_t)options->config->workload.retries.most);
    /* A front end lets requests overtake one another, and sources have clocks of their own. */
    reports.numbered = !options->source && !point->workload.sent_ns;
    reports.pools = point->named;
    reports.n_pools = options->config->n_pools;
    reports.n_in_flight = config_overlap(options->config).depth;
    reports.timeline_from_ns = ifl_ns_from_s(options->config->output.timeline_from_s);
    reports.timeline_to_ns = ifl_ns_from_s(options->config->output.timeline_to_s);
    reports.timeline_token_ns = ifl_ns_from_s(front_end_of(point)->token_s);
    reports.adapter_names = (const char *const *)point->trace.adapter_names;
    reports.n_adapters = point->trace.n_adapters;
    reports.may_leave = reports.may_leave || may_leave(&point->trace);
    reports.timeline_every = (uint64_t)options->config->output.timeline_every;
    if (options->by_client) {
        if (client_shares_init(&point->clients, ifl_max(point->trace.n_clients, 1U),
                               reports.from_ns, error) < 0)
            return error->code;
        reports.on_request = client_shares_hear;
        reports.on_request_context = &point->clients;
    }
    point->recorder = ifl_recorder_create(&reports, error);
    return point->recorder ? 0 : error->code;
}

static int load_machine(const struct point_options *options, size_t i, struct machine *machine,
                        struct ifl_error *error)
{
    const struct config *config = config_of_pool(options->config, i);
    int rc = machine_load(machine, config, options->profiles, error);
    if (rc == 0 && options->member.number > 0)
        rc =
            spread_draw(config->hardware,
                        &(struct spread){options->member.seed, options->member.number,
                                         config->cost.host_error_frac, config->cost.other_software},
                        &machine->platform, error);
    if (rc == 0 && options->trial.change)
        options->trial.change(options->trial.context, machine);
    return rc < 0 ? point_blame_pool(options->config, i, error) : 0;
}

static int load_machines(const struct point_options *options, struct point *point,
                         struct ifl_error *error)
{
    const size_t n = config_n_pools(options->config);
    int rc = 0;
    point->pools = calloc(n, sizeof *point->pools);
    point->fleet_pools = calloc(n, sizeof *point->fleet_pools);
    point->named = calloc(n, sizeof *point->named);
    if (!point->pools || !point->fleet_pools || !point->named)
        return ifl_fail_nomem(error);
    for (point->n_pools = 0; rc == 0 && point->n_pools < n; point->n_pools++)
        rc = load_machine(options, point->n_pools, &point->pools[point->n_pools].machine, error);
    return rc;
}

static int assemble(const struct point_options *options, struct point *point,
                    struct point_result *result, struct ifl_error *error)
{
    const struct config *config = options->config;
    const double began_s = wall_s();
    int rc = load_machines(options, point, error);
    if (rc == 0 && !options->source)
        rc = workload_load(&(struct workload_source){&config->workload, options->traces,
                                                     options->trial.trace, options->notes},
                           &point->trace, error);
    result->read_s = wall_s() - began_s;
    if (rc == 0 && options->n_requests)
        atomic_fetch_add(options->n_requests, point->trace.n);
    if (rc == 0)
        rc = workload_create(&point->workload, point_trace(options, point),
                             options->source ? 0 : workload_concurrency(&config->workload), error);
    if (rc == 0 && options->source)
        workload_follow(&point->workload, options->source);
    if (rc == 0)
        workload_configure(&point->workload, config);
    if (rc == 0)
        point_say_unused(options, point);
    if (rc == 0)
        rc = workload_go_through(&point->workload, front_end_of(point), error);
    if (rc == 0)
        rc = create_replicas(options, point, result, error);
    if (rc == 0)
        rc = create_recorder(options, point, error);
    /* Last: an engine's clock starts with it. */
    return rc == 0 ? create_executor(options, point, error) : rc;
}

/* ---- flying ---- */

/* One replica takes every request, unless the gateway or the router may say no or not yet: built-in
 * ones do only by what they hear of first tokens. */
static bool asks_router(const struct point *point, const struct gateway *gateway)
{
    const struct ifl_policy *router = point->router.policy;
    return point->n_replicas > 1 || !registry_is_builtin(router) ||
           router->ops.route->on_first_token || gateway_is_there(gateway);
}

/* Rows and events of steps are written as they come, and so is what a caller hears; gaps behind a
 * warm-up are those behind the first step of it. */
static bool records_in_any_order(const struct point_options *options)
{
    const struct ifl_recorder_options *reports = &options->reports;
    return !reports->steps_path && !reports->work_path && !reports->timeline_path &&
           !reports->differences_path && reports->from_ns <= 0 && !reports->on_request;
}

static void choose_executor(const struct point_options *options, struct point *point,
                            struct flight *flight)
{
    point->paced = (struct executor_paced){.sim = &point->simulator, .source = options->source};
    flight->executor = options->source ? &executor_paced_ops : &executor_sim_ops;
    flight->executor_self = options->source ? (void *)&point->paced : (void *)&point->simulator;
    if (point->engine) {
        flight->executor = &executor_engine_ops;
        flight->executor_self = point->engine;
    }
}

static int write_speculation(const struct point_options *options, const struct point *point,
                             struct ifl_error *error)
{
    struct ifl_speculation_record record = {0};
    for (uint32_t i = 0; i < point->n_replicas; i++)
        speculation_add(&point->replicas[i], &record);
    return ifl_write_speculation(options->point, &record, options->speculation_path, error);
}

static int fly(const struct point_options *options, struct point *point,
               struct point_result *result, struct ifl_error *error)
{
    struct flight flight = {
        .replicas = point->replicas,
        .n_replicas = point->n_replicas,
        .pools = point->fleet_pools,
        .n_pools = point->n_pools,
        .router = asks_router(point, &options->config->gateway) ? &point->router : NULL,
        .news = options->config->news,
        .handover = config_hands_over(options->config) ? &options->config->handover : NULL,
        .migration = config_migrates(options->config) ? &options->config->migration : NULL,
        .swaps = point->swap_links,
        .tiers = point->tier_links,
        .moved = machine_kv_moved(&point->pools[0].machine, options->config),
        .link = options->config->links.spec,
        .seed = options->config->workload.arrivals.seed,
        .workload = &point->workload,
        .source = options->source,
        .recorder = point->recorder,
        .records_work = records_work(options),
        /* A recording gives each of its steps once, in their order. */
        .records_in_any_order = records_in_any_order(options) && !point->recorded,
        .steady_runs = options->config->serving.steady_runs,
        .check_steady = options->config->serving.check_steady,
        .stop = options->stop,
        .n_ended = options->n_ended,
    };
    choose_executor(options, point, &flight);
    const double began_s = wall_s();
    int rc = config_gateway(options->config, &flight.gateway, error);
    rc = rc == 0 ? flight_run(&flight, error) : rc;
    const double flown_s = wall_s();
    if (rc == 0)
        point_explain_refusals(options, point, &flight, &result->limits);
    if (rc == 0) {
        point_tell_untested(options, point);
        point_tell_dummies(options, &flight);
        point_tell_adapters(options, point);
    }
    workload_destroy(&point->workload); /* the recorder needs the room that the trace has */
    adapter_names_keep(&point->adapter_names, &point->trace);
    ifl_trace_free(&point->trace);
    if (rc == 0 && options->config->steady_state)
        rc = ifl_recorder_warmup(point->recorder, &point->warmup_end_ns, error);
    if (rc == 0)
        rc = ifl_recorder_finish(point->recorder, &result->summary, error);
    if (rc == 0)
        point_tell_host(options, point, &result->summary);
    if (rc == 0 && options->speculation_path)
        rc = write_speculation(options, point, error);
    if (rc == 0 && options->by_client)
        result->summary.client_attainment_frac = client_shares_least(&point->clients);
    if (rc == 0 && config_lists_differences(options->config))
        point_explain_differences(options, point, &result->summary);
    result->simulate_s = flown_s - began_s;
    result->write_s = wall_s() - flown_s;
    result->n_plans = flight.n_plans;
    result->n_repeats = flight.n_repeats;
    return rc;
}

/* Names the configuration in an input error without a file, such as that of a model that does not
 * fit. */
static int blame(const struct config *config, struct ifl_error *error)
{
    if (error->code == IFL_E_INPUT && !error->file[0])
        snprintf(error->file, sizeof error->file, "%.*s", (int)sizeof error->file - 1,
                 config->path);
    return error->code;
}

static int fly_once(const struct point_options *options, struct point_result *result,
                    int64_t *warmup_end_ns, struct ifl_error *error)
{
    struct point *point = calloc(1, sizeof *point);
    if (!point)
        return ifl_fail_nomem(error);
    *result = (struct point_result){0};
    int rc = assemble(options, point, result, error);
    if (rc == 0)
        rc = fly(options, point, result, error);
    point_disclose(options->config, point, &result->summary);
    if (rc < 0)
        rc = blame(options->config, error);
    *warmup_end_ns = point->warmup_end_ns;
    ifl_recorder_destroy(point->recorder);
    client_shares_finish(&point->clients);
    executor_engine_destroy(point->engine);
    executor_sim_destroy(&point->simulator);
    recorded_destroy(point->recorded);
    destroy_replicas(point);
    destroy_pools(point);
    workload_destroy(&point->workload);
    ifl_trace_free(&point->trace);
    adapter_names_free(&point->adapter_names);
    result->limits.adapter_blocks = NULL; /* they were the point's */
    free(point);
    return rc;
}

int point_fly_member(const struct point_options *options, struct point_result *result,
                     struct ifl_error *error)
{
    struct point_options again = *options, silent = *options;
    int64_t end_ns = 0;
    if (!options->config->steady_state)
        return fly_once(options, result, &end_ns, error);
    silent.reports = (struct ifl_recorder_options){0};
    silent.speculation_path = NULL;
    silent.notes = (struct ifl_notes){0};
    if (fly_once(&silent, result, &end_ns, error) < 0)
        return error->code;
    again.reports.from_ns = end_ns;
    return fly_once(&again, result, &end_ns, error);
}

int point_fly(const struct point_options *options, struct point_result *result,
              struct ifl_error *error)
{
    const bool compares = point_is_compared(options);
    const bool flies_again = options->config->steady_state || options->intervals_path || compares;
    if (options->is_last && !flies_again)
        trace_shelf_clear(options->traces);
    int rc = point_fly_member(options, result, error);
    if (rc == 0 && compares)
        rc = point_compare(options, &result->summary, error);
    return rc == 0 && options->intervals_path ? point_fly_ensemble(options, result, error) : rc;
}
