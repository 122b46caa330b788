/* Checks beyond a single key: keys that need or exclude each other, and files that must exist. */
#include "base/data.h"
#include "config/check_keep.h"
#include "config/read.h"
#include "config/tiers.h"
#include "cost/draft.h"
#include "cost/model.h"
#include "cost/stages.h"
#include "replica/ragged.h"

#include <string.h>

#include "inflight/nearest.h"

#include "base/engine_module.h"

/* An error at the key; if it is missing, at the nearest map around it in the user's own file. */
static int fail_key(const struct node *root, const char *dotted, struct ifl_error *error,
                    const char *text)
{
    const struct node *node = tree_at(root, dotted), *around = root;
    char map[128];
    for (const char *at = strchr(dotted, '.'); at && !node; at = strchr(at + 1, '.')) {
        snprintf(map, sizeof map, "%.*s", (int)(at - dotted), dotted);
        const struct node *child = tree_at(root, map);
        if (child && strcmp(child->file, root->file) == 0)
            around = child;
    }
    return tree_fail(node ? node : around, error, "%s", text);
}

static bool format_known(const char *format)
{
    if (strcmp(format, "auto") == 0)
        return true;
    const struct ifl_trace_format *known = ifl_trace_formats();
    while (known->name && strcmp(known->name, format) != 0)
        known++;
    return known->name;
}

