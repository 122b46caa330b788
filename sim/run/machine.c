#include "run/machine.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "inflight/minmax.h"

#include "base/engine_module.h"
#include "base/tree.h"
#include "cost/draft.h"
#include "cost/kernels.h"
#include "cost/memory_engine.h"

/* ---- model and hardware ---- */

/* Lays what the configuration says over the profile's deployment. */
static int deploy(const struct config *config, struct deployment *deployment,
                  struct ifl_error *error)
{
    const struct cost_config *cost = &config->cost;
    struct host_times *host = &deployment->host;
    if (!config->hardware[0]) /* its times and memory are of no use, and need not be there */
        memcpy(deployment->name, "none", sizeof "none");
    if (deployment_lay(config->deployment, "deployment", NULL, deployment, error) < 0)
        return error->code;
    host->step_s += cost->host_step_s;
    host->seq_s += cost->host_seq_s;
    host->floor_s = fmax(host->floor_s, cost->host_floor_s);
    return deployment_check_intervals(deployment, error);
}

static int cut_stages(struct machine *machine, const struct config *config, struct ifl_error *error)
{
    const int32_t n = config->pipeline_parallel;
    if (!machine->has_model) {
        stages_cut_evenly(&machine->stages, n);
        return 0;
    }
    const int rc =
        stages_cut(&machine->stages, n, machine->model.layers, config->stage_layers, error);
    if (rc == 0)
        model_stage(&machine->model, stages_most_layers(&machine->stages), &machine->stage);
    return rc;
}

static void pack_kv(struct model *model, const struct engine_config *engine)
{
    const int32_t asked = engine->kv_group_elements;
    model->kv_bits = engine->kv_bits;
    model->kv_group_elements = asked > 0 ? asked : ifl_max(model->d_head, 1);
    model->kv_scale_bytes = engine->kv_scale_bytes;
}

/* A pass of guesses computes layers of a draft model, or of the target itself. */
static int load_draft_model(struct machine *machine, const struct config *config,
                            struct profile_shelf *shelf, struct ifl_error *error)
{
    const struct speculation_config *keys = &config->serving.speculation;
    machine->draft_model = machine->model;
    if (keys->proposer != PROPOSER_MODEL)
        return 0;
    const int rc = profile_shelf_model(shelf, keys->model, &machine->draft_model, error);
    if (rc == 0)
        model_set_dtype(&machine->draft_model, (enum model_dtype)config->dtype);
    return rc;
}

int machine_load(struct machine *machine, const struct config *config, struct profile_shelf *shelf,
                 struct ifl_error *error)
{
    const bool wanted = config->executor == EXECUTOR_SIM && config->cost.model == COST_ROOFLINE;
    int rc = 0;
    *machine = (struct machine){.has_model = config->model[0], .has_hardware = config->hardware[0]};
    if (machine->has_model)
        rc = profile_shelf_model(shelf, config->model, &machine->model, error);
    const int32_t kv_bytes = engine_kv_dtype_bytes(config->engine.kv_dtype);
    if (kv_bytes > 0)
        machine->model.kv_bytes = kv_bytes;
    if (config->engine.kv_bits > 0)
        pack_kv(&machine->model, &config->engine);
    if (rc == 0 && machine->has_model)
        model_set_dtype(&machine->model, (enum model_dtype)config->dtype);
    if (rc == 0)
        rc = cut_stages(machine, config, error);
    if (rc == 0 && config_speculates(config))
        rc = load_draft_model(machine, config, shelf, error);
    const struct parallel parallel = config_parallel(config);
    if (rc == 0 && machine->has_model)
        rc = model_spread(&machine->stage, &parallel, &machine->stage, error);
    if (rc == 0 && machine->has_hardware)
        rc = profile_shelf_hardware(shelf, config->hardware, &machine->platform, error);
    if (rc == 0)
        rc = deploy(config, &machine->platform.deployment, error);
    if (rc < 0 || (machine->has_model && machine->has_hardware))
        return rc;
    return wanted ? ifl_fail_at(error, config->path, 0, 0,
                                "cost.model is roofline, which needs a model and a hardware")
                  : 0;
}

/* ---- blocks ---- */

