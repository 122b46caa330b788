#include "fit/forms.h"

#include <math.h>

#include "cost/kernels.h"
#include "cost/roofline.h"

static double predict_gemm(const struct platform *platform, const struct fit_sample *sample)
{
    return gemm_s(&platform->hardware, sample->m, sample->n, sample->k, sample->element_bytes);
}

static double predict_gemm_quantised(const struct platform *platform,
                                     const struct fit_sample *sample)
{
    const enum product_format format = sample->op == FIT_GEMM_FP8 ? PRODUCT_FP8 : PRODUCT_NVFP4;
    return gemm_in_s(&platform->hardware, format, sample->m, sample->n, sample->k);
}

/* Tables of experts have loads that are balanced or known to reach every expert. */
static double predict_experts(const struct platform *platform, const struct fit_sample *sample)
{
    const enum expert_format format = sample->op == FIT_EXPERTS_FP8     ? EXPERTS_FP8
                                      : sample->op == FIT_EXPERTS_MXFP4 ? EXPERTS_MXFP4
                                      : sample->op == FIT_EXPERTS_NVFP4 ? EXPERTS_NVFP4
                                                                        : EXPERTS_16_BIT;
    static const struct model of_format[] = {
        [EXPERTS_16_BIT] = {.weight_bytes = 2},
        [EXPERTS_FP8] = {.weight_bytes = 2, .quantization = MODEL_FP8},
        [EXPERTS_MXFP4] = {.weight_bytes = 2, .quantization = MODEL_MXFP4},
        [EXPERTS_NVFP4] = {.weight_bytes = 2, .quantization = MODEL_NVFP4}};
    const double n_picks = sample->m * sample->experts_per_token;
    const struct expert_group group = {
        .n_picks = n_picks,
        .n_experts = fmin(n_picks, sample->n_experts),
        .n_matrices = 3,
        .d_model = sample->n,
        .d_ffn = sample->k,
        .element_bytes = 2,
        .weight_bytes = model_quantized_element_bytes(&of_format[format], MODEL_PART_EXPERTS),
        .format = format,
    };
    return experts_s(&platform->hardware, &group);
}

static double predict_delta(const struct platform *platform, const struct fit_sample *sample)
{
    const bool is_prompt = sample->new_tokens > 0;
    const struct delta_shape shape = {
        .n_prompt_tokens = sample->n_seqs * sample->new_tokens,
        .n_prompts = is_prompt ? sample->n_seqs : 0,
        .n_decodes = is_prompt ? 0 : sample->n_seqs,
        .v_heads = sample->kv_heads,
        .state_bytes = sample->n * sample->k * sample->element_bytes,
    };
    return delta_s(&platform->hardware, &shape);
}

static struct attention_heads heads_of(const struct fit_sample *sample)
{
    return (struct attention_heads){sample->q_heads, sample->kv_heads, sample->d_head,
                                    sample->element_bytes};
}

static double predict_prefill(const struct platform *platform, const struct fit_sample *sample)
{
    const double n = sample->n_seqs, q = sample->new_tokens, c = sample->context_tokens;
    const double longest_kv = sample->longest_kv > 0 ? sample->longest_kv : c + q;
    const struct prefill_shape shape = {n * q, n * q * c, n * q * q, longest_kv, n};
    const struct attention_heads heads = heads_of(sample);
    return prefill_attention_s(&platform->hardware, &heads, &shape);
}

static double predict_decode(const struct platform *platform, const struct fit_sample *sample)
{
    const double n = sample->n_seqs;
    const struct decode_shape shape = {n, n * (sample->context_tokens + 1)};
    const struct attention_heads heads = heads_of(sample);
    return decode_attention_s(&platform->hardware, &heads, &shape);
}

static double predict_mixed(const struct platform *platform, const struct fit_sample *sample)
{
    const double n = sample->n_decode_seqs;
    const struct decode_shape shape = {n, n * (sample->decode_context_tokens + 1)};
    const struct attention_heads heads = heads_of(sample);
    return predict_prefill(platform, sample) +
           decode_attention_mixed_s(&platform->hardware, &heads, &shape);
}

static struct roofline_rank rank_of(const struct platform *platform,
                                    const struct fit_sample *sample)
{
    const struct parallel parallel = model_tensor_parallel(sample->tensor_parallel);
    struct roofline_rank rank;
    roofline_rank_set(&rank, sample->model, platform, &parallel, 16);
    return rank;
}