static int fail_format(const struct node *root, const char *format, struct ifl_error *error)
{
    const char *words[32] = {"auto"};
    char list[256] = "auto", text[512];
    size_t n = 1, at = strlen(list);
    const struct ifl_trace_format *known = ifl_trace_formats();
    for (; known->name && n < 32 && at < sizeof list; known++) {
        words[n++] = known->name;
        at += (size_t)snprintf(list + at, sizeof list - at, ", %s", known->name);
    }
    const char *near = ifl_nearest(format, words, n);
    snprintf(text, sizeof text, "workload.format is %s, expected one of %s%s%s%s", format, list,
             near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return fail_key(root, "workload.format", error, text);
}

static int check_trace(const struct node *root, struct workload_config *workload,
                       struct ifl_error *error)
{
    char text[sizeof error->text];
    if (data_path(workload->trace_name, workload->trace) < 0) {
        snprintf(text, sizeof text, "there is no file %s, expected a trace",
                 *workload->trace_name ? workload->trace_name : "without a name");
        return fail_key(root, "workload.trace", error, text);
    }
    if (*workload->tokenizer_name && data_path(workload->tokenizer_name, workload->tokenizer) < 0) {
        snprintf(text, sizeof text, "there is no file %s, expected a tokenizer",
                 workload->tokenizer_name);
        return fail_key(root, "workload.tokenizer", error, text);
    }
    if (*workload->prompt_template && !*workload->tokenizer_name)
        return fail_key(root, "workload.prompt_template", error,
                        "workload.prompt_template is set without a workload.tokenizer, expected "
                        "both");
    if (workload->window.to_ns && workload->window.to_ns <= workload->window.from_ns)
        return fail_key(root, "workload.to_s", error,
                        "workload.to_s is not after workload.from_s, expected a later time");
    return format_known(workload->format) ? 0 : fail_format(root, workload->format, error);
}

static int check_arrivals(const struct node *root, const struct ifl_arrivals *arrivals,
                          struct ifl_error *error)
{
    const bool drawn = arrivals->process == IFL_ARRIVE_POISSON ||
                       arrivals->process == IFL_ARRIVE_GAMMA ||
                       arrivals->process == IFL_ARRIVE_CONSTANT;
    if (drawn && arrivals->rate_rps <= 0 && arrivals->n_pieces == 0)
        return fail_key(root, "workload.arrivals.rate_rps", error,
                        "workload.arrivals.rate_rps is missing or 0, expected a rate above 0");
    if (arrivals->process == IFL_ARRIVE_CLOSED && arrivals->concurrency < 1)
        return fail_key(root, "workload.arrivals.concurrency", error,
                        "workload.arrivals.concurrency is missing or 0, expected at least 1");
    if (arrivals->sine_amplitude_frac > 0 && arrivals->n_pieces)
        return fail_key(root, "workload.arrivals.pieces", error,
                        "workload.arrivals has pieces and a sine, expected one of them");
    if (arrivals->sine_amplitude_frac > 0 && arrivals->sine_period_s <= 0)
        return fail_key(root, "workload.arrivals.sine_period_s", error,
                        "workload.arrivals.sine_period_s is missing or 0, expected above 0");
    return 0;
}

static int check_name(const struct node *root, const char *kind, const char *key, const char *name,
                      bool optional, struct ifl_error *error)
{
    char found[512], text[256];
    if (!*name && optional)
        return 0;
    if (!*name) {
        snprintf(text, sizeof text, "%s is missing, expected a name from configs/%s or a path", key,
                 kind);
        return fail_key(root, key, error, text);
    }
    if (data_resolve(kind, name, found, error) == 0 || error->code != IFL_E_INPUT)
        return error->code;
    char reason[sizeof error->text];
    snprintf(reason, sizeof reason, "%s", error->text);
    return fail_key(root, key, error, reason);
}

static int check_table(const struct node *root, struct config *config, struct ifl_error *error)
{
    struct cost_config *cost = &config->cost;
    char text[sizeof error->text];
    if (!*cost->dir_name)
        return fail_key(root, "cost.dir", error,
                        "cost.dir is missing, expected the directory of the tables");
    if (data_path(cost->dir_name, cost->dir) < 0) {
        snprintf(text, sizeof text, "there is no directory %s, expected one with tables",
                 cost->dir_name);
        return fail_key(root, "cost.dir", error, text);
    }
    return 0;
}

/* Whether the numbers add up is known once the model is loaded. */
static int check_stages(const struct node *root, const struct config *config,
                        struct ifl_error *error)
{
    const char *list = config->stage_layers;
    struct stages stages;
    char text[sizeof error->text];
    if (!*list)
        return 0;
    if (!stages_read(&stages, config->pipeline_parallel, list)) {
        snprintf(text, sizeof text,
                 "parallel.stage_layers is %.200s, expected %d numbers from 1 up with commas "
                 "between them, one for each stage of parallel.pipeline",
                 list, config->pipeline_parallel);
        return fail_key(root, "parallel.stage_layers", error, text);
    }
    return *config->model ? 0
                          : fail_key(root, "parallel.stage_layers", error,
                                     "parallel.stage_layers is set, expected none where no model "
                                     "is named: a step takes equally long in each stage");
}

static int check_parallel(const struct node *root, const struct config *config,
                          struct ifl_error *error)
{
    const bool simulated = config->executor == EXECUTOR_SIM;
    const bool has_stages = config->executor == EXECUTOR_CPU; /* threads */
    const bool pipelined = config->pipeline_parallel > 1 && !has_stages;
    const char *key = config->tensor_parallel > 1   ? "parallel.tensor"
                      : pipelined                   ? "parallel.pipeline"
                      : config->data_parallel > 1   ? "parallel.data"
                      : config->expert_parallel > 1 ? "parallel.expert"
                                                    : NULL;
    char text[sizeof error->text];
    if (simulated && config->cost.model == COST_RECORDED && config->data_parallel > 1)
        return fail_key(root, "parallel.data", error,
                        "parallel.data is above 1, expected 1 where cost.model is recorded: each "
                        "replica's steps are recorded by themselves (cluster.replicas)");
    if (!key && !simulated && config_engines(config) > 1)
        return fail_key(root, "serving.in_flight.batches", error,
                        "serving.in_flight.batches is engines, expected shared or slots where an "
                        "engine executes: it has one pool of blocks");
    if (!key || (simulated && config->cost.model != COST_TABLE))
        return 0;
    snprintf(text, sizeof text, "%s is above 1, expected 1 where %s", key,
             simulated ? "cost.model is table: it is of one GPU" : "an engine executes: it is one");
    return fail_key(root, key, error, text);
}

/* What several steps in flight go together with. */
static int check_in_flight(const struct node *root, const struct config *config,
                           struct ifl_error *error)
{
    const char *why = config->workload.beams.search         ? "workload.beams.search is true"
                      : config->data_parallel > 1           ? "parallel.data is above 1"
                      : config->cost.model == COST_RECORDED ? "cost.model is recorded"
                                                            : NULL;
    char text[256];
    if (!config_pipelines(config) && config->serving.in_flight.ahead > 1)
        return fail_key(root, "serving.in_flight.ahead", error,
                        "serving.in_flight.ahead is above 1, expected at most 1 where no pipeline "
                        "has a step in each stage");
    if (!config_pipelines(config) || !why)
        return 0;
    snprintf(text, sizeof text,
             "serving.in_flight.pipelined is true and parallel.pipeline above 1, expected false "
             "where %s: one step at a time",
             why);
    return fail_key(root, "serving.in_flight.pipelined", error, text);
}

int32_t config_max_drafts(const struct config *config)
{
    return module_most_drafts(&config->serving.modules[IFL_DRAFT]);
}

/* What speculation goes together with. */
static int check_speculation(const struct node *root, const struct config *config,
                             struct ifl_error *error)
{
    const struct speculation_config *speculation = &config->serving.speculation;
    const int32_t most = config_max_drafts(config);
    const char *why = config_pipelines(config)              ? "serving.in_flight.pipelined is true"
                      : config->workload.beams.search       ? "workload.beams.search is true"
                      : config->cost.model == COST_RECORDED ? "cost.model is recorded"
                      : config->serving.kv.allocator == KV_BUDDY ? "serving.kv.allocator is buddy"
                                                                 : NULL;
    char text[256];
    if (most < 0 || most > RAGGED_MAX_DRAFTS) {
        snprintf(text, sizeof text,
                 "draft policy %.100s guesses at most %d tokens as its `most` says, expected 0 to "
                 "%d",
                 config->serving.modules[IFL_DRAFT].policy->name, (int)most, RAGGED_MAX_DRAFTS);
        return fail_key(root, "serving.draft.policy", error, text);
    }
    if (!config_speculates(config))
        return 0;
    if (speculation->proposer == PROPOSER_MODEL && !*speculation->model)
        return fail_key(root, "serving.speculation.model", error,
                        "serving.speculation.proposer is model, expected a draft model in "
                        "serving.speculation.model");
    if (speculation->verify == VERIFY_REAL && config->executor == EXECUTOR_SIM)
        return fail_key(root, "serving.speculation.verify", error,
                        "serving.speculation.verify is real, expected drawn where no engine "
                        "executes: a cost model samples nothing");
    if (speculation->proposer == PROPOSER_HEAD && config->executor != EXECUTOR_SIM)
        return fail_key(root, "serving.speculation.proposer", error,
                        "serving.speculation.proposer is head, expected lookup or model where an "
                        "engine executes");
    if (!why)
        return 0;
    snprintf(text, sizeof text, "serving.draft guesses tokens, expected policy none where %s", why);
    return fail_key(root, "serving.draft.policy", error, text);
}

static int check_recorded(const struct node *root, struct config *config, struct ifl_error *error)
{
    struct cost_config *cost = &config->cost;
    char text[sizeof error->text];
    if (!*cost->dir_name)
        return fail_key(root, "cost.dir", error,
                        "cost.dir is missing, expected the folder of a run with its steps.csv, or "
                        "an engine's log of its steps");
    if (data_path(cost->dir_name, cost->dir) == 0)
        return 0;
    snprintf(text, sizeof text, "there is no folder %s, expected one of a run or an engine's log",
             cost->dir_name);
    return fail_key(root, "cost.dir", error, text);
}

/* An older key adds to what the deployment says, so it contradicts a new one beside it. */
static int check_older_keys(const struct node *root, const struct cost_config *cost,
                            struct ifl_error *error)
{
    const struct {
        const char *old, *new;
        double value;
    } keys[] = {{"cost.host_step_s", "deployment.host.step_s", cost->host_step_s},
                {"cost.host_seq_s", "deployment.host.seq_s", cost->host_seq_s},
                {"cost.host_floor_s", "deployment.host.floor_s", cost->host_floor_s}};
    char text[256];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct node *new = tree_at(root, keys[i].new);
        if (keys[i].value <= 0 || !new || tree_is_null(new))
            continue;
        snprintf(text, sizeof text, "%s is set beside %s, expected the latter alone", keys[i].old,
                 keys[i].new);
        return fail_key(root, keys[i].old, error, text);
    }
    return 0;
}

