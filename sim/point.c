#include "point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cost/cost.h"
#include "engine_setup.h"
#include "executor_sim.h"
#include "fit/spread.h"
#include "flight.h"

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- how much there is: model, hardware, blocks ---- */

struct machine {
    bool has_model, has_hardware;
    struct model model, stage; /* of which stage is what one GPU of the pipeline holds */
    struct hardware hardware;
};

/* What is the deployment's rather than the machine's. */
static void deploy(const struct cost_config *cost, struct host_profile *host)
{
    host->step_us += cost->host_step_s * 1e6;
    host->seq_us += cost->host_seq_s * 1e6;
    host->floor_ms = fmax(host->floor_ms, cost->host_floor_s * 1e3);
}

static int load_machine(const struct point_options *options, struct machine *machine,
                        struct ifl_error *error)
{
    const struct config *config = options->config;
    const bool wanted = config->executor == EXECUTOR_SIM && config->cost.model == COST_ROOFLINE;
    int rc = 0;
    *machine = (struct machine){.has_model = config->model[0], .has_hardware = config->hardware[0]};
    if (machine->has_model)
        rc = profile_shelf_model(options->profiles, config->model, &machine->model, error);
    if (rc == 0 && machine->has_model)
        rc = model_stage(&machine->model, config->pipeline_parallel, &machine->stage, error);
    if (rc == 0 && machine->has_hardware)
        rc = profile_shelf_hardware(options->profiles, config->hardware, &machine->hardware, error);
    deploy(&config->cost, &machine->hardware.host);
    if (rc < 0 || (machine->has_model && machine->has_hardware))
        return rc;
    return wanted ? ifl_fail_at(error, config->path, 0, 0,
                                "cost.model is roofline, which needs a model and a hardware")
                  : 0;
}

static int32_t host_blocks(const struct config *config, const struct machine *machine)
{
    const int32_t block_tokens = config->serving.kv.block_tokens;
    const double pool_bytes = config->serving.kv.swap_gib * 1073741824.0;
    if (!machine->has_model) /* a token costs nothing: as many as anyone could swap */
        return pool_bytes > 0 ? config->serving.kv.num_blocks : 0;
    const double block_bytes =
        (double)model_kv_bytes_per_token(&machine->stage, config->tensor_parallel) * block_tokens;
    const double n = pool_bytes / block_bytes;
    return n < 1e9 ? (int32_t)n : 1000000000;
}

/* memory_print writes a paragraph; here it becomes one line. */
static void explain(const struct memory_plan *plan, char *arithmetic, size_t n_bytes)
{
    FILE *out = fmemopen(arithmetic, n_bytes, "w");
    if (!out)
        return;
    memory_print(plan, out);
    fclose(out);
    for (char *c = arithmetic; *c; c++)
        if (*c == '\n')
            *c = c[1] ? ' ' : '\0';
}

/* Sums of tokens on the device are 32 bits wide. */
static int check_pool(const struct config *config, struct ifl_error *error)
{
    const struct kv_config *kv = &config->serving.kv;
    const int64_t n_tokens = (int64_t)kv->num_blocks * kv->block_tokens;
    if (n_tokens <= INT32_MAX)
        return 0;
    return ifl_fail_at(error, config->path, 0, 0,
                       "serving.kv.num_blocks is %d, with blocks of %d tokens room for %lld "
                       "tokens, expected at most %d",
                       kv->num_blocks, kv->block_tokens, (long long)n_tokens, INT32_MAX);
}

static int plan_memory(const struct config *config, const struct machine *machine,
                       int32_t max_tokens, struct memory_plan *plan, struct ifl_error *error)
{
    const struct kv_config *kv = &config->serving.kv;
    if (kv->sizing == KV_SIZING_WHOLE_REQUESTS)
        return memory_plan_whole_requests(&machine->stage, &machine->hardware,
                                          config->tensor_parallel, kv->block_tokens,
                                          kv->memory_utilization, max_tokens, plan, error);
    return memory_plan(&machine->stage, &machine->hardware, config->tensor_parallel,
                       kv->block_tokens, kv->memory_utilization, plan, error);
}

