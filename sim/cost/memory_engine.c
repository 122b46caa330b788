#include "cost/memory_engine.h"

#include <math.h>

#include "inflight/minmax.h"

#include "cost/collective.h"
#include "cost/memory_parts.h"

static const double gib = 1024.0 * 1024 * 1024, mib = 1024.0 * 1024;

enum {
    COUNTS_CONTEXT = 1 << 0,
    COUNTS_GRAPHS = 1 << 1,
    IS_STATIC = 1 << 2,
    IS_V0 = 1 << 3,
    HOLDS = 1 << 4,           /* activations are what the allocator has taken from the device */
    KEEPS_REDUCED = 1 << 5,   /* and inputs of all-reduces are not used again */
    ALLOCATOR_ALONE = 1 << 6, /* nothing outside of the allocator counts */
    NO_SAMPLER = 1 << 7,      /* logits of all tokens, which are not sampled */
    NULL_BLOCK = 1 << 8,      /* vllm/v1/core/block_pool.py */
    KEEPS_EXPERTS = 1 << 9,   /* their workspaces are there while it samples */
    HAS_LATENT = 1 << 10,     /* releases that compute latent attention as such */
    SORTS = 1 << 11,          /* the logits, unless FlashInfer's kernel samples */
    COUNTS_ENCODER = 1 << 12, /* of images, which the profile run computes */
    TRITON_KERNELS =
        1 << 13, /* come with the release: Hopper computes experts in mxfp4 with them */
};

static const struct engine_rule {
    const char *name;
    double logit_bytes, libraries_gib;
    unsigned flags;
} rules[] = {
    [MEMORY_VLLM_0_1] = {"vllm-0.1", 37, 0, IS_V0 | ALLOCATOR_ALONE},
    [MEMORY_VLLM_0_2_5] = {"vllm-0.2.5", 37, 0.24, IS_V0 | COUNTS_CONTEXT | HOLDS | KEEPS_REDUCED},
    [MEMORY_VLLM_0_2_6] = {"vllm-0.2.6", 37, 0.24, IS_V0 | COUNTS_CONTEXT | HOLDS},
    [MEMORY_VLLM_0_3_1] = {"vllm-0.3.1", 37, 0.24, IS_V0 | HOLDS},
    [MEMORY_VLLM_0_6_4] = {"vllm-0.6.4", 37, 0.13, IS_V0 | COUNTS_CONTEXT},
    [MEMORY_VLLM_0_6_5] = {"vllm-0.6.5", 37, 0.13, IS_V0 | HAS_LATENT},
    [MEMORY_VLLM_0_7] = {"vllm-0.7", 0, 0.13, COUNTS_CONTEXT | NO_SAMPLER | HAS_LATENT},
    [MEMORY_VLLM_0_8] = {"vllm-0.8", 37, 0.13,
                         COUNTS_CONTEXT | NULL_BLOCK | HAS_LATENT | SORTS | COUNTS_ENCODER},
    [MEMORY_VLLM_0_9_1] = {"vllm-0.9.1", 37, 0.13,
                           NULL_BLOCK | HAS_LATENT | SORTS | COUNTS_ENCODER},
    [MEMORY_VLLM_0_12] = {"vllm-0.12", 37, 0.13,
                          NULL_BLOCK | HAS_LATENT | SORTS | COUNTS_ENCODER | TRITON_KERNELS},
    [MEMORY_VLLM_0_14] = {"vllm-0.14", 37, 0.13,
                          NULL_BLOCK | KEEPS_EXPERTS | HAS_LATENT | SORTS | COUNTS_ENCODER |
                              TRITON_KERNELS},
    [MEMORY_VLLM_0_17] = {"vllm-0.17", 14.4, 0.25,
                          NULL_BLOCK | KEEPS_EXPERTS | HAS_LATENT | COUNTS_ENCODER |
                              TRITON_KERNELS},
    [MEMORY_VLLM_0_20] = {"vllm-0.20", 14.4, 0.25,
                          NULL_BLOCK | KEEPS_EXPERTS | COUNTS_GRAPHS | HAS_LATENT | COUNTS_ENCODER |
                              TRITON_KERNELS},
    [MEMORY_SGLANG] = {"sglang", 0, 0, COUNTS_CONTEXT | IS_STATIC | HAS_LATENT},
};

