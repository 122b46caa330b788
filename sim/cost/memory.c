#include "cost/memory_parts.h"

#include <math.h>

#include "inflight/minmax.h"

enum { MAX_BLOCK_TOKENS = 1 << 20 };

static const double gib = 1024.0 * 1024 * 1024;

static int64_t activation_bytes(const struct model *model, double activation_tokens,
                                int32_t tensor_parallel)
{
    const double widest = ifl_max(model->d_ffn, model->d_ffn_dense);
    const double ffn_columns = widest / tensor_parallel;
    const double row = (model->mlp == MODEL_MLP_GATED ? 3 : 2) * ffn_columns + 4.0 * model->d_model;
    return (int64_t)(row * model->weight_bytes * activation_tokens);
}

static void arithmetic_of_free(const struct memory_plan *plan, char *text, size_t n_bytes)
{
    snprintf(text, n_bytes,
             "%.2f GiB, less %.2f weights, %.2f activations, %.2f workspace, x %g leaves %.2f GiB "
             "for KV blocks of %.3f MiB",
             (double)plan->gpu_bytes / gib, (double)plan->weight_bytes / gib,
             (double)plan->activation_bytes / gib, (double)plan->workspace_bytes / gib,
             plan->utilization, (double)plan->kv_bytes / gib,
             (double)plan->block_bytes / gib * 1024);
}

/* Where the most is in use. */
static void name_widest(const struct memory_plan *plan, char *text, size_t n_bytes)
{
    const int n_items = plan->encoder_items;
    char beside[64] = "";
    if (n_items > 0)
        snprintf(beside, sizeof beside, ", beside %.2f of %d encoded item%s",
                 (double)plan->encoder_held_bytes / gib, n_items, n_items == 1 ? "" : "s");
    if (plan->encoder_is_widest)
        snprintf(text, n_bytes, "the image encoder, of %d item%s", n_items,
                 n_items == 1 ? "" : "s");
    else if (plan->logits_tokens > 0)
        snprintf(text, n_bytes, "logits of %d tokens%s", plan->logits_tokens, beside);
    else if (plan->sampled_seqs > 0)
        snprintf(text, n_bytes, "logits of %d sequences%s", plan->sampled_seqs, beside);
    else
        snprintf(text, n_bytes, "a layer%s", beside);
}

/* By an engine's rule. The error is given as one standard deviation. */
static void arithmetic_of_engine(const struct memory_plan *plan, char *text, size_t n_bytes)
{
    char widest[128], encoder[48] = "";
    name_widest(plan, widest, sizeof widest);
    if (plan->encoder_bytes > 0)
        snprintf(encoder, sizeof encoder, ", %.2f image encoder",
                 (double)plan->encoder_bytes / gib);
    snprintf(text, n_bytes,
             "by the rule %s %.2f GiB x %g = %.2f, less %.2f weights%s, %.2f activations (%s), "
             "%.2f context and libraries, %.2f collectives, %.2f CUDA graphs leaves %.2f +- %.2f "
             "GiB for KV blocks of %.3f MiB",
             plan->rule, (double)plan->gpu_bytes / gib, plan->utilization,
             (double)plan->usable_bytes / gib, (double)plan->weight_bytes / gib, encoder,
             (double)plan->activation_bytes / gib, widest, (double)plan->workspace_bytes / gib,
             (double)plan->collective_bytes / gib, (double)plan->graph_bytes / gib,
             (double)plan->kv_bytes / gib, (double)plan->error_bytes / gib,
             (double)plan->block_bytes / gib * 1024);
}

/* SGLang's share is of what is free before weights are there; the rest holds all but K/V. */
static void arithmetic_of_static(const struct memory_plan *plan, char *text, size_t n_bytes)
{
    snprintf(text, n_bytes,
             "by the rule %s (%.2f GiB, less %.2f context and libraries, %.2f collectives) x %g = "
             "%.2f, less %.2f weights leaves %.2f +- %.2f GiB for KV blocks of %.3f MiB",
             plan->rule, (double)plan->gpu_bytes / gib, (double)plan->workspace_bytes / gib,
             (double)plan->collective_bytes / gib, plan->utilization,
             (double)plan->usable_bytes / gib, (double)plan->weight_bytes / gib,
             (double)plan->kv_bytes / gib, (double)plan->error_bytes / gib,
             (double)plan->block_bytes / gib * 1024);
}