static int check_cost(const struct node *root, struct config *config, struct ifl_error *error)
{
    const struct cost_config *cost = &config->cost;
    const bool simulated = config->executor == EXECUTOR_SIM;
    if (cost->ensemble > 0 && !(simulated && cost->model == COST_ROOFLINE))
        return fail_key(root, "cost.ensemble", error,
                        "cost.ensemble is above 0, expected 0 where the costs were not fitted: "
                        "only roofline's were");
    if (simulated && cost->model == COST_ROOFLINE)
        return 0;
    if (simulated && cost->model == COST_TABLE && check_table(root, config, error) < 0)
        return error->code;
    if (simulated && cost->model == COST_RECORDED && check_recorded(root, config, error) < 0)
        return error->code;
    if (simulated && cost->model == COST_LINEAR &&
        cost->step_s + cost->prefill_token_s + cost->decode_seq_s + cost->context_token_s <= 0)
        return fail_key(root, "cost.model", error,
                        "cost.model is linear and its coefficients are 0, expected one above 0");
    /* Without a GPU's memory there is nothing to compute the number of blocks from. */
    if (config->serving.kv.num_blocks == 0 && (!*config->model || !*config->hardware))
        return fail_key(root, "serving.kv.num_blocks", error,
                        "serving.kv.num_blocks is missing or 0, expected at least 1 where no model "
                        "and hardware are named");
    return 0;
}