static const double context_gib = 0.53, rest_gib = 0.07;
/* A logit of the model's in 16 bits, in 32, masked, and its probability (FlashInfer's sampling.py,
 * top_k_top_p_sampling_from_logits). */
static const double flashinfer_logit_bytes = 14;
/* Data sheets give 600 to 1800 GB/s for NVLink, 32 to 64 for a card's PCIe. */
static const double least_nvlink_gb_per_s = 75;

bool memory_rule_profiles(enum memory_rule rule)
{
    return !(rules[rule].flags & IS_STATIC);
}

bool memory_rule_is_v0(enum memory_rule rule)
{
    return rules[rule].flags & IS_V0;
}

bool memory_rule_sorts_logits(enum memory_rule rule)
{
    return rules[rule].flags & SORTS;
}

bool memory_rule_counts_encoder(enum memory_rule rule)
{
    return rules[rule].flags & COUNTS_ENCODER;
}

bool memory_rule_has_null_block(enum memory_rule rule)
{
    return rules[rule].flags & NULL_BLOCK;
}

/* ---- activations ---- */

/* Gate and up projection side by side, or the one projection of a plain MLP. */
static double wide_columns(const struct model *model, int32_t tensor_parallel)
{
    return (model->mlp == MODEL_MLP_GATED ? 2.0 : 1.0) * model->d_ffn / tensor_parallel;
}

/* Of a layer without experts, in front of those with them. */
static double dense_layer_bytes(const struct model *model, int32_t tensor_parallel, double n_tokens)
{
    const double columns = (double)model_dense_columns(model, tensor_parallel);
    const double mlp = (model->mlp == MODEL_MLP_GATED ? 3 : 2) * columns;
    return columns > 0 ? n_tokens * model->weight_bytes * (mlp + 3.0 * model->d_model) : 0;
}

/* What latent attention has beside the hidden state and the residual when it attends in the step
 * that V0 profiles itself with (attention/backends/mla/common.py, _forward_prefill): queries, keys,
 * values that are padded to their width and an output of that width, and what keys and values are
 * cut from.
 */
static double latent_bytes(const struct model *model, int32_t tensor_parallel, double n_tokens)
{
    const double h = model_q_heads_per_rank(model, tensor_parallel);
    const double up = model->qk_nope_head_dim + model->v_head_dim;
    const double columns = h * (4.0 * model_latent_prompt(model).key + up);
    return n_tokens * model->weight_bytes * (columns + 2.0 * model->d_model);
}

/* The columns of the MLP, and n_rows rows of d_model beside them. */
static double layer_bytes(const struct model *model, int32_t tensor_parallel, double n_tokens,
                          double n_rows)
{
    const double ffn_columns = (double)model->d_ffn / tensor_parallel;
    const double mlp =
        model->n_experts > 0 ? 0 : wide_columns(model, tensor_parallel) + ffn_columns;
    return n_tokens * model->weight_bytes * (mlp + n_rows * model->d_model);
}

static double expert_bytes(const struct model *model, int32_t tensor_parallel, double n_tokens)
{
    const double d = model_expert_width(model);
    const double ffn_columns = (double)model->d_ffn / tensor_parallel;
    const double row = fmax(ffn_columns, d) + fmax(wide_columns(model, tensor_parallel), d);
    return model->n_experts > 0 ? n_tokens * model->experts_per_token * row * model->weight_bytes
                                : 0;
}

/* What is alive behind the layers, but for the hidden states: of all tokens, a rank's logits, those
 * that it gathers and those in their order. */
static double logits_bytes(const struct model *model, const struct engine_rule *rule, int32_t ranks,
                           double n_rows, bool by_flashinfer)
{
    const double copies = ranks == 1 ? 1 : 2 + 1.0 / ranks;
    const double logit_bytes = rule->flags & NO_SAMPLER ? copies * model->weight_bytes
                               : by_flashinfer          ? flashinfer_logit_bytes
                                                        : rule->logit_bytes;
    return n_rows * model->vocab * logit_bytes;
}