/* A given number of blocks is taken at its word, but not in silence if memory says otherwise. */
static void doubt(const struct config *config, const struct machine *machine, char *text,
                  size_t n_bytes)
{
    const struct kv_config *kv = &config->serving.kv;
    struct memory_plan plan = {0};
    struct ifl_error error;
    if (!machine->has_model || !machine->has_hardware)
        return;
    const int rc = memory_plan(&machine->stage, &machine->hardware, config->tensor_parallel,
                               kv->block_tokens, kv->memory_utilization, &plan, &error);
    if (rc < 0)
        snprintf(text, n_bytes, "serving.kv.num_blocks is given, although %s", error.text);
    else if (kv->num_blocks > plan.n_blocks)
        snprintf(text, n_bytes,
                 "serving.kv.num_blocks is %d, more than the %d that memory has room for",
                 kv->num_blocks, plan.n_blocks);
}

static int size_pool(const struct config *config, const struct machine *machine,
                     struct ifl_limits *limits, char *arithmetic, size_t n_bytes,
                     struct ifl_error *error)
{
    const struct kv_config *kv = &config->serving.kv;
    struct memory_plan plan;
    arithmetic[0] = '\0';
    *limits = (struct ifl_limits){
        .block_tokens = kv->block_tokens,
        .n_blocks = kv->num_blocks,
        .n_host_blocks = host_blocks(config, machine),
        .max_model_tokens = config->serving.max_model_len,
        .n_clients = 1,
    };
    if (limits->max_model_tokens == 0)
        limits->max_model_tokens = machine->has_model ? machine->model.max_model_len : 1 << 20;
    if (kv->num_blocks > 0) {
        doubt(config, machine, arithmetic, n_bytes);
        return check_pool(config, error);
    }
    if (!machine->has_model || !machine->has_hardware)
        return ifl_fail_at(error, config->path, 0, 0,
                           "serving.kv.num_blocks is needed where no model and hardware are named");
    const int rc = plan_memory(config, machine, limits->max_model_tokens, &plan, error);
    if (rc < 0)
        return rc;
    limits->n_blocks = plan.n_blocks;
    explain(&plan, arithmetic, n_bytes);
    return 0;
}

static struct cost *create_cost(const struct config *config, const struct machine *machine,
                                struct ifl_error *error)
{
    const struct cost_config *c = &config->cost;
    if (c->model == COST_LINEAR) {
        const struct linear_cost linear = {c->step_s, c->prefill_token_s, c->decode_seq_s,
                                           c->context_token_s};
        return cost_create_linear(&linear, error);
    }
    if (c->model == COST_RECORDED)
        return cost_create_recorded(c->dir, error);
    if (c->model == COST_TABLE)
        return cost_create_table(&machine->model, c->dir, error);
    return cost_create_roofline(&machine->model, &machine->hardware, config->tensor_parallel,
                                config->pipeline_parallel, config->serving.kv.block_tokens, error);
}

/* ---- who comes: the trace ---- */

/* Sequences that a request may have. */
enum { MAX_SAMPLES = 1024 };

static int load_trace(const struct point_options *options, struct ifl_trace *trace,
                      struct ifl_error *error)
{
    const struct workload_config *w = &options->config->workload;
    const struct ifl_notes *notes = &options->notes;
    int rc = trace_shelf_cut(options->traces, w->trace, w->format, &w->window, notes, trace, error);
    if (rc == 0 && w->shared_prefix_tokens > 0)
        rc = ifl_trace_share_prefix(trace, w->shared_prefix_tokens, error);
    if (rc == 0)
        rc = ifl_trace_arrive(trace, &w->arrivals, w->trace, notes, error);
    for (size_t i = 0; rc == 0 && trace->samples && i < trace->n; i++)
        if (trace->samples[i] > MAX_SAMPLES)
            rc = ifl_fail_at(error, w->trace, 0, 0,
                             "row %zu asks for %d samples, expected at most %d", i + 1,
                             trace->samples[i], MAX_SAMPLES);
    return rc;
}

