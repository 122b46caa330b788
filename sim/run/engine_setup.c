#include "run/engine_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/engine_module.h"
#include "cost/draft.h"
#include "cost/engine_model.h"
#include "inflight/minmax.h"

static int32_t at_most(int64_t n, int64_t max)
{
    return (int32_t)ifl_min(n, max);
}

/* The pool bounds a step: each token takes a slot of its own, each sequence a block. */
static void set_limits(const struct engine_setup *setup, struct ifl_engine_options *options)
{
    const struct ifl_limits *limits = &setup->limits;
    const size_t n_seqs = setup->n_requests * (size_t)setup->max_samples;
    const int64_t n_slots = (int64_t)limits->n_blocks * limits->block_tokens;
    options->block_tokens = limits->block_tokens;
    options->n_blocks = limits->n_blocks;
    options->n_host_blocks = limits->n_host_blocks;
    options->max_tokens = at_most(limits->max_model_tokens, n_slots);
    options->max_step_tokens = at_most(n_slots, INT32_MAX / 2);
    options->max_step_seqs = at_most(limits->n_blocks, n_seqs ? (int64_t)n_seqs : 1);
}

/* One step at a time passes through the stages of a pipeline that is not planned as one. */
static void set_stages(const struct engine_setup *setup, struct ifl_engine_options *options)
{
    const struct overlap overlap = config_overlap(setup->config);
    if (setup->stages->n == 1)
        return;
    options->n_stages = setup->stages->n;
    options->stage_layers = setup->stages->layers;
    options->max_in_flight = ifl_max(overlap.depth, overlap.hindsight ? 2 : 1);
}

static uint32_t without(const struct engine_config *config)
{
    return (config->dependent_launch ? 0u : IFL_WITHOUT_DEPENDENT_LAUNCH) |
           (config->graphs ? 0u : IFL_WITHOUT_GRAPHS) |
           (config->batched_copies ? 0u : IFL_WITHOUT_BATCHED_COPIES) |
           (config->timed_algorithms ? 0u : IFL_WITHOUT_TIMED_ALGORITHMS);
}

/* What the simulator counts: a model with K/V of one byte is stored in fp8. */
static enum ifl_engine_dtype kv_dtype(const struct engine_setup *setup)
{
    const enum ifl_engine_dtype asked = setup->config->engine.kv_dtype;
    const bool is_narrow = setup->model->kv_bytes == engine_kv_dtype_bytes(IFL_DTYPE_FP8);
    return asked == IFL_DTYPE_AUTO && is_narrow ? IFL_DTYPE_FP8 : asked;
}

/* A window is counted in positions, which slots do not tell. */
static void fail_window(int32_t window_tokens, struct ifl_error *error)
{
    ifl_fail(
        error, IFL_E_INPUT,
        "serving.kv.keep.method gives up K/V and the model's window of attention is %d tokens, "
        "expected a model without one where an engine executes",
        window_tokens);
}

/* The draft model is opened as the target is, with weights of its own. */
static int propose(const struct engine_setup *setup, struct executor_engine_options *options,
                   struct ifl_error *error)
{
    const struct speculation_config *keys = &setup->config->serving.speculation;
    struct proposer_options *proposer = &options->proposer;
    options->guesses = config_speculates(setup->config);
    options->verifies = options->guesses && keys->verify == VERIFY_REAL;
    proposer->longest_match = keys->longest_match;
    proposer->shortest_match = keys->shortest_match;
    proposer->n_requests = setup->n_requests;
    if (!options->guesses || keys->proposer == PROPOSER_LOOKUP)
        return 0;
    proposer->engine = options->engine;
    proposer->open = options->open;
    proposer->open.n_adapters = 0;
    proposer->open.adapter_ranks = NULL;
    proposer->open.adapter_dirs = NULL;
    proposer->open.weights_dir = strcmp(keys->weights, "random") == 0 ? NULL : keys->weights;
    proposer->open.window_tokens = setup->draft_model->window_tokens;
    if (engine_describe_model(setup->draft_model, &proposer->open.model, error) < 0)
        return error->code;
    if (proposer->open.model.n_vocab == options->open.model.n_vocab)
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "%s has %d tokens in its vocabulary and %s, the draft model, %d, expected as "
                    "many",
                    setup->model->name, options->open.model.n_vocab, setup->draft_model->name,
                    proposer->open.model.n_vocab);
}