/* The most that is in use at a time. Up to 0.13 the workspaces of the experts are given back before
 * it samples; from 0.14 on, with modular kernels, they stay (vLLM's pull request 31052). */
static double peak_bytes(const struct model *model, const struct engine_rule *rule,
                         const struct memory_profile_run *run, struct memory_plan *plan)
{
    const int32_t ranks = plan->tensor_parallel, n_tokens = run->max_batched_tokens;
    const int32_t n_logits = rule->flags & NO_SAMPLER ? n_tokens : ifl_min(run->max_seqs, n_tokens);
    const double experts =
        expert_bytes(model, ranks, (double)n_tokens * ifl_max(run->n_data_ranks, 1));
    const bool are_kept = rule->flags & KEEPS_EXPERTS;
    const int32_t n_rows =
        model->shared_experts > 0 ? 4 : 3; /* with what shared experts have made */
    double layer = layer_bytes(model, ranks, n_tokens, n_rows) + (are_kept ? 0 : experts);
    layer = fmax(layer, dense_layer_bytes(model, ranks, n_tokens));
    if (model_is_latent(model) && rule->flags & IS_V0)
        layer = fmax(layer, latent_bytes(model, ranks, n_tokens));
    const double sampler = logits_bytes(model, rule, ranks, n_logits, run->flashinfer_sampler) +
                           (double)n_tokens * model->d_model * model->weight_bytes;
    *(rule->flags & NO_SAMPLER ? &plan->logits_tokens : &plan->sampled_seqs) =
        sampler > layer ? n_logits : 0;
    return fmax(layer, sampler) + (are_kept ? experts : 0);
}

/* What the allocator holds when the step has ended. The sampler is served from tensors that the
 * layers have left where those are large enough; its sort asks for one large piece. */
static double held_bytes(const struct model *model, const struct engine_rule *rule,
                         const struct memory_profile_run *run, struct memory_plan *plan)
{
    const double peak = peak_bytes(model, rule, run, plan);
    const int32_t ranks = plan->tensor_parallel, n_tokens = run->max_batched_tokens;
    const int32_t n_seqs = ifl_min(run->max_seqs, n_tokens);
    const double logits = (double)n_seqs * model->vocab, sort = 20 * logits;
    const double layer = layer_bytes(model, ranks, n_tokens, 3.5 + 2.5 / ranks) +
                         expert_bytes(model, ranks, n_tokens);
    const double widest = wide_columns(model, ranks) * n_tokens * model->weight_bytes *
                          ifl_max(model->experts_per_token, 1);
    const bool fits = sort <= widest;
    const double left = layer - (fits ? widest : 0);
    plan->sampled_seqs = fits ? 0 : n_seqs;
    return fmax(peak, layer + (fits ? 0 : sort) + fmax(17 * logits - left, 0));
}

/* The output of the embedding, of each attention and of each MLP. */
static double reduced_bytes(const struct model *model, double n_tokens)
{
    return (2.0 * model->layers + 1) * n_tokens * model->d_model * model->weight_bytes;
}

static void weigh_activations(const struct model *model, const struct engine_rule *rule,
                              const struct memory_profile_run *run, struct memory_plan *plan)
{
    double bytes = rule->flags & HOLDS ? held_bytes(model, rule, run, plan)
                                       : peak_bytes(model, rule, run, plan);
    if (rule->flags & KEEPS_REDUCED && plan->tensor_parallel > 1)
        bytes += reduced_bytes(model, run->max_batched_tokens);
    bytes = memory_beside_encoder(bytes, plan);
    plan->activation_bytes = (int64_t)(bytes + rest_gib * gib);
}

/* ---- CUDA graphs ---- */

/* The batch sizes 1, 2, 4, every 8th up to 256 and every 16th up to 512 (vllm/config/vllm.py,
 * _set_cudagraph_sizes) that are no larger than `most`. */
static int32_t graph_sizes(int32_t most)
{
    int32_t n = (most >= 1) + (most >= 2) + (most >= 4);
    n += ifl_min(most, 256) / 8;
    return n + (most > 256 ? (ifl_min(most, 512) - 256) / 16 : 0);
}