static int check_news(const struct node *root, const struct news_options *news,
                      struct ifl_error *error)
{
    enum { MOST_REPORTS = 1000 }; /* on their way at a time; each holds the load of all replicas */
    if (news->delay_ns == 0 ||
        (news->interval_ns > 0 && news->delay_ns / news->interval_ns <= MOST_REPORTS))
        return 0;
    return fail_key(root, "cluster.news.delay_s", error,
                    "cluster.news.delay_s is above 0, expected an interval_s beside it, and at "
                    "most 1000 times that");
}

/* With reports that are too old as they come, all would wait for ever. */
static int check_gateway(const struct node *root, const struct config *config,
                         struct ifl_error *error)
{
    if (config->gateway.hold && config->news.interval_ns > 0 &&
        config->news.delay_ns >= config->gateway.stale_ns)
        return fail_key(root, "cluster.gateway.stale_s", error,
                        "cluster.gateway.stale_s is not above cluster.news.delay_s, expected a "
                        "longer time: each report would be too old as it comes");
    struct gateway gateway;
    struct ifl_error found;
    return config_gateway(config, &gateway, &found) == 0
               ? 0
               : fail_key(root, "cluster.gateway.classes", error, found.text);
}

static int check_cluster(const struct node *root, const struct config *config,
                         struct ifl_error *error)
{
    char text[sizeof error->text];
    snprintf(text, sizeof text, "cluster.replicas x parallel.data is %lld, expected at most 65536",
             (long long)config->replicas * config->data_parallel);
    if (check_news(root, &config->news, error) < 0 || check_gateway(root, config, error) < 0)
        return error->code;
    if ((int64_t)config->replicas * config->data_parallel > 65536)
        return fail_key(root, "cluster.replicas", error, text);
    if (config->replicas == 1 || config->executor == EXECUTOR_SIM)
        return 0;
    return fail_key(root, "cluster.replicas", error,
                    "cluster.replicas is above 1, expected 1 where an engine executes: it is one");
}

static int check_kv(const struct node *root, const struct kv_config *kv, struct ifl_error *error)
{
    if (kv->allocator == KV_BUDDY && kv->prefix_cache != PREFIX_CACHE_NONE)
        return fail_key(root, "serving.kv.prefix_cache", error,
                        "serving.kv.prefix_cache shares blocks and serving.kv.allocator is buddy, "
                        "expected paged beside it, or prefix_cache none");
    return 0;
}

static int check_keep(const struct node *root, const struct config *config, struct ifl_error *error)
{
    const struct keep_refusal refusal = keep_refused(config);
    return refusal.key ? fail_key(root, refusal.key, error, refusal.text) : 0;
}

static int check_beams(const struct node *root, const struct config *config,
                       struct ifl_error *error)
{
    if (!config->workload.beams.search)
        return 0;
    if (config->executor != EXECUTOR_SIM)
        return fail_key(root, "workload.beams.search", error,
                        "workload.beams.search is true, expected false where an engine executes: "
                        "it has no beam search");
    if (config->serving.kv.allocator == KV_BUDDY)
        return fail_key(root, "workload.beams.search", error,
                        "workload.beams.search is true and serving.kv.allocator is buddy, expected "
                        "paged: beams share blocks, contiguous runs are one request's");
    return 0;
}

/* Of K/V; no engine here computes on integers. */
static int32_t integer_bits(const char *name)
{
    return strcmp(name, "int8") == 0 ? 8 : strcmp(name, "int4") == 0 ? 4 : 0;
}