static int32_t host_blocks(const struct config *config, const struct machine *machine)
{
    const struct kv_config *kv = &config->serving.kv;
    const int32_t block_tokens = kv->block_tokens;
    const double pool_bytes = kv->swap_gib * 1073741824.0;
    if (!machine->has_model) /* a token has no bytes: as many host blocks as could ever be swapped
                                out */
        return pool_bytes > 0 && kv->num_blocks > 0 ? kv->num_blocks - kv->null_blocks : 0;
    const double block_bytes =
        (double)model_kv_bytes_per_token(&machine->stage, config->tensor_parallel) * block_tokens;
    const double n = pool_bytes / block_bytes;
    return n < 1e9 ? (int32_t)n : 1000000000;
}

/* memory_print writes a paragraph; here it becomes one line. */
static void explain(const struct memory_plan *plan, char text[MACHINE_TEXT_BYTES])
{
    FILE *out = fmemopen(text, MACHINE_TEXT_BYTES, "w");
    if (!out)
        return;
    memory_print(plan, out);
    fclose(out);
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = c[1] ? ' ' : '\0';
}

/* Sums of tokens on the device are 32 bits wide. */
static int check_pool(const struct config *config, const char *key, int32_t num_blocks,
                      struct ifl_error *error)
{
    const int32_t block_tokens = config->serving.kv.block_tokens * config->context_parallel;
    const int64_t n_tokens = (int64_t)num_blocks * block_tokens;
    if (n_tokens <= INT32_MAX)
        return 0;
    return ifl_fail_at(error, config->path, 0, 0,
                       "%s is %d, with blocks of %d tokens room for %lld tokens, expected at most "
                       "%d",
                       key, num_blocks, block_tokens, (long long)n_tokens, INT32_MAX);
}

static struct memory_options memory_options(const struct config *config)
{
    const struct kv_config *kv = &config->serving.kv;
    return (struct memory_options){config->tensor_parallel, kv->block_tokens,
                                   kv->memory_utilization, config->context_parallel,
                                   kv->windows == KV_WINDOWS_GROUPS};
}

/* The value of a parameter of the module that is a whole number; 0 if it has none of that name. */
static int32_t whole_number(const struct module_config *module, const char *name)
{
    const struct ifl_policy *policy = module->policy;
    for (size_t i = 0; policy && i < policy->n_params; i++) {
        const struct ifl_param *param = &policy->params[i];
        if (param->type == IFL_INT && strcmp(param->name, name) == 0)
            return *(const int32_t *)((const char *)module->params + param->offset);
    }
    return 0;
}

static int32_t max_model_tokens(const struct config *config, const struct machine *machine)
{
    return config_max_tokens(config, machine->has_model ? machine->model.max_model_len : 0);
}

/* Of the step that an engine profiles itself with. vLLM V0 has a budget of its own where none is
 * said, and calls that of chunked prefill by the same name as any other; here it is chunk_tokens.
 */
static int32_t profiled_tokens(const struct config *config, const struct machine *machine,
                               enum memory_rule rule)
{
    const struct module_config *batching = &config->serving.modules[IFL_BATCHING];
    const int32_t n_tokens = whole_number(batching, "max_batched_tokens");
    const int32_t chunk_tokens = whole_number(batching, "chunk_tokens");
    if (n_tokens > 0 || !memory_rule_is_v0(rule))
        return n_tokens;
    return chunk_tokens > 0 ? chunk_tokens : ifl_max(max_model_tokens(config, machine), 2048);
}

