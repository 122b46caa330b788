/* Tables of latent attention from ai-dynamo/aiconfigurator: one attention layer of DeepSeek-V3, or
 * of V3.2 with its indexer, including all its products, on a rank with some of the heads; latency
 * in ms. */
#include <string.h>

#include "fit/adapters.h"

#define DEEPSEEK_V3                                                                                \
    .layers = 61, .d_model = 7168, .n_q_heads = 128, .n_kv_heads = 1, .d_head = 576,               \
    .q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64,     \
    .v_head_dim = 128, .d_ffn = 18432, .vocab = 129280, .weight_bytes = 2

#define INDEXER .index_heads = 64, .index_head_dim = 128, .index_topk = 2048

/* config.json of deepseek-ai/DeepSeek-V3 and V3.2, but for their experts, which no module has. */
static const struct model in_16_bits = {.name = "deepseek-v3", DEEPSEEK_V3, .kv_bytes = 2};
static const struct model in_fp8 = {
    .name = "deepseek-v3", DEEPSEEK_V3, .kv_bytes = 2, .quantization = MODEL_FP8};
static const struct model sparse_in_16_bits[] = {
    {.name = "deepseek-v3.2", DEEPSEEK_V3, INDEXER, .kv_bytes = 2},
    {.name = "deepseek-v3.2", DEEPSEEK_V3, INDEXER, .kv_bytes = 1}};
static const struct model sparse_in_fp8[] = {
    {.name = "deepseek-v3.2", DEEPSEEK_V3, INDEXER, .kv_bytes = 2, .quantization = MODEL_FP8},
    {.name = "deepseek-v3.2", DEEPSEEK_V3, INDEXER, .kv_bytes = 1, .quantization = MODEL_FP8}};

enum { MOST_RANKS = 16 };

static int read_module(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error)
{
    int code = 0;
    const char *gemm = adapter_text(row, 1);
    *sample = (struct fit_sample){.op = FIT_LATENT};
    sample->q_heads = adapter_number(row, 2, 1, &code, error);
    sample->n_seqs = adapter_number(row, 3, 1, &code, error);
    sample->measured_s = adapter_number(row, 5, 1e-9, &code, error) * 1e-3;
    if (code)
        return code;
    sample->model = strcmp(gemm, "fp8_block") == 0 ? &in_fp8 : &in_16_bits;
    sample->tensor_parallel = (int32_t)(in_fp8.n_q_heads / sample->q_heads);
    if (sample->tensor_parallel > MOST_RANKS)
        sample->op = FIT_NONE;
    snprintf(sample->group, sizeof sample->group, "%.9s/%.0f/%.0f", gemm, sample->q_heads,
             sample->n_seqs);
    return 0;
}

static bool has_fp8_kv(const struct adapter_row *row)
{
    return strcmp(adapter_text(row, 0), "bfloat16") != 0;
}

static int read_context(const struct adapter_row *row, struct fit_sample *sample,
                        struct ifl_error *error)
{
    int code = read_module(row, sample, error);
    const double q = adapter_number(row, 4, 1, &code, error), n = sample->n_seqs;
    sample->totals = (struct ifl_step_totals){.n_tokens = (int32_t)(n * q),
                                              .n_sampled = (int32_t)n,
                                              .n_prefill_tokens = (int32_t)(n * q),
                                              .n_prefill_seqs = (int32_t)n,
                                              .prefill_q_q = (int64_t)(n * q * q),
                                              .max_prefill_kv = (int32_t)q};
    return code;
}

/* `step` is the length of the context before the new token. */
static int read_generation(const struct adapter_row *row, struct fit_sample *sample,
                           struct ifl_error *error)
{
    int code = read_module(row, sample, error);
    const double context = adapter_number(row, 4, 0, &code, error), n = sample->n_seqs;
    sample->totals = (struct ifl_step_totals){.n_tokens = (int32_t)n,
                                              .n_sampled = (int32_t)n,
                                              .n_decode_seqs = (int32_t)n,
                                              .decode_context = (int64_t)(n * (context + 1))};
    return code;
}

/* Without an indexer K/V in fp8 has other kernels. */
static void keep_latent(const struct adapter_row *row, struct fit_sample *sample)
{
    if (has_fp8_kv(row))
        sample->op = FIT_NONE;
}

int aic_latent_context(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error)
{
    const int code = read_context(row, sample, error);
    keep_latent(row, sample);
    return code;
}

int aic_latent_generation(const struct adapter_row *row, struct fit_sample *sample,
                          struct ifl_error *error)
{
    const int code = read_generation(row, sample, error);
    keep_latent(row, sample);
    return code;
}

static void make_sparse(const struct adapter_row *row, struct fit_sample *sample)
{
    if (sample->op == FIT_LATENT)
        sample->op = FIT_SPARSE;
    sample->model =
        (sample->model == &in_fp8 ? sparse_in_fp8 : sparse_in_16_bits) + has_fp8_kv(row);
}

int aic_sparse_context(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error)
{
    const int code = read_context(row, sample, error);
    make_sparse(row, sample);
    return code;
}

int aic_sparse_generation(const struct adapter_row *row, struct fit_sample *sample,
                          struct ifl_error *error)
{
    const int code = read_generation(row, sample, error);
    make_sparse(row, sample);
    return code;
}