static int32_t concurrency(const struct config *config)
{
    const struct ifl_arrivals *arrivals = &config->workload.arrivals;
    return arrivals->process == IFL_ARRIVE_CLOSED ? arrivals->concurrency : 0;
}

/* ---- flying ---- */

static bool records_work(const struct point_options *options)
{
    return options->reports.work_path || options->reports.timeline_path;
}

struct cockpit {
    uint64_t member; /* of the ensemble; 0: the fitted costs themselves */
    struct machine machine;
    struct ifl_trace trace;
    struct workload workload;
    struct replica *replicas; /* [n_replicas] */
    uint32_t n_replicas;
    struct module router;
    struct executor_sim simulator;
    struct executor_engine *engine; /* NULL: simulated */
    struct cost *cost;
    struct ifl_recorder *recorder;
    int64_t warmup_end_ns; /* by MSER-5, once flown */
};

static int32_t max_samples(const struct ifl_trace *trace)
{
    int32_t most = 1;
    for (size_t i = 0; trace->samples && i < trace->n; i++)
        most = trace->samples[i] > most ? trace->samples[i] : most;
    return most;
}

static int create_executor(const struct point_options *options, struct cockpit *cockpit,
                           const struct point_result *result, struct ifl_error *error)
{
    const struct config *config = options->config;
    if (config->executor == EXECUTOR_SIM) {
        cockpit->cost = create_cost(config, &cockpit->machine, error);
        return cockpit->cost ? executor_sim_create(&cockpit->simulator, cockpit->cost,
                                                   cockpit->n_replicas, error)
                             : error->code;
    }
    const struct engine_setup setup = {
        .config = config,
        .model = &cockpit->machine.model,
        .limits = result->limits,
        .n_requests = cockpit->trace.n,
        .max_samples = max_samples(&cockpit->trace),
        .pool = &cockpit->replicas[0].kv,
        .stop = options->stop,
    };
    cockpit->engine = engine_set_up(&setup, error);
    return cockpit->engine ? 0 : error->code;
}

static int create_replicas(const struct point_options *options, struct cockpit *cockpit,
                           struct point_result *result, struct ifl_error *error)
{
    const struct config *config = options->config;
    char arithmetic[1024];
    int rc =
        size_pool(config, &cockpit->machine, &result->limits, arithmetic, sizeof arithmetic, error);
    if (rc < 0)
        return rc;
    if (arithmetic[0] && options->notes.say)
        options->notes.say(options->notes.context, arithmetic);
    if (cockpit->trace.n_clients > 1)
        result->limits.n_clients = cockpit->trace.n_clients;
    struct replica_options replica = {
        .modules = config->serving.modules,
        .limits = result->limits,
        .allocator = config->serving.kv.allocator,
        .prefix_cache = config->serving.kv.prefix_cache,
        .unhashed = config->serving.kv.unhashed,
        .publish = config->serving.kv.publish,
        .swap_full = config->serving.kv.swap_full,
        .seed = config->workload.arrivals.seed,
        .wants_work = config->executor != EXECUTOR_SIM || records_work(options),
        .max_samples = max_samples(&cockpit->trace),
        .beams = config->workload.beams,
    };
    cockpit->replicas = calloc((size_t)config->replicas, sizeof *cockpit->replicas);
    if (!cockpit->replicas)
        return ifl_fail_nomem(error);
    for (; rc == 0 && replica.number < (uint32_t)config->replicas; replica.number++) {
        cockpit->n_replicas++;
        rc = replica_create(&cockpit->replicas[replica.number], &replica, error);
    }
    const struct module_config *router = &config->serving.modules[IFL_ROUTE];
    return rc < 0 ? rc : module_create(&cockpit->router, router, &result->limits, error);
}