static int plan_engine(const struct config *config, const struct machine *machine,
                       struct memory_plan *plan, struct ifl_error *error)
{
    const struct module_config *batching = &config->serving.modules[IFL_BATCHING];
    const struct memory_options options = memory_options(config);
    const enum memory_rule rule = (enum memory_rule)(config->serving.kv.sizing - KV_SIZING_ENGINE);
    const struct memory_profile_run run = {
        profiled_tokens(config, machine, rule), whole_number(batching, "max_seqs"),
        config->data_parallel, config->serving.kv.flashinfer_sampler, config->serving.kv.encoder};
    if (run.flashinfer_sampler && !memory_rule_sorts_logits(rule))
        return ifl_fail_at(error, config->path, 0, 0,
                           "serving.kv.flashinfer_sampler is true, expected with sizing vllm-0.8 "
                           "to vllm-0.14 only: the other rules sort no logits");
    if (memory_rule_profiles(rule) && (run.max_batched_tokens < 1 || run.max_seqs < 1))
        return ifl_fail_at(error, config->path, 0, 0,
                           "serving.kv.sizing goes by serving.batching.max_batched_tokens and "
                           "max_seqs, which %s does not have, expected serving.kv.num_blocks or "
                           "sizing: memory",
                           batching->policy->name);
    return memory_plan_engine(&machine->stage, &machine->platform, &options, rule, &run, plan,
                              error);
}

/* As many blocks as there is room for. */
static int fill_memory(const struct config *config, const struct machine *machine,
                       struct memory_plan *plan, struct ifl_error *error)
{
    const struct memory_options options = memory_options(config);
    if (config->serving.kv.sizing >= KV_SIZING_ENGINE)
        return plan_engine(config, machine, plan, error);
    if (config->serving.kv.sizing == KV_SIZING_FREE_SHARE)
        return memory_plan_free_share(&machine->stage, &machine->platform, &options, plan, error);
    return memory_plan(&machine->stage, &machine->platform, &options, plan, error);
}

static int plan_memory(const struct config *config, const struct machine *machine,
                       int32_t max_tokens, struct memory_plan *plan, struct ifl_error *error)
{
    const struct memory_options options = memory_options(config);
    if (config->serving.kv.sizing != KV_SIZING_WHOLE_REQUESTS)
        return fill_memory(config, machine, plan, error);
    return memory_plan_whole_requests(&machine->stage, &machine->platform, &options, max_tokens,
                                      plan, error);
}

/* The number of blocks that the configuration gives, or its deployment, null blocks included; 0:
 * none. */
static int32_t given_blocks(const struct config *config, const struct machine *machine,
                            const char **key)
{
    const int32_t num_blocks = config->serving.kv.num_blocks;
    *key = num_blocks > 0 ? "serving.kv.num_blocks" : "deployment.num_blocks";
    return num_blocks > 0 ? num_blocks : machine->platform.deployment.num_blocks;
}

/* A number of blocks that is given is taken as it is. A note says so if memory has no room for
 * it. */
static void doubt(const struct config *config, const struct machine *machine,
                  char text[MACHINE_TEXT_BYTES])
{
    const char *key;
    const int32_t num_blocks = given_blocks(config, machine, &key);
    const int32_t null_blocks = config->serving.kv.null_blocks;
    struct memory_plan plan = {0};
    struct ifl_error error;
    if (!machine->has_model || !machine->has_hardware)
        return;
    const int rc = fill_memory(config, machine, &plan, &error);
    if (rc < 0)
        snprintf(text, MACHINE_TEXT_BYTES, "%s is given, although %s", key, error.text);
    else if (num_blocks - null_blocks > memory_end(&plan, MEMORY_HIGH))
        snprintf(text, MACHINE_TEXT_BYTES, "%s is %d, more than the %d that memory has room for",
                 key, num_blocks, plan.n_blocks + null_blocks);
}

int machine_size_pool(const struct machine *machine, const struct config *config,
                      struct ifl_limits *limits, char arithmetic[MACHINE_TEXT_BYTES],
                      struct ifl_error *error)
{
    const struct kv_config *kv = &config->serving.kv;
    struct memory_plan plan = {0};
    const char *key;
    const int32_t num_blocks = given_blocks(config, machine, &key);
    arithmetic[0] = '\0';
    *limits = (struct ifl_limits){
        .block_tokens = kv->block_tokens * config->context_parallel,
        .n_blocks = num_blocks > kv->null_blocks ? num_blocks - kv->null_blocks : 0,
        .n_host_blocks = host_blocks(config, machine),
        .max_model_tokens = max_model_tokens(config, machine),
        .n_clients = 1,
    };
    if (num_blocks > 0 && limits->n_blocks == 0)
        return ifl_fail_at(error, config->path, 0, 0,
                           "%s is %d, expected more than serving.kv.null_blocks, %d", key,
                           num_blocks, kv->null_blocks);
    if (num_blocks > 0) {
        doubt(config, machine, arithmetic);
        return check_pool(config, key, num_blocks, error);
    }
    if (!machine->has_model || !machine->has_hardware)
        return ifl_fail_at(error, config->path, 0, 0,
                           "serving.kv.num_blocks is needed where no model and hardware are named");
    const int rc = plan_memory(config, machine, limits->max_model_tokens, &plan, error);
    if (rc < 0)
        return rc;
    limits->n_blocks = plan.n_blocks;
    explain(&plan, arithmetic);
    return 0;
}