void memory_arithmetic(const struct memory_plan *plan, char *text, size_t n_bytes)
{
    if (plan->rule) {
        (plan->of_free ? arithmetic_of_static : arithmetic_of_engine)(plan, text, n_bytes);
        return;
    }
    if (plan->of_free) {
        arithmetic_of_free(plan, text, n_bytes);
        return;
    }
    snprintf(text, n_bytes,
             "%.2f GiB x %g = %.2f, less %.2f weights, %.2f activations, %.2f workspace "
             "leaves %.2f GiB for KV blocks of %.3f MiB",
             (double)plan->gpu_bytes / gib, plan->utilization, (double)plan->usable_bytes / gib,
             (double)plan->weight_bytes / gib, (double)plan->activation_bytes / gib,
             (double)plan->workspace_bytes / gib, (double)plan->kv_bytes / gib,
             (double)plan->block_bytes / gib * 1024);
}

static int check_options(const struct memory_options *options, struct ifl_error *error)
{
    const int32_t block_tokens = options->block_tokens;
    const double utilization = options->utilization;
    if (block_tokens < 1 || block_tokens > MAX_BLOCK_TOKENS)
        return ifl_fail(error, IFL_E_INPUT, "block_tokens is %d, expected a number from 1 to %d",
                        block_tokens, MAX_BLOCK_TOKENS);
    if (!(utilization > 0 && utilization <= 1))
        return ifl_fail(error, IFL_E_INPUT,
                        "memory utilization is %g, expected a number above 0 and up to 1",
                        utilization);
    return 0;
}

int32_t memory_blocks(int64_t kv_bytes, int64_t block_bytes)
{
    const int64_t n = kv_bytes > 0 ? kv_bytes / block_bytes : 0;
    return (int32_t)ifl_min(n, INT32_MAX);
}

int32_t memory_end(const struct memory_plan *plan, enum memory_end end)
{
    const double sds = 1.6448536269514722; /* the 95th percentile of a standard normal */
    const double bytes = sds * (double)plan->error_bytes;
    const double blocks =
        plan->n_blocks + (end == MEMORY_HIGH ? bytes : -bytes) / (double)plan->block_bytes;
    return (int32_t)fmin(fmax(blocks, 0), INT32_MAX);
}

int memory_judge(const struct model *model, const struct hardware *hardware,
                 const struct memory_plan *plan, struct ifl_error *error)
{
    char why[MEMORY_TEXT_BYTES];
    if (plan->n_blocks > 0)
        return 0;
    memory_arithmetic(plan, why, sizeof why);
    return ifl_fail(error, IFL_E_INPUT,
                    "%s does not fit on %s at parallel.tensor %d: %s, expected room for one",
                    model->name, hardware->name, plan->tensor_parallel, why);
}

int memory_start_plan(const struct model *model, const struct memory_options *options,
                      double gpu_bytes, struct memory_plan *plan, struct ifl_error *error)
{
    const int32_t tensor_parallel = options->tensor_parallel;
    if (model_check_parallel(model, tensor_parallel, error) || check_options(options, error))
        return IFL_E_INPUT;
    *plan = (struct memory_plan){
        .block_tokens = options->block_tokens * ifl_max(options->context, 1),
        .tensor_parallel = tensor_parallel,
        .utilization = options->utilization,
        .gpu_bytes = (int64_t)gpu_bytes,
        .usable_bytes = (int64_t)(gpu_bytes * options->utilization),
        .block_bytes = options->block_tokens * model_kv_bytes_per_token(model, tensor_parallel),
        .encoder =
            model->vision.kind == VISION_NONE ? MEMORY_ENCODER_NONE : MEMORY_ENCODER_LEFT_OUT,
    };
    const struct model_groups groups = model_kv_groups(model);
    if (options->groups && groups.n_window > 0) {
        plan->group_layers = groups.layers;
        plan->n_groups = 1 + groups.n_window;
        plan->block_bytes =
            plan->block_bytes * groups.layers / (model->layers - model->state_layers);
    }
    return 0;
}