/* Graphs of pieces up to twice the sequences, for steps with prompts, and whole ones up to the
 * sequences. */
static int64_t graph_bytes(const struct model *model, int32_t max_seqs)
{
    const int32_t twice = 2 * ifl_min(max_seqs, 256);
    const int32_t n = graph_sizes(twice) + graph_sizes(ifl_min(max_seqs, twice));
    return (int64_t)(0.19 * gib + 0.205 * mib * n * model->layers);
}

/* ---- weights ---- */

/* vLLM has no batched products of quantised weights, and keeps W^UK and W^UV in 16 bits beside what
 * they were made of (attention/backends/mla/common.py, process_weights_after_loading). */
static int64_t absorbed_bytes(const struct model *model, const struct engine_rule *rule,
                              int32_t tensor_parallel)
{
    struct model_linear ups[MODEL_UPS];
    const struct model_linear *up = &ups[MODEL_KV_UP];
    if (model_element_bytes(model, MODEL_PART_ATTENTION) == model->weight_bytes ||
        rule->flags & IS_STATIC)
        return 0;
    model_latent_ups(model, tensor_parallel, ups);
    return model->layers * up->n * up->k * model->weight_bytes;
}

static double rounded_up(double n, double to)
{
    return ceil(n / to) * to;
}

/* Experts in mxfp4 are padded to what the kernels take (vLLM 0.11's quantization/mxfp4.py,
 * create_weights): the hidden state to a multiple of 256; a rank's columns to one of 128 with
 * Marlin, and of 256 with FlashInfer, from 10.0 on. Marlin is for capabilities below 9.0, and for
 * 9.0 where triton_kernels is not installed: it comes with vLLM since pull request 28788. */
static int64_t padded_bytes(const struct model *model, const struct platform *platform,
                            const struct engine_rule *rule, int32_t tensor_parallel)
{
    const double capability = platform->hardware.gpu.compute_capability;
    const double past_marlin = rule->flags & TRITON_KERNELS ? 9 : 10;
    const double columns = (double)model->d_ffn / tensor_parallel, hidden = model->d_model;
    const double to = capability < past_marlin ? 128 : capability < 10 ? 1 : 256;
    const double frac = rounded_up(hidden, 256) / hidden * rounded_up(columns, to) / columns;
    return (int64_t)((frac - 1) * (double)model_experts_bytes(model, tensor_parallel));
}

static int64_t weight_bytes(const struct model *model, const struct platform *platform,
                            const struct engine_rule *rule, int32_t tensor_parallel)
{
    const bool pads = model->quantization == MODEL_MXFP4 && !(rule->flags & IS_STATIC);
    return model_weight_bytes(model, tensor_parallel) +
           (pads ? padded_bytes(model, platform, rule, tensor_parallel) : 0);
}

/* ---- a block ---- */

/* V0 puts each token's latent at a multiple of 256 bytes of 16-bit elements
 * (worker/cache_engine.py, get_cache_block_size; VLLM_CUDA_MEM_ALIGN_KV_CACHE is set by default),
 * V1 does not. */
enum { ALIGNED_ELEMENTS = 128 };

static int64_t padding_bytes(const struct model *model, const struct engine_rule *rule,
                             int32_t block_tokens)
{
    const int32_t over = model->d_head % ALIGNED_ELEMENTS;
    if (!model_is_latent(model) || !(rule->flags & IS_V0) || over == 0)
        return 0;
    return (int64_t)(ALIGNED_ELEMENTS - over) * model->kv_bytes * model->layers * block_tokens;
}

static int check_latent(const struct model *model, const struct engine_rule *rule,
                        struct ifl_error *error)
{
    if (!model_is_latent(model) || rule->flags & HAS_LATENT)
        return 0;
    return ifl_fail(
        error, IFL_E_INPUT,
        "the rule %s has no latent attention, that of %s, expected one of vLLM from 0.7.1 "
        "on (vllm-0.6.5 for V0) or of SGLang",
        rule->name, model->name);
}

/* ---- collectives ---- */