struct handover_size machine_kv_moved(const struct machine *machine, const struct config *config)
{
    const struct links_config *links = &config->links;
    const int32_t n_gpus = config->tensor_parallel;
    const int32_t n_layers = machine->has_model ? machine->model.layers : 1;
    const double of_model =
        machine->has_model ? (double)model_kv_bytes_per_token(&machine->model, n_gpus) * n_gpus : 0;
    const int64_t of_layer = machine->has_model && model_is_latent(&machine->model) ? 1 : 2;
    const struct model *model = &machine->model;
    const bool is_given = links->token_bytes > 0 || !machine->has_model;
    const bool parts =
        !is_given && model->window_layers > 0 && machine_windows(machine, config).n_groups > 0;
    const double of_windows = parts ? of_model * model->window_layers / model->layers : 0;
    return (struct handover_size){
        .token_bytes = links->token_bytes > 0 ? links->token_bytes : of_model - of_windows,
        .last_token_bytes = of_windows,
        .last_tokens = parts ? model->window_tokens : 0,
        .request_bytes =
            is_given ? 0 : (double)model_state_bytes(model, n_gpus) * n_gpus * model->state_layers,
        .block_pieces = links->pieces == PIECES_LAYERS   ? of_layer * n_layers * n_gpus
                        : links->pieces == PIECES_BLOCKS ? 1
                                                         : 0,
        .n_layers = n_layers,
    };
}

struct windows_rule machine_windows(const struct machine *machine, const struct config *config)
{
    const int32_t block_tokens = config->serving.kv.block_tokens * config->context_parallel;
    if (config->serving.kv.windows != KV_WINDOWS_GROUPS || !machine->has_model)
        return (struct windows_rule){0};
    const struct model *model = &machine->stage;
    return (struct windows_rule){model_kv_groups(model).n_window,
                                 model_group_blocks(model, config->tensor_parallel, block_tokens),
                                 model->state_layers > 0};
}

struct keep machine_keep(const struct machine *machine, const struct config *config)
{
    struct keep keep = config->serving.kv.keep;
    keep.n_layers = machine->has_model ? machine->model.layers : 0;
    return keep;
}

/* ---- costs ---- */

/* The cost with that of guesses, where there are any. */
static struct cost *with_drafts(const struct machine *machine, const struct config *config,
                                struct cost *target, struct ifl_error *error)
{
    const struct speculation_config *keys = &config->serving.speculation;
    const struct parallel parallel = config_parallel(config);
    struct draft_cost draft = {
        .proposer = (enum proposer_kind)keys->proposer,
        .model = &machine->draft_model,
        .platform = &machine->platform,
        .parallel = &parallel,
        .layers = keys->layers,
        .lm_head_frac = keys->lm_head_frac,
        .passes = keys->passes,
        .width = keys->width,
        .pass_s = keys->pass_s,
        .seq_s = keys->seq_s,
        .step_s = keys->step_s,
        .block_tokens = config->serving.kv.block_tokens,
    };
    if (!target || !config_speculates(config))
        return target;
    if (cost_computed(&config->cost) == COST_LINEAR)
        draft.proposer = PROPOSER_LOOKUP;
    return cost_create_drafting(target, &draft, error);
}

