#include "engine_setup.h"

#include <string.h>

#include "engine_module.h"

int engine_describe_model(const struct model *model, struct ifl_engine_model *described,
                          struct ifl_error *error)
{
    if (model->mlp != MODEL_MLP_GATED || model->norm != MODEL_RMSNORM ||
        model->learned_positions > 0 || model->embedding_norm)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s is no Llama-style decoder (gated MLP, RMSNorm, rotary "
                        "positions), expected one: engines run no other",
                        model->name);
    if (model->n_experts > 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s has %d experts in a layer, expected a dense model: engines run "
                        "no other",
                        model->name, model->n_experts);
    if (model->quantization != MODEL_PLAIN)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s is quantised, expected one that is not: engines run no other",
                        model->name);
    *described = (struct ifl_engine_model){
        .n_layers = model->layers,
        .d_model = model->d_model,
        .n_q_heads = model->n_q_heads,
        .n_kv_heads = model->n_kv_heads,
        .d_head = model->d_head,
        .d_ffn = model->d_ffn,
        .n_vocab = model->vocab,
        .qkv_bias = model->attention_bias != MODEL_BIAS_NONE,
        .out_bias = model->attention_bias == MODEL_BIAS_QKV_AND_OUT,
        .mlp_bias = model->mlp_bias,
        .qk_norm = model->qk_norm,
        .tied_embeddings = model->tied_embeddings,
    };
    return 0;
}

bool engine_dtype_named(const char *name, enum ifl_engine_dtype *dtype)
{
    static const char *const names[] = {"auto", "fp32", "bf16", "fp16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *dtype = (enum ifl_engine_dtype)i;
            return true;
        }
    return false;
}

const char *engine_dtype_names(const char *executor)
{
    if (strcmp(executor, "cpu") == 0)
        return "auto or fp32";
    return strcmp(executor, "cuda") == 0 ? "auto, bf16 or fp16" : "auto, fp32, bf16 or fp16";
}

static int32_t at_most(int64_t n, int64_t max)
{
    return (int32_t)(n < max ? n : max);
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

struct executor_engine *engine_set_up(const struct engine_setup *setup, struct ifl_error *error)
{
    const struct engine_config *config = &setup->config->engine;
    const bool random = strcmp(config->weights, "random") == 0;
    struct executor_engine_options options = {
        .open = {.weights_dir = random ? NULL : config->weights,
                 .dtype = config->dtype,
                 .seed = config->seed,
                 .window_tokens =
                     config->window_tokens ? config->window_tokens : setup->model->window_tokens,
                 .n_threads = config->threads,
                 .stop = setup->stop,
                 .notes = setup->notes},
        .token_seed = config->seed,
        .n_requests = setup->n_requests,
        .spoil = config->spoil_free_blocks ? setup->pool : NULL,
    };
    set_limits(setup, &options.open);
    if (engine_describe_model(setup->model, &options.open.model, error) < 0)
        return NULL;
    options.engine =
        engine_module_load(setup->config->executor == EXECUTOR_CPU ? "cpu" : "cuda", error);
    return options.engine ? executor_engine_create(&options, error) : NULL;
}