static void destroy_replicas(struct cockpit *cockpit)
{
    for (uint32_t i = 0; i < cockpit->n_replicas; i++)
        replica_destroy(&cockpit->replicas[i]);
    free(cockpit->replicas);
    module_destroy(&cockpit->router);
}

static int create_recorder(const struct point_options *options, struct cockpit *cockpit,
                           struct ifl_error *error)
{
    struct ifl_recorder_options reports = options->reports;
    reports.point = options->point;
    reports.n_requests = cockpit->trace.n;
    reports.ttft_slo_s = options->config->ttft_slo_s;
    reports.tpot_slo_s = options->config->tpot_slo_s;
    reports.timeline_from_ns = ifl_ns_from_s(options->config->output.timeline_from_s);
    reports.timeline_to_ns = ifl_ns_from_s(options->config->output.timeline_to_s);
    reports.timeline_every = (uint64_t)options->config->output.timeline_every;
    cockpit->recorder = ifl_recorder_create(&reports, error);
    return cockpit->recorder ? 0 : error->code;
}

static int board(const struct point_options *options, struct cockpit *cockpit,
                 struct point_result *result, struct ifl_error *error)
{
    const struct config *config = options->config;
    const double began_s = wall_s();
    int rc = load_machine(options, &cockpit->machine, error);
    if (rc == 0 && cockpit->member > 0)
        rc = spread_draw(config->hardware,
                         &(struct spread){config->workload.arrivals.seed, cockpit->member,
                                          config->cost.host_error_frac},
                         &cockpit->machine.hardware, error);
    if (rc == 0)
        rc = load_trace(options, &cockpit->trace, error);
    result->read_s = wall_s() - began_s;
    if (rc == 0 && options->n_requests)
        atomic_fetch_add(options->n_requests, cockpit->trace.n);
    if (rc == 0)
        rc = workload_create(&cockpit->workload, &cockpit->trace, concurrency(config), error);
    cockpit->workload.predictor = config->workload.predictor;
    if (rc == 0)
        rc = create_replicas(options, cockpit, result, error);
    if (rc == 0)
        rc = create_recorder(options, cockpit, error);
    /* Last: an engine's clock starts with it. */
    return rc == 0 ? create_executor(options, cockpit, result, error) : rc;
}

static int fly(const struct point_options *options, struct cockpit *cockpit,
               struct point_result *result, struct ifl_error *error)
{
    struct flight flight = {
        .replicas = cockpit->replicas,
        .n_replicas = cockpit->n_replicas,
        .router = &cockpit->router,
        .seed = options->config->workload.arrivals.seed,
        .workload = &cockpit->workload,
        .executor = cockpit->engine ? &executor_engine_ops : &executor_sim_ops,
        .executor_self = cockpit->engine ? (void *)cockpit->engine : (void *)&cockpit->simulator,
        .recorder = cockpit->recorder,
        .records_work = records_work(options),
        .steady_runs = options->config->serving.steady_runs,
        .check_steady = options->config->serving.check_steady,
        .stop = options->stop,
        .n_ended = options->n_ended,
    };
    const double began_s = wall_s();
    int rc = flight_run(&flight, error);
    const double flown_s = wall_s();
    workload_destroy(&cockpit->workload); /* the recorder needs the room that the trace has */
    ifl_trace_free(&cockpit->trace);
    if (rc == 0 && options->config->steady_state)
        rc = ifl_recorder_warmup(cockpit->recorder, &cockpit->warmup_end_ns, error);
    if (rc == 0)
        rc = ifl_recorder_finish(cockpit->recorder, &result->summary, error);
    result->simulate_s = flown_s - began_s;
    result->write_s = wall_s() - flown_s;
    result->n_plans = flight.n_plans;
    result->n_repeats = flight.n_repeats;
    return rc;
}