static struct cost *target_cost(const struct machine *machine, const struct config *config,
                                struct ifl_error *error)
{
    const struct cost_config *c = &config->cost;
    const enum cost_kind kind = cost_computed(c);
    ifl_require(kind != COST_RECORDED);
    if (kind == COST_LINEAR) {
        const struct linear_cost linear = {.step_s = c->step_s,
                                           .prefill_token_s = c->prefill_token_s,
                                           .decode_seq_s = c->decode_seq_s,
                                           .context_token_s = c->context_token_s,
                                           .prefill_square_s = c->prefill_square_s,
                                           .decode_step_s = c->decode_step_s,
                                           .large_batch_seqs = c->large_batch_seqs,
                                           .large_step_s = c->large_step_s,
                                           .large_seq_s = c->large_seq_s,
                                           .large_context_token_s = c->large_context_token_s};
        return cost_create_linear(&linear, error);
    }
    if (kind == COST_TABLE)
        return cost_create_table(&machine->model, c->dir, error);
    const struct parallel parallel = config_parallel(config);
    return cost_create_roofline(&machine->model, &machine->platform, &parallel,
                                config->serving.kv.block_tokens, error);
}

struct cost *machine_cost(const struct machine *machine, const struct config *config,
                          struct ifl_error *error)
{
    return with_drafts(machine, config, target_cost(machine, config, error), error);
}

static void add(char *text, size_t n_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t n_bytes, const char *format, ...)
{
    va_list args;
    const size_t at = strlen(text);
    const int n = at > 0 ? snprintf(text + at, n_bytes - at, "; ") : 0;
    va_start(args, format);
    if (at + (size_t)n < n_bytes)
        vsnprintf(text + at + n, n_bytes - at - (size_t)n, format, args);
    va_end(args);
}

void machine_unused_costs(const struct config *config, char text[MACHINE_TEXT_BYTES])
{
    const struct cost_config *c = &config->cost;
    const enum cost_kind kind = cost_computed(c);
    const struct {
        const char *name;
        double value;
        enum cost_kind of;
    } keys[] = {
        {"step_s", c->step_s, COST_LINEAR},
        {"prefill_token_s", c->prefill_token_s, COST_LINEAR},
        {"decode_seq_s", c->decode_seq_s, COST_LINEAR},
        {"context_token_s", c->context_token_s, COST_LINEAR},
        {"prefill_square_s", c->prefill_square_s, COST_LINEAR},
        {"decode_step_s", c->decode_step_s, COST_LINEAR},
        {"large_batch_seqs", c->large_batch_seqs, COST_LINEAR},
        {"large_step_s", c->large_step_s, COST_LINEAR},
        {"large_seq_s", c->large_seq_s, COST_LINEAR},
        {"large_context_token_s", c->large_context_token_s, COST_LINEAR},
        {"host_step_s", c->host_step_s, COST_ROOFLINE},
        {"host_seq_s", c->host_seq_s, COST_ROOFLINE},
        {"host_floor_s", c->host_floor_s, COST_ROOFLINE},
    };
    text[0] = '\0';
    for (size_t i = 0; config->executor == EXECUTOR_SIM && i < sizeof keys / sizeof *keys; i++)
        if (keys[i].value > 0 && keys[i].of != kind)
            add(text, MACHINE_TEXT_BYTES, "cost.%s is %g and has no effect: only %s costs use it",
                keys[i].name, keys[i].value, keys[i].of == COST_LINEAR ? "linear" : "roofline");
}

static bool same_engine(const char *engine, const char *kernels)
{
    const size_t n = strcspn(kernels, " ");
    return strlen(engine) == n && memcmp(engine, kernels, n) == 0;
}

/* A profile speaks for its own deployment, too. */
static void disclose_hardware(const struct machine *machine, const struct config *config,
                              char *text, size_t n_bytes)
{
    const struct hardware *hardware = &machine->platform.hardware;
    const struct deployment *deployment = &machine->platform.deployment;
    const char *warning = cost_roofline_warning(&machine->model, &machine->platform.hardware);
    if (hardware->assumed[0] || warning)
        add(text, n_bytes, "%s: %s%s%s", hardware->name, hardware->assumed,
            hardware->assumed[0] && warning ? "; " : "", warning ? warning : "");
    if (machine->model.kv_bits > 0)
        add(text, n_bytes,
            "attention on K/V in int%d has the cost of 16 bits with fewer bytes: its conversion "
            "costs nothing",
            machine->model.kv_bits);
    else if (machine->model.kv_bytes == engine_kv_dtype_bytes(IFL_DTYPE_FP8))
        add(text, n_bytes, "attention on K/V in fp8 has the cost of 16 bits with half the bytes");
    const char *engine = config->serving.engine;
    if (*engine && *hardware->kernels && !same_engine(engine, hardware->kernels))
        add(text, n_bytes, "the scheduler of %s on kernels of %s", engine, hardware->kernels);
    const bool is_another =
        tree_child(config->deployment, "base") || tree_child(config->deployment, "assumed");
    if (is_another && deployment->assumed[0])
        add(text, n_bytes, "deployment %s: %s", deployment->name, deployment->assumed);
}