static int check_dtypes(const struct node *root, struct config *config, struct ifl_error *error)
{
    static const char *const executors[] = {
        [EXECUTOR_SIM] = "sim", [EXECUTOR_CPU] = "cpu", [EXECUTOR_CUDA] = "cuda"};
    const char *executor = executors[config->executor];
    struct engine_config *engine = &config->engine;
    char text[sizeof error->text];
    if (!engine_dtype_named(engine->dtype_name, &engine->dtype)) {
        snprintf(text, sizeof text, "engine.dtype is %s, expected %s where executor is %s",
                 engine->dtype_name, engine_dtype_names(executor), executor);
        return fail_key(root, "engine.dtype", error, text);
    }
    engine->kv_bits = config->executor == EXECUTOR_SIM ? integer_bits(engine->kv_dtype_name) : 0;
    if (engine->kv_bits == 0 && !engine_kv_dtype_named(engine->kv_dtype_name, &engine->kv_dtype)) {
        snprintf(text, sizeof text, "engine.kv_dtype is %s, expected %s where executor is %s",
                 engine->kv_dtype_name, engine_kv_dtype_names(executor), executor);
        return fail_key(root, "engine.kv_dtype", error, text);
    }
    return 0;
}

static int check_engine(const struct node *root, struct config *config, struct ifl_error *error)
{
    if (config->dtype != MODEL_DTYPE_AUTO && config->executor != EXECUTOR_SIM)
        return fail_key(root, "dtype", error,
                        "dtype is set, expected auto where an engine executes: its dtype is "
                        "engine.dtype");
    if (config->dtype != MODEL_DTYPE_AUTO && config->cost.model == COST_TABLE)
        return fail_key(root, "dtype", error,
                        "dtype is set, expected auto where cost.model is table: tables are of one "
                        "dtype");
    if (check_dtypes(root, config, error) < 0)
        return error->code;
    if (config->engine.window_tokens > 0 && strcmp(config->engine.weights, "random") != 0)
        return fail_key(root, "engine.window_tokens", error,
                        "engine.window_tokens is set, expected 0 where engine.weights is a "
                        "directory: its config.json has the window");
    return 0;
}

static int check_steady_state(const struct node *root, const struct config *config,
                              struct ifl_error *error)
{
    return config->executor != EXECUTOR_SIM && config->steady_state
               ? fail_key(root, "steady_state", error,
                          "steady_state is true, expected false where an engine flies: the "
                          "warm-up is found by flying twice")
               : 0;
}

static int check_timeline(const struct node *root, const struct output_config *output,
                          struct ifl_error *error)
{
    if (output->timeline_to_s == 0 || output->timeline_to_s >= output->timeline_from_s)
        return 0;
    return fail_key(root, "output.timeline_to_s", error,
                    "output.timeline_to_s is before output.timeline_from_s, expected a later time, "
                    "or 0: to the end");
}

int config_check(const struct node *root, struct config *config, struct ifl_error *error)
{
    const bool simulated = config->executor == EXECUTOR_SIM;
    const enum cost_kind computed = cost_computed(&config->cost);
    const bool alone = simulated && (computed == COST_LINEAR || computed == COST_RECORDED);
    const bool roofline = simulated && computed == COST_ROOFLINE;
    *error = (struct ifl_error){0};
    if (check_name(root, "models", "model", config->model, alone, error) < 0 ||
        check_name(root, "hardware", "hardware", config->hardware, !roofline, error) < 0 ||
        check_trace(root, &config->workload, error) < 0 ||
        check_arrivals(root, &config->workload.arrivals, error) < 0 ||
        check_kv(root, &config->serving.kv, error) < 0 || check_keep(root, config, error) < 0 ||
        check_cost(root, config, error) < 0 || check_older_keys(root, &config->cost, error) < 0 ||
        check_cluster(root, config, error) < 0 || check_parallel(root, config, error) < 0 ||
        check_stages(root, config, error) < 0 || check_in_flight(root, config, error) < 0 ||
        check_beams(root, config, error) < 0 || check_speculation(root, config, error) < 0 ||
        tiers_check(root, config, error) < 0 || swap_check(root, config, error) < 0 ||
        check_engine(root, config, error) < 0 || check_steady_state(root, config, error) < 0 ||
        check_timeline(root, &config->output, error) < 0)
        return error->code;
    return 0;
}

struct parallel config_parallel(const struct config *config)
{
    return (struct parallel){.tensor = config->tensor_parallel,
                             .pipeline = config->pipeline_parallel,
                             .data = config->data_parallel,
                             .expert = config->expert_parallel,
                             .context = config->context_parallel,
                             .sequence = config->sequence_parallel};
}