/* The engine's options for adapters. */
struct told_adapters {
    int32_t *ranks;
    char (*paths)[1024];
    const char **dirs;
};

static void forget_adapters(struct told_adapters *told)
{
    free(told->ranks);
    free(told->paths);
    free(told->dirs);
}

/* 0, or IFL_E_NOMEM; forget_adapters in any case. */
static int tell_adapters(const struct engine_setup *setup, struct told_adapters *told,
                         struct ifl_engine_options *options)
{
    const char *root = setup->config->engine.adapters;
    const uint32_t n = setup->adapters->n;
    const bool drawn = strcmp(root, "random") == 0;
    *told = (struct told_adapters){.ranks = adapter_table_ranks(setup->adapters),
                                   .paths = calloc((size_t)n + 1, sizeof *told->paths),
                                   .dirs = calloc((size_t)n + 1, sizeof *told->dirs)};
    if (!told->ranks || !told->paths || !told->dirs)
        return IFL_E_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        snprintf(told->paths[i], sizeof told->paths[i], "%s/%.500s", root, setup->adapter_names[i]);
        told->dirs[i] = told->paths[i];
    }
    options->n_adapters = (int32_t)n;
    options->adapter_ranks = told->ranks;
    options->adapter_dirs = drawn ? NULL : told->dirs;
    options->adapter_matrices = (enum ifl_engine_adapter_matrices)setup->config->adapters.matrices;
    return 0;
}

/* What is known without the model and the module. */
static struct executor_engine_options options_of(const struct engine_setup *setup)
{
    const struct engine_config *config = &setup->config->engine;
    const bool random = strcmp(config->weights, "random") == 0;
    struct executor_engine_options options = {
        .open = {.weights_dir = random ? NULL : config->weights,
                 .dtype = config->dtype,
                 .kv_dtype = kv_dtype(setup),
                 .seed = config->seed,
                 .window_tokens =
                     config->window_tokens ? config->window_tokens : setup->model->window_tokens,
                 .n_threads = config->threads,
                 .without = without(config),
                 .stop = setup->stop,
                 .notes = setup->notes},
        .token_seed = config->seed,
        .n_requests = setup->n_requests,
        .source = setup->source,
        .spoil = config->spoil_free_blocks ? setup->pool : NULL,
        .receives = setup->hands_over,
        .n_places = setup->n_places,
    };
    if (setup->gives_up)
        options.keep = setup->config->serving.kv.keep;
    set_limits(setup, &options.open);
    set_stages(setup, &options.open);
    return options;
}

static int describe(const struct engine_setup *setup, struct told_adapters *told,
                    struct executor_engine_options *options, struct ifl_error *error)
{
    *options = options_of(setup);
    if (tell_adapters(setup, told, &options->open) < 0)
        return ifl_fail_nomem(error);
    if (setup->gives_up && options->open.window_tokens > 0) {
        fail_window(options->open.window_tokens, error);
        return error->code;
    }
    if (engine_describe_model(setup->model, &options->open.model, error) < 0)
        return error->code;
    options->engine =
        engine_module_load(setup->config->executor == EXECUTOR_CPU ? "cpu" : "cuda", error);
    return options->engine ? propose(setup, options, error) : error->code;
}

struct executor_engine *engine_set_up(const struct engine_setup *setups, uint32_t n,
                                      struct ifl_error *error)
{
    struct executor_engine_options *options = calloc(n, sizeof *options);
    struct told_adapters *told = calloc(n, sizeof *told);
    struct executor_engine *executor = NULL;
    int rc = options && told ? 0 : ifl_fail_nomem(error);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = describe(&setups[i], &told[i], &options[i], error);
    if (rc == 0)
        executor = executor_engine_create(options, n, error);
    for (uint32_t i = 0; told && i < n; i++)
        forget_adapters(&told[i]);
    free(options);
    free(told);
    return executor;
}