/* All-reduces that the profile does not have. */
static void disclose_collectives(const struct machine *machine, const struct config *config,
                                 char *text, size_t n_bytes)
{
    const struct deployment *deployment = &machine->platform.deployment;
    const int32_t n = config->tensor_parallel;
    if (n > 1 && deployment->all_reduce.gb_per_s <= 0 &&
        !hardware_allreduce(&machine->platform.hardware, deployment->host.eager, n))
        add(text, n_bytes, "all-reduces of %d GPUs are scaled from those of fewer, as in a ring",
            n);
    if (config->data_parallel > 1 && deployment->exchange.gb_per_s <= 0)
        add(text, n_bytes,
            "experts exchange tokens at the rate of an all-reduce "
            "(deployment.exchange.gb_per_s)");
}

/* Rules whose kernels were not measured, and those that were on another GPU. */
static void disclose_states(const struct machine *machine, char *text, size_t n_bytes)
{
    const struct model *model = &machine->model;
    const bool is_kda = model->state_rule == MODEL_STATE_KDA;
    if (model->state_rule != MODEL_STATE_DELTA && !is_kda)
        add(text, n_bytes,
            "layers of %s go by the bytes that they move: no kernel of theirs was measured",
            model_state_name(model));
    else if (!delta_is_known(&machine->platform.hardware))
        add(text, n_bytes,
            "layers with states have the gated delta rule of a B200, its reads and writes at this "
            "GPU's bandwidth");
    if (is_kda)
        add(text, n_bytes, "layers of %s take the time of the gated delta rule",
            model_state_name(model));
}

void machine_disclose(const struct machine *machine, const struct config *config,
                      int32_t max_model_tokens, struct ifl_summary *summary)
{
    const struct model *model = &machine->model;
    const enum cost_kind kind = cost_computed(&config->cost);
    char *text = summary->assumed;
    const size_t n_bytes = sizeof summary->assumed;
    if (config->executor != EXECUTOR_SIM || kind == COST_RECORDED)
        return;
    if (kind == COST_ROOFLINE) {
        disclose_hardware(machine, config, text, n_bytes);
        disclose_collectives(machine, config, text, n_bytes);
    }
    if (summary->n_adapters > 0 && machine->has_model && machine->has_hardware)
        add(text, n_bytes,
            "kernels of adapters have roofline costs with the factors of other kernels");
    const bool holds = machine_windows(machine, config).n_groups == 0;
    if (model->window_tokens > 0 && model->window_tokens < max_model_tokens && holds)
        add(text, n_bytes,
            "KV blocks hold the whole context in all layers, not the %s of %d tokens of %s",
            model->chunked ? "chunk" : "window", model->window_tokens, model->name);
    if (model->state_layers > 0 && holds)
        add(text, n_bytes, "states of %s take no memory", model->name);
    if (kind == COST_ROOFLINE && model->state_layers > 0)
        disclose_states(machine, text, n_bytes);
    if (config_pipelines(config) && kind != COST_ROOFLINE)
        add(text, n_bytes,
            "linear costs are divided by layers among the %d stages of parallel.pipeline",
            config->pipeline_parallel);
    else if (config->pipeline_parallel > 1 && !config_pipelines(config))
        add(text, n_bytes,
            kind == COST_ROOFLINE ? "one step at a time in the %d stages of parallel.pipeline, "
                                    "though engines have a step in each"
                                  : "linear costs ignore the %d stages of parallel.pipeline",
            config->pipeline_parallel);
}