static double predict_step(const struct platform *platform, const struct fit_sample *sample)
{
    const struct roofline_rank rank = rank_of(platform, sample);
    return roofline_step_s(&rank, &sample->totals);
}

static double predict_latent(const struct platform *platform, const struct fit_sample *sample)
{
    const struct roofline_rank rank = rank_of(platform, sample);
    return roofline_latent_module_s(&rank, &sample->totals);
}

static double predict_host(const struct platform *platform, const struct fit_sample *sample)
{
    const struct model model = {
        .layers = (int32_t)sample->n_layers,
        .d_model = (int32_t)sample->d_model,
        .n_q_heads = (int32_t)sample->q_heads,
        .n_kv_heads = (int32_t)sample->kv_heads,
        .d_head = (int32_t)sample->d_head,
        .d_ffn = (int32_t)sample->d_ffn,
        .vocab = (int32_t)sample->n_vocab,
        .weight_bytes = (int32_t)sample->element_bytes,
        .kv_bytes = (int32_t)sample->element_bytes,
    };
    const struct parallel one = model_tensor_parallel(1);
    struct roofline_rank rank;
    roofline_rank_set(&rank, &model, platform, &one, 16);
    return roofline_step_s(&rank, &sample->totals);
}

static double predict_elementwise(const struct platform *platform, const struct fit_sample *sample)
{
    return elementwise_s(&platform->hardware, sample->n_launches > 0 ? sample->n_launches : 1,
                         sample->bytes);
}

static double predict_send_recv(const struct platform *platform, const struct fit_sample *sample)
{
    return send_recv_s(&platform->hardware, sample->bytes);
}

static double predict_swap(const struct platform *platform, const struct fit_sample *sample)
{
    return swap_s(&platform->hardware, sample->op == FIT_SWAP_OUT ? SWAP_OUT : SWAP_IN,
                  sample->n_seqs, sample->bytes);
}

static double predict_block_copy(const struct platform *platform, const struct fit_sample *sample)
{
    return block_copy_s(&platform->hardware, sample->n_seqs, sample->bytes);
}

static double predict_allreduce(const struct platform *platform, const struct fit_sample *sample)
{
    const bool eager = sample->op >= FIT_ALLREDUCE_2_EAGER;
    const int i = sample->op - (eager ? FIT_ALLREDUCE_2_EAGER : FIT_ALLREDUCE_2);
    const struct hardware *hardware = &platform->hardware;
    return lines_s(eager ? &hardware->allreduce_eager[i] : &hardware->allreduce[i], sample->bytes);
}

/* ---- which rows show a parameter ---- */

static bool is_one_row(const struct fit_sample *sample)
{
    return sample->m == 1;
}

static bool has_context(const struct fit_sample *sample)
{
    return sample->context_tokens > 0;
}

/* With one sequence the time for each sequence and head cannot be told from that of the launch. */
static bool has_many_seqs(const struct fit_sample *sample)
{
    return sample->n_seqs > 1;
}

static bool is_prompt(const struct fit_sample *sample)
{
    return sample->totals.n_prefill_tokens > 0;
}

static bool has_new_tokens(const struct fit_sample *sample)
{
    return sample->new_tokens > 0;
}

static bool has_no_new_tokens(const struct fit_sample *sample)
{
    return sample->new_tokens == 0;
}

static bool is_decode(const struct fit_sample *sample)
{
    return sample->totals.n_decode_seqs > 0;
}

static bool has_long_context(const struct fit_sample *sample)
{
    return sample->context_tokens + 1 > KERNELS_SPLIT_TOKENS;
}

static bool shares_no_kv_head(const struct fit_sample *sample)
{
    return sample->q_heads == sample->kv_heads;
}

#define LOG(section, name, low, high, start, negligible)                                           \
    {                                                                                              \
#name, offsetof(struct platform, hardware.section.name), low, high, start, true,           \
            negligible                                                                             \
    }
#define LINEAR(section, name, low, high, start, negligible)                                        \
    {                                                                                              \
#name, offsetof(struct platform, hardware.section.name), low, high, start, false,          \
            negligible                                                                             \
    }

/* A parameter of FIT_STEP: a step depends on several sections. */
#define IN_STEP(section, path, low, high, start, negligible)                                       \
    {                                                                                              \
        section, offsetof(struct platform, hardware.path), low, high, start, true, negligible,     \
            NULL, false                                                                            \
    }