/* Fills the plan except for what is left for K/V. */
static int weigh(const struct model *model, const struct platform *platform,
                 const struct memory_options *options, struct memory_plan *plan,
                 struct ifl_error *error)
{
    const struct deployment_memory *memory = &platform->deployment.memory;
    if (memory_start_plan(model, options, platform->hardware.gpu.memory_gib * gib, plan, error))
        return IFL_E_INPUT;
    plan->weight_bytes = model_weight_bytes(model, plan->tensor_parallel);
    plan->activation_bytes =
        activation_bytes(model, memory->activation_tokens, plan->tensor_parallel);
    plan->workspace_bytes = (int64_t)(memory->workspace_gib * gib);
    return 0;
}

static int64_t left_bytes(const struct memory_plan *plan)
{
    return plan->usable_bytes - plan->weight_bytes - plan->activation_bytes - plan->workspace_bytes;
}

int memory_plan(const struct model *model, const struct platform *platform,
                const struct memory_options *options, struct memory_plan *plan,
                struct ifl_error *error)
{
    if (weigh(model, platform, options, plan, error))
        return IFL_E_INPUT;
    plan->kv_bytes = left_bytes(plan);
    plan->n_blocks = memory_blocks(plan->kv_bytes, plan->block_bytes);
    return memory_judge(model, &platform->hardware, plan, error);
}

int memory_plan_free_share(const struct model *model, const struct platform *platform,
                           const struct memory_options *options, struct memory_plan *plan,
                           struct ifl_error *error)
{
    if (weigh(model, platform, options, plan, error))
        return IFL_E_INPUT;
    const int64_t token_bytes = plan->block_bytes / plan->block_tokens;
    plan->of_free = true;
    plan->usable_bytes = plan->gpu_bytes;
    plan->kv_bytes = (int64_t)((double)left_bytes(plan) * plan->utilization);
    const int64_t n_tokens = plan->kv_bytes > 0 ? plan->kv_bytes / token_bytes : 0;
    const int64_t n_blocks = (n_tokens + plan->block_tokens - 1) / plan->block_tokens;
    plan->n_blocks = (int32_t)ifl_min(n_blocks, INT32_MAX);
    return memory_judge(model, &platform->hardware, plan, error);
}

int memory_plan_whole_requests(const struct model *model, const struct platform *platform,
                               const struct memory_options *options, int32_t max_tokens,
                               struct memory_plan *plan, struct ifl_error *error)
{
    if (memory_start_plan(model, options, ceil(platform->hardware.gpu.memory_gib) * gib, plan,
                          error))
        return IFL_E_INPUT;
    const int64_t token_bytes = plan->block_bytes / plan->block_tokens;
    plan->weight_bytes = model_matrices_bytes(model, plan->tensor_parallel);
    plan->kv_bytes = plan->usable_bytes - plan->weight_bytes;
    const int64_t n_requests = plan->kv_bytes > 0 ? plan->kv_bytes / (token_bytes * max_tokens) : 0;
    const int64_t n_blocks = n_requests * (max_tokens / plan->block_tokens);
    plan->n_blocks = (int32_t)ifl_min(n_blocks, INT32_MAX);
    return memory_judge(model, &platform->hardware, plan, error);
}

void memory_print(const struct memory_plan *plan, FILE *out)
{
    char why[MEMORY_TEXT_BYTES];
    memory_arithmetic(plan, why, sizeof why);
    fprintf(out, "KV memory of each of %d GPU%s: %s:\n%d blocks of %d tokens",
            plan->tensor_parallel, plan->tensor_parallel == 1 ? "" : "s", why, plan->n_blocks,
            plan->block_tokens);
    if (plan->n_groups > 1)
        fprintf(out, " in %d layers; a sequence has some in each of %d groups of layers",
                plan->group_layers, plan->n_groups);
    else
        fprintf(out, ", %lld tokens", (long long)plan->n_blocks * plan->block_tokens);
    if (plan->error_bytes > 0)
        fprintf(out, "; 90%% of counts lie from %d to %d", memory_end(plan, MEMORY_LOW),
                memory_end(plan, MEMORY_HIGH));
    fprintf(out, ".\n");
    if (plan->encoder == MEMORY_ENCODER_LEFT_OUT)
        fprintf(out, "The image encoder of this model is not counted: there are fewer blocks.\n");
}