static bool has_nvlink(const struct platform *platform, int32_t n_gpus)
{
    struct lines_profile lines;
    return allreduce_lines(platform, n_gpus, &lines) &&
           fmax(lines.gb_per_s, lines.bulk_gb_per_s) >= least_nvlink_gb_per_s;
}

static int64_t collective_bytes(const struct platform *platform, int32_t n_gpus)
{
    if (n_gpus == 1)
        return 0;
    return (int64_t)((has_nvlink(platform, n_gpus) ? 1.76 + 0.03 * n_gpus : 0.2) * gib);
}

/* What is outside of the tensors' allocator. */
static void weigh_outside(const struct platform *platform, const struct engine_rule *rule,
                          int32_t n_gpus, struct memory_plan *plan)
{
    if (rule->flags & ALLOCATOR_ALONE)
        return;
    const double context = rule->flags & COUNTS_CONTEXT ? context_gib : 0;
    plan->workspace_bytes = (int64_t)((rule->libraries_gib + context) * gib);
    plan->collective_bytes = collective_bytes(platform, n_gpus);
}

/* ---- the plan ---- */

static void leave(const struct engine_rule *rule, struct memory_plan *plan)
{
    const int64_t outside = plan->workspace_bytes + plan->collective_bytes;
    const bool is_static = rule->flags & IS_STATIC;
    const double memory = (double)(plan->gpu_bytes - (is_static ? outside : 0));
    plan->usable_bytes = (int64_t)(memory * plan->utilization);
    plan->kv_bytes = plan->usable_bytes - plan->weight_bytes - plan->encoder_bytes;
    if (!is_static)
        plan->kv_bytes -= plan->activation_bytes + outside + plan->graph_bytes;
}

static int64_t error_bytes(const struct memory_plan *plan)
{
    const double graphs_gib = plan->graph_bytes > 0 ? 0.3 : 0;
    return (int64_t)hypot(hypot(0.15, graphs_gib) * gib, 0.1 * (double)plan->collective_bytes);
}

static void count(const struct engine_rule *rule, struct memory_plan *plan)
{
    plan->n_blocks = memory_blocks(plan->kv_bytes, plan->block_bytes);
    if (rule->flags & NULL_BLOCK && plan->n_blocks > 0)
        plan->n_blocks--;
}

/* An engine that starts has a block, however far off the draw is. */
static void draw(const struct engine_rule *rule, double sds, struct memory_plan *plan)
{
    plan->kv_bytes += (int64_t)(sds * (double)plan->error_bytes);
    count(rule, plan);
    plan->n_blocks = ifl_max(plan->n_blocks, 1);
}

int memory_plan_engine(const struct model *model, const struct platform *platform,
                       const struct memory_options *options, enum memory_rule of,
                       const struct memory_profile_run *run, struct memory_plan *plan,
                       struct ifl_error *error)
{
    const struct engine_rule *rule = &rules[of];
    const double drawn_sds = platform->deployment.memory.drawn_sds;
    const int32_t ranks = options->tensor_parallel;
    if (check_latent(model, rule, error) ||
        memory_start_plan(model, options, platform->hardware.gpu.memory_gib * gib, plan, error))
        return IFL_E_INPUT;
    plan->rule = rule->name;
    plan->of_free = rule->flags & IS_STATIC;
    plan->weight_bytes =
        weight_bytes(model, platform, rule, ranks) + absorbed_bytes(model, rule, ranks);
    plan->block_bytes += padding_bytes(model, rule, options->block_tokens);
    weigh_outside(platform, rule, ranks * ifl_max(run->n_data_ranks, 1), plan);
    plan->graph_bytes = rule->flags & COUNTS_GRAPHS ? graph_bytes(model, run->max_seqs) : 0;
    if (memory_rule_counts_encoder(of))
        memory_weigh_encoder(model, &run->encoder, run->max_batched_tokens, plan);
    if (!(rule->flags & IS_STATIC))
        weigh_activations(model, rule, run, plan);
    leave(rule, plan);
    plan->error_bytes = error_bytes(plan);
    count(rule, plan);
    if (plan->n_blocks > 0 && drawn_sds != 0)
        draw(rule, drawn_sds, plan);
    return memory_judge(model, &platform->hardware, plan, error);
}