/* A time of the host, in seconds. Older profiles have its error in microseconds, as `us_name`. */
#define HOST(name, field, us_name, low, high, start, negligible)                                   \
    {                                                                                              \
        name, offsetof(struct platform, deployment.host.field), low, high, start, true,            \
            negligible, NULL, false, us_name                                                       \
    }

#define GEMM(section)                                                                              \
    {                                                                                              \
        LOG(section, launch_us, 0.1, 1000, 5, 1), LOG(section, compute_frac, 0.01, 2, 0.75, 0),    \
            LOG(section, memory_frac, 0.01, 2, 0.75, 0), LOG(section, exponent, 1, 50, 2, 0),      \
            LINEAR(section, wave_frac, 0, 1, 0.1, 0.05),                                           \
            {"tile_frac", offsetof(struct hardware, section.tile_frac),                            \
             0,           1,                                                                       \
             0.3,         false,                                                                   \
             0.05,        NULL,                                                                    \
             true},                                                                                \
            {"vector_frac",                                                                        \
             offsetof(struct platform, hardware.section.vector_frac),                              \
             0.01,                                                                                 \
             10,                                                                                   \
             0.75,                                                                                 \
             true,                                                                                 \
             0,                                                                                    \
             is_one_row,                                                                           \
             true},                                                                                \
    }
#define EXPERTS(section)                                                                           \
    {                                                                                              \
        LOG(section, launch_us, 0.1, 1000, 30, 1), LOG(section, compute_frac, 0.01, 2, 0.5, 0),    \
            LOG(section, memory_frac, 0.01, 2, 0.8, 0), LOG(section, exponent, 1, 50, 1.5, 0.1),   \
            LOG(section, expert_us, 1e-4, 10, 0.1, 0.05),                                          \
    }
/* The rate of small messages has a large `negligible`: if they all take the same time, no rate is
 * determined. */
#define LINES(section)                                                                             \
    {                                                                                              \
        LOG(section, latency_us, 0.1, 1e4, 10, 1), LOG(section, gb_per_s, 0.1, 1e4, 150, 1e9),     \
            LOG(section, bulk_latency_us, 0.1, 1e4, 40, 10),                                       \
            LOG(section, bulk_gb_per_s, 0.1, 1e4, 150, 0),                                         \
    }
#define COLLECTIVE(of_op, name, field)                                                             \
    {                                                                                              \
        .op = of_op, .section = name, .parameters = LINES(field), .n_parameters = 4, .n_folds = 2, \
        .switch_offset = offsetof(struct platform, hardware.field.bulk_from_bytes),                \
        .predict_s = predict_allreduce                                                             \
    }