static void disclose(const struct config *config, const struct machine *machine,
                     struct ifl_summary *summary)
{
    const struct hardware *hardware = &machine->hardware;
    if (config->executor != EXECUTOR_SIM || config->cost.model != COST_ROOFLINE)
        return;
    const char *warning = cost_roofline_warning(&machine->model);
    if (hardware->assumed[0] || warning)
        snprintf(summary->assumed, sizeof summary->assumed, "%s: %s%s%s", hardware->name,
                 hardware->assumed, hardware->assumed[0] && warning ? "; " : "",
                 warning ? warning : "");
}

/* A model that does not fit is the configuration's fault. */
static int blame(const struct config *config, struct ifl_error *error)
{
    if (error->code == IFL_E_INPUT && !error->file[0])
        snprintf(error->file, sizeof error->file, "%.*s", (int)sizeof error->file - 1,
                 config->path);
    return error->code;
}

static int fly_once(const struct point_options *options, uint64_t member,
                    struct point_result *result, int64_t *warmup_end_ns, struct ifl_error *error)
{
    struct cockpit *cockpit = calloc(1, sizeof *cockpit);
    if (!cockpit)
        return ifl_fail_nomem(error);
    cockpit->member = member;
    *result = (struct point_result){0};
    int rc = board(options, cockpit, result, error);
    if (rc == 0)
        rc = fly(options, cockpit, result, error);
    disclose(options->config, &cockpit->machine, &result->summary);
    if (rc < 0)
        rc = blame(options->config, error);
    *warmup_end_ns = cockpit->warmup_end_ns;
    ifl_recorder_destroy(cockpit->recorder);
    executor_engine_destroy(cockpit->engine);
    executor_sim_destroy(&cockpit->simulator);
    cost_destroy(cockpit->cost);
    destroy_replicas(cockpit);
    workload_destroy(&cockpit->workload);
    ifl_trace_free(&cockpit->trace);
    free(cockpit);
    return rc;
}

/* Where the warm-up ends is known at the end. Flying again costs time, but no memory, and every
 * metric can leave it out. */
static int fly_member(const struct point_options *options, uint64_t member,
                      struct point_result *result, struct ifl_error *error)
{
    struct point_options again = *options, silent = *options;
    int64_t end_ns = 0;
    if (!options->config->steady_state)
        return fly_once(options, member, result, &end_ns, error);
    silent.reports = (struct ifl_recorder_options){0};
    silent.notes = (struct ifl_notes){0};
    if (fly_once(&silent, member, result, &end_ns, error) < 0)
        return error->code;
    again.reports.from_ns = end_ns;
    return fly_once(&again, member, result, &end_ns, error);
}

/* ---- an ensemble: the point again, with costs drawn from what their fit leaves open ---- */

static int fly_ensemble(const struct point_options *options, const struct point_result *nominal,
                        struct ifl_error *error)
{
    const size_t n = (size_t)options->config->cost.ensemble;
    const struct point_options silent = {
        .config = options->config,
        .point = options->point,
        .traces = options->traces,
        .profiles = options->profiles,
        .stop = options->stop,
    };
    struct ifl_summary *members = calloc(n + 1, sizeof *members);
    const struct ifl_ensemble ensemble = {options->point, &nominal->summary, members, n};
    struct point_result result;
    int rc = members ? 0 : ifl_fail_nomem(error);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = fly_member(&silent, i + 1, &result, error);
        members[i] = result.summary;
    }
    if (rc == 0)
        rc = ifl_write_intervals(&ensemble, options->intervals_path, error);
    free(members);
    return rc;
}

int point_fly(const struct point_options *options, struct point_result *result,
              struct ifl_error *error)
{
    const bool flies_again = options->config->steady_state || options->intervals_path;
    if (options->is_last && !flies_again)
        trace_shelf_clear(options->traces);
    const int rc = fly_member(options, 0, result, error);
    return rc == 0 && options->intervals_path ? fly_ensemble(options, result, error) : rc;
}