static const struct form forms[] = {
    {.op = FIT_GEMM,
     .section = "gemm",
     .parameters = GEMM(gemm),
     .n_parameters = 7,
     .n_folds = 5,
     .predict_s = predict_gemm},
    {.op = FIT_GEMM_FP8,
     .section = "gemm_fp8",
     .parameters = GEMM(gemm_fp8),
     .n_parameters = 7,
     .n_folds = 5,
     .predict_s = predict_gemm_quantised},
    {.op = FIT_GEMM_NVFP4,
     .section = "gemm_nvfp4",
     .parameters = GEMM(gemm_nvfp4),
     .n_parameters = 7,
     .n_folds = 5,
     .predict_s = predict_gemm_quantised},
    {.op = FIT_PREFILL,
     .section = "prefill",
     .parameters = {LOG(prefill, launch_us, 0.1, 1000, 10, 1),
                    LOG(prefill, compute_frac, 0.01, 2, 0.6, 0),
                    LOG(prefill, overhead_tokens, 1, 1e5, 300, 50),
                    /* Rows of whole prompts determine only its ratio to compute_frac. */
                    {"causal_frac", offsetof(struct platform, hardware.prefill.causal_frac), 0.25,
                     2, 0.6, false, 0.15, has_context, false},
                    LINEAR(prefill, tail_tiles, 0, 4, 0.3, 0.2),
                    {"head_us", offsetof(struct platform, hardware.prefill.head_us), 1e-2, 100, 3,
                     true, 0.3, has_many_seqs, false}},
     .n_parameters = 6,
     .n_folds = 5,
     .predict_s = predict_prefill},
    {.op = FIT_DECODE,
     .section = "decode",
     .parameters = {LOG(decode, launch_us, 0.1, 1000, 12, 1),
                    LOG(decode, head_us, 1e-3, 100, 1, 0.3),
                    LOG(decode, memory_frac, 0.01, 2, 0.75, 0),
                    {"split_us", offsetof(struct platform, hardware.decode.split_us), 1e-2, 100, 1,
                     true, 1, has_long_context, false},
                    {"stream_gb_per_s", offsetof(struct platform, hardware.decode.stream_gb_per_s),
                     1, 1e4, 30, true, 1, shares_no_kv_head, true}},
     .n_parameters = 5,
     .n_folds = 5,
     .predict_s = predict_decode},
    {.op = FIT_DECODE_MIXED,
     .section = "decode_mixed",
     .parameters = {{"head_us", offsetof(struct platform, hardware.decode_mixed.head_us), 1e-3, 100,
                     1, true, 0.3, NULL, true},
                    {"memory_frac", offsetof(struct platform, hardware.decode_mixed.memory_frac),
                     0.01, 20, 1.5, true, 0, NULL, true},
                    {"shared_launch_frac",
                     offsetof(struct platform, hardware.decode_mixed.shared_launch_frac), 0, 1, 0.5,
                     false, 0.1, NULL, true}},
     .n_parameters = 3,
     .n_folds = 5,
     .predict_s = predict_mixed},
    {.op = FIT_ELEMENTWISE,
     .section = "elementwise",
     .parameters = {LOG(elementwise, launch_us, 0.1, 1000, 3, 1),
                    LOG(elementwise, memory_frac, 0.01, 2, 0.7, 0)},
     .n_parameters = 2,
     .n_folds = 5,
     .predict_s = predict_elementwise},
    COLLECTIVE(FIT_ALLREDUCE_2, "allreduce_2", allreduce[0]),
    COLLECTIVE(FIT_ALLREDUCE_4, "allreduce_4", allreduce[1]),
    COLLECTIVE(FIT_ALLREDUCE_8, "allreduce_8", allreduce[2]),
    COLLECTIVE(FIT_ALLREDUCE_2_EAGER, "allreduce_2_eager", allreduce_eager[0]),
    COLLECTIVE(FIT_ALLREDUCE_4_EAGER, "allreduce_4_eager", allreduce_eager[1]),
    COLLECTIVE(FIT_ALLREDUCE_8_EAGER, "allreduce_8_eager", allreduce_eager[2]),
    {.op = FIT_SEND_RECV,
     .section = "send_recv",
     .parameters = {LOG(send_recv, latency_us, 0.1, 1e4, 20, 1),
                    LOG(send_recv, gb_per_s, 0.1, 1e4, 50, 0)},
     .n_parameters = 2,
     .n_folds = 2,
     .predict_s = predict_send_recv},
    {.op = FIT_SWAP_OUT,
     .section = "swap_out",
     .parameters = {LOG(swap_out, latency_us, 0.01, 1e4, 6, 1),
                    LOG(swap_out, gb_per_s, 0.1, 1e4, 25, 0)},
     .n_parameters = 2,
     .n_folds = 2,
     .predict_s = predict_swap},
    {.op = FIT_SWAP_IN,
     .section = "swap_in",
     .parameters = {LOG(swap_in, latency_us, 0.01, 1e4, 6, 1),
                    LOG(swap_in, gb_per_s, 0.1, 1e4, 25, 0)},
     .n_parameters = 2,
     .n_folds = 2,
     .predict_s = predict_swap},
    {.op = FIT_BLOCK_COPY,
     .section = "block_copy",
     .parameters = {LOG(block_copy, launch_us, 0.01, 1000, 2, 1),
                    LOG(block_copy, memory_frac, 0.01, 2, 0.7, 0)},
     .n_parameters = 2,
     .n_folds = 2,
     .predict_s = predict_block_copy},
    {.op = FIT_HOST,
     .section = "host",
     .parameters = {HOST("step_s", step_s, "step_us", 1e-7, 0.1, 20e-6, 10e-6),
                    HOST("seq_s", seq_s, "seq_us", 1e-7, 0.01, 10e-6, 10e-6)},
     .n_parameters = 2,
     .n_folds = 5,
     .predict_s = predict_host},
    {.op = FIT_STEP,
     .section = "step",
     .parameters = {IN_STEP("gemm.compute_frac", gemm.compute_frac, 0.01, 2, 0.75, 0),
                    IN_STEP("gemm.memory_frac", gemm.memory_frac, 0.01, 2, 0.75, 0),
                    IN_STEP("prefill.compute_frac", prefill.compute_frac, 0.01, 2, 0.5, 0),
                    IN_STEP("decode.memory_frac", decode.memory_frac, 0.01, 2, 0.75, 0),
                    HOST("host.layer_s", layer_s, "host.layer_us", 1e-7, 1e-3, 20e-6, 3e-6),
                    HOST("host.seq_s", seq_s, "host.seq_us", 1e-7, 1e-3, 10e-6, 3e-6),
                    IN_STEP("allreduce_2.latency_us", allreduce[0].latency_us, 0.1, 1000, 8, 3),
                    IN_STEP("allreduce_2.bulk_gb_per_s", allreduce[0].bulk_gb_per_s, 1, 1e4, 400,
                            0),
                    IN_STEP("decode.head_us", decode.head_us, 0.001, 100, 2, 1),
                    HOST("host.prompt_layer_s", prompt_layer_s, NULL, 1e-7, 1e-3, 10e-6, 3e-6)},
     .n_parameters = 10,
     .n_folds = 3,
     .predict_s = predict_step},
    {.op = FIT_EXPERTS,
     .section = "experts",
     .parameters = EXPERTS(experts),
     .n_parameters = 5,
     .n_folds = 5,
     .predict_s = predict_experts},
    {.op = FIT_EXPERTS_FP8,
     .section = "experts_fp8",
     .parameters = EXPERTS(experts_fp8),
     .n_parameters = 5,
     .n_folds = 5,
     .predict_s = predict_experts},
    {.op = FIT_LATENT,
     .section = "latent",
     .parameters = {LOG(latent, layer_us, 0.1, 1000, 50, 1),
                    {"token_us", offsetof(struct platform, hardware.latent.token_us), 1e-4, 10,
                     0.04, true, 0.01, is_prompt, false},
                    {"decode_us", offsetof(struct platform, hardware.latent.decode_us), 1e-4, 10,
                     0.1, true, 0.01, is_decode, false}},
     .n_parameters = 3,
     .n_folds = 5,
     .predict_s = predict_latent},
    {.op = FIT_EXPERTS_MXFP4,
     .section = "experts_mxfp4",
     .parameters = EXPERTS(experts_mxfp4),
     .n_parameters = 5,
     .n_folds = 5,
     .predict_s = predict_experts},
    {.op = FIT_EXPERTS_NVFP4,
     .section = "experts_nvfp4",
     .parameters = EXPERTS(experts_nvfp4),
     .n_parameters = 5,
     .n_folds = 5,
     .predict_s = predict_experts},
    {.op = FIT_SPARSE,
     .section = "sparse",
     .parameters = {LOG(sparse, layer_us, 0.1, 1000, 80, 1),
                    LOG(sparse, decode_us, 1e-3, 10, 0.2, 0.02),
                    {"token_us", offsetof(struct platform, hardware.sparse.token_us), 1e-4, 10, 0.1,
                     true, 0.005, is_prompt, false},
                    {"prompt_us", offsetof(struct platform, hardware.sparse.prompt_us), 1, 1e4,
                     1000, true, 1, is_prompt, false},
                    {"memory_frac", offsetof(struct platform, hardware.sparse.memory_frac), 0.05, 2,
                     0.7, true, 0, is_decode, false},
                    {"compute_frac", offsetof(struct platform, hardware.sparse.compute_frac), 0.01,
                     2, 0.6, true, 0, is_prompt, false},
                    {"index_frac", offsetof(struct platform, hardware.sparse.index_frac), 0.01, 2,
                     0.35, true, 0, is_prompt, false}},
     .n_parameters = 7,
     .n_folds = 5,
     .predict_s = predict_latent},
    {.op = FIT_DELTA,
     .section = "delta",
     .parameters = {{"launch_us", offsetof(struct platform, hardware.delta.launch_us), 0.1, 1000,
                     20, true, 0.5, has_new_tokens, false},
                    {"chain_us", offsetof(struct platform, hardware.delta.chain_us), 1e-4, 10, 0.04,
                     true, 0.001, has_new_tokens, false},
                    {"decode_us", offsetof(struct platform, hardware.delta.decode_us), 0.1, 1000, 4,
                     true, 0.5, has_no_new_tokens, false},
                    {"memory_frac", offsetof(struct platform, hardware.delta.memory_frac), 0.05, 2,
                     0.8, true, 0, has_no_new_tokens, false}},
     .n_parameters = 4,
     .n_folds = 5,
     .predict_s = predict_delta},
};

const struct form *form_of(enum fit_op op)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].op == op)
            return &forms[i];
    return NULL;
}
