#include "fit/adapters.h"

#include <stdbool.h>
#include <string.h>

#include "fit/calibration.h"

static const double max_count = 1e12;

const char *adapter_text(const struct adapter_row *row, int i)
{
    return table_cell(row->table, row->row, (size_t)row->columns[i]);
}

double adapter_number(const struct adapter_row *row, int i, double min, int *code,
                      struct ifl_error *error)
{
    double value = 0;
    if (*code == 0)
        *code = table_number(row->table, row->row, (size_t)row->columns[i], min, max_count, &value,
                             error);
    return value;
}

static double ms_of(const struct adapter_row *row, int i, int *code, struct ifl_error *error)
{
    return adapter_number(row, i, 1e-9, code, error) * 1e-3;
}

static bool is_16_bit(const char *dtype)
{
    return strcmp(dtype, "bfloat16") == 0 || strcmp(dtype, "float16") == 0 ||
           strcmp(dtype, "half") == 0;
}

static void name_group(struct fit_sample *sample, double a, double b)
{
    snprintf(sample->group, sizeof sample->group, "%.0f/%.0f", a, b);
}

/* The operation for two, four or eight GPUs of one machine; a profile has no other all-reduces. */
static enum fit_op allreduce_op(double n_gpus, bool eager)
{
    const enum fit_op first = eager ? FIT_ALLREDUCE_2_EAGER : FIT_ALLREDUCE_2;
    for (int i = 0; i < 3; i++)
        if (n_gpus == 2 << i)
            return first + i;
    return FIT_NONE;
}

/* ---- Vidur: microsoft/vidur, data/profiling; times in ms, 16-bit elements ---- */

static int vidur_linear(const struct adapter_row *row, struct fit_sample *sample,
                        struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_GEMM, .element_bytes = 2};
    sample->m = adapter_number(row, 3, 1, &code, error);
    sample->n = adapter_number(row, 4, 1, &code, error);
    sample->k = adapter_number(row, 5, 1, &code, error);
    sample->measured_s = ms_of(row, 6, &code, error);
    snprintf(sample->group, sizeof sample->group, "%.40s", adapter_text(row, 0));
    snprintf(sample->layer, sizeof sample->layer, "%.30s/%.4s/%.16s", adapter_text(row, 0),
             adapter_text(row, 1), adapter_text(row, 3));
    return code;
}

/* Elements that an unfused kernel reads and writes for one token; negative: no such kernel. */
static double vidur_elements(const char *op, double d_model, double heads, double d_head,
                             double ffn_columns, bool gated)
{
    if (strcmp(op, "emb") == 0 || strstr(op, "layernorm"))
        return 2 * d_model;
    if (strcmp(op, "attn_rope") == 0)
        return 2 * heads * d_head;
    if (strcmp(op, "mlp_act") == 0)
        return (gated ? 3 : 2) * ffn_columns;
    return strcmp(op, "add") == 0 ? 3 * d_model : -1;
}

static int vidur_elementwise(const struct adapter_row *row, struct fit_sample *sample,
                             struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_ELEMENTWISE};
    const double tp = adapter_number(row, 1, 1, &code, error),
                 m = adapter_number(row, 3, 1, &code, error);
    const double d = adapter_number(row, 4, 1, &code, error),
                 h = adapter_number(row, 5, 1, &code, error);
    const double g = adapter_number(row, 6, 1, &code, error),
                 f = adapter_number(row, 7, 1, &code, error);
    const bool gated = adapter_number(row, 8, 0, &code, error) > 0;
    sample->measured_s = ms_of(row, 9, &code, error);
    if (code)
        return code;
    const double elements =
        vidur_elements(adapter_text(row, 2), d, (h + g) / tp, d / h, f / tp, gated);
    sample->bytes = 2 * m * elements;
    if (elements < 0)
        sample->op = FIT_NONE;
    snprintf(sample->group, sizeof sample->group, "%.40s", adapter_text(row, 0));
    return 0;
}

/* Four columns from `first` on: the heads and the time. */
static void read_heads(const struct adapter_row *row, int first, struct fit_sample *sample,
                       int *code, struct ifl_error *error)
{
    sample->q_heads = adapter_number(row, first, 1, code, error);
    sample->kv_heads = adapter_number(row, first + 1, 1, code, error);
    sample->d_head = adapter_number(row, first + 2, 1, code, error);
    sample->measured_s = ms_of(row, first + 3, code, error);
}

static int vidur_decode(const struct adapter_row *row, struct fit_sample *sample,
                        struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_DECODE, .new_tokens = 1, .element_bytes = 2};
    sample->n_seqs = adapter_number(row, 0, 1, &code, error);
    sample->context_tokens = adapter_number(row, 1, 0, &code, error);
    read_heads(row, 2, sample, &code, error);
    snprintf(sample->group, sizeof sample->group, "kv %.0f", sample->context_tokens);
    return code;
}

static int vidur_prefill(const struct adapter_row *row, struct fit_sample *sample,
                         struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_PREFILL, .n_seqs = 1, .element_bytes = 2};
    sample->new_tokens = adapter_number(row, 0, 1, &code, error);
    sample->context_tokens = adapter_number(row, 1, 0, &code, error);
    read_heads(row, 2, sample, &code, error);
    snprintf(sample->group, sizeof sample->group, "chunk %.0f", sample->new_tokens);
    return code;
}

/* All-reduces without CUDA graphs. Rows over several machines are skipped. */
static int vidur_allreduce(const struct adapter_row *row, struct fit_sample *sample,
                           struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_NONE};
    const double n_gpus = adapter_number(row, 0, 1, &code, error);
    if (n_gpus == adapter_number(row, 1, 1, &code, error))
        sample->op = allreduce_op(n_gpus, true);
    sample->bytes = adapter_number(row, 2, 1, &code, error);
    sample->measured_s = ms_of(row, 3, &code, error);
    snprintf(sample->group, sizeof sample->group, "%.0f B", sample->bytes);
    return code;
}

static int vidur_send_recv(const struct adapter_row *row, struct fit_sample *sample,
                           struct ifl_error *error)
{
    int code = vidur_allreduce(row, sample, error);
    const bool one_machine = adapter_number(row, 1, 1, &code, error) > 1;
    sample->op = one_machine ? FIT_SEND_RECV : FIT_NONE;
    return code;
}

/* ---- AIConfigurator: ai-dynamo/aiconfigurator, systems/data; times in ms ---- */

static int aic_gemm(const struct adapter_row *row, struct fit_sample *sample,
                    struct ifl_error *error)
{
    int code = 0;
    const char *dtype = adapter_text(row, 0);
    *sample = (struct fit_sample){.element_bytes = 2};
    sample->op = is_16_bit(dtype)              ? FIT_GEMM
                 : strcmp(dtype, "fp8") == 0   ? FIT_GEMM_FP8
                 : strcmp(dtype, "nvfp4") == 0 ? FIT_GEMM_NVFP4
                                               : FIT_NONE;
    sample->m = adapter_number(row, 1, 1, &code, error);
    sample->n = adapter_number(row, 2, 1, &code, error);
    sample->k = adapter_number(row, 3, 1, &code, error);
    sample->measured_s = ms_of(row, 4, &code, error);
    name_group(sample, sample->n, sample->k);
    return code;
}

/* A layer of experts on one GPU, with a rank's columns of each. The number of experts that a row
 * reaches is known where its load is balanced, with one token, and with many. */
static int aic_experts(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error)
{
    enum { MANY = 8 };
    int code = 0;
    const char *dtype = adapter_text(row, 0), *load = adapter_text(row, 8);
    *sample = (struct fit_sample){.op = FIT_NONE, .element_bytes = 2};
    sample->m = adapter_number(row, 1, 1, &code, error);
    sample->n = adapter_number(row, 2, 1, &code, error);
    const double columns = adapter_number(row, 3, 1, &code, error);
    sample->experts_per_token = adapter_number(row, 4, 1, &code, error);
    sample->n_experts = adapter_number(row, 5, 1, &code, error);
    sample->k = columns / adapter_number(row, 6, 1, &code, error);
    const double n_ranks = adapter_number(row, 7, 1, &code, error);
    sample->measured_s = ms_of(row, 9, &code, error);
    const bool known = strcmp(load, "balanced") == 0 || sample->m == 1 ||
                       sample->m * sample->experts_per_token >= MANY * sample->n_experts;
    if (known && n_ranks == 1)
        sample->op = is_16_bit(dtype)                    ? FIT_EXPERTS
                     : strcmp(dtype, "fp8_block") == 0   ? FIT_EXPERTS_FP8
                     : strcmp(dtype, "w4a16_mxfp4") == 0 ? FIT_EXPERTS_MXFP4
                     : strcmp(dtype, "nvfp4") == 0       ? FIT_EXPERTS_NVFP4
                                                         : FIT_NONE;
    snprintf(sample->group, sizeof sample->group, "%.0f/%.0f/%.0f", sample->n, columns,
             sample->n_experts);
    return code;
}

/* The gated delta rule on one GPU, without its convolution; states are of 32 bits. */
static int aic_delta(const struct adapter_row *row, struct fit_sample *sample,
                     struct ifl_error *error)
{
    int code = 0;
    const bool is_prompt = strcmp(adapter_text(row, 1), "context") == 0;
    const bool is_rule = strstr(adapter_text(row, 0), "gated_delta_rule") != NULL;
    *sample = (struct fit_sample){.op = is_rule ? FIT_DELTA : FIT_NONE, .element_bytes = 4};
    sample->n_seqs = adapter_number(row, 2, 1, &code, error);
    const double n_tokens = adapter_number(row, 3, 1, &code, error);
    sample->new_tokens = is_prompt ? n_tokens : 0;
    sample->kv_heads = adapter_number(row, 4, 1, &code, error);
    sample->k = adapter_number(row, 5, 1, &code, error);
    sample->n = adapter_number(row, 6, 1, &code, error);
    sample->measured_s = ms_of(row, 7, &code, error);
    snprintf(sample->group, sizeof sample->group, "%.0f heads", sample->kv_heads);
    return code;
}

/* Prefill of whole prompts. */
static int aic_context(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error)
{
    int code = 0;
    const bool plain = is_16_bit(adapter_text(row, 0)) && is_16_bit(adapter_text(row, 1));
    *sample = (struct fit_sample){.op = plain ? FIT_PREFILL : FIT_NONE, .element_bytes = 2};
    sample->n_seqs = adapter_number(row, 2, 1, &code, error);
    sample->new_tokens = adapter_number(row, 3, 1, &code, error);
    read_heads(row, 4, sample, &code, error);
    name_group(sample, sample->q_heads, sample->kv_heads);
    return code;
}

/* `step` is the length of the context before the new token. */
static int aic_generation(const struct adapter_row *row, struct fit_sample *sample,
                          struct ifl_error *error)
{
    const int code = aic_context(row, sample, error);
    if (sample->op == FIT_PREFILL)
        sample->op = FIT_DECODE;
    sample->context_tokens = sample->new_tokens;
    sample->new_tokens = 1;
    return code;
}

/* Messages are counted in elements of two bytes. */
static int aic_allreduce(const struct adapter_row *row, struct fit_sample *sample,
                         struct ifl_error *error)
{
    int code = 0;
    *sample = (struct fit_sample){.op = FIT_NONE};
    const double n_gpus = adapter_number(row, 2, 1, &code, error);
    sample->bytes = 2 * adapter_number(row, 3, 1, &code, error);
    sample->measured_s = ms_of(row, 4, &code, error);
    if (is_16_bit(adapter_text(row, 1)))
        sample->op = allreduce_op(n_gpus, strstr(adapter_text(row, 0), "eager") != NULL);
    snprintf(sample->group, sizeof sample->group, "%.0f B", sample->bytes);
    return code;
}

/* ---- all of them ---- */

static const struct adapter all[] = {
    {"inflight calibrate",
     "the sheet of an engine on some machine; without --like its ceilings are the peaks",
     CALIBRATION_COLUMNS, NULL, calibration_sample},
    {"vidur linear",
     "the four products of a layer; data/profiling/compute of microsoft/vidur",
     {"model", "tp", "op", "m", "n", "k", "median_ms"},
     NULL,
     vidur_linear},
    {"vidur elementwise",
     "norms, rotary embedding, activations of the same",
     {"model", "tp", "op", "m", "n_embd", "n_head", "n_kv_head", "n_ffn", "gated", "median_ms"},
     NULL,
     vidur_elementwise},
    {"vidur decode",
     "attention of one token a sequence",
     {"batch", "kv_len", "n_q_head", "n_kv_head", "head_dim", "median_ms"},
     NULL,
     vidur_decode},
    {"vidur prefill",
     "attention of one chunk",
     {"chunk", "kv_before", "n_q_head", "n_kv_head", "head_dim", "median_ms"},
     NULL,
     vidur_prefill},
    {"vidur all-reduce",
     "in files with all_reduce in their name; eager",
     {"num_workers", "devices_per_node", "size_bytes", "median_ms"},
     "all_reduce",
     vidur_allreduce},
    {"vidur send-recv",
     "in files with send_recv in their name; eager",
     {"num_workers", "devices_per_node", "size_bytes", "median_ms"},
     "send_recv",
     vidur_send_recv},
    {"aiconfigurator gemm",
     "products; systems/data of ai-dynamo/aiconfigurator",
     {"gemm_dtype", "m", "n", "k", "latency"},
     NULL,
     aic_gemm},
    {"aiconfigurator experts",
     "fused layers of experts, of 16 bits, of fp8 in blocks, of mxfp4 and of nvfp4",
     {"moe_dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size",
      "moe_ep_size", "distribution", "latency"},
     NULL,
     aic_experts},
    {"aiconfigurator latent context",
     "modules of DeepSeek-V3's attention, of whole prompts",
     {"kv_cache_dtype", "gemm_type", "num_heads", "batch_size", "isl", "latency"},
     "mla_context",
     aic_latent_context},
    {"aiconfigurator latent generation",
     "the same of one token a sequence",
     {"kv_cache_dtype", "gemm_type", "num_heads", "batch_size", "step", "latency"},
     "mla_generation",
     aic_latent_generation},
    {"aiconfigurator sparse context",
     "modules of DeepSeek-V3.2's attention, of whole prompts",
     {"kv_cache_dtype", "gemm_type", "num_heads", "batch_size", "isl", "latency"},
     "dsa_context",
     aic_sparse_context},
    {"aiconfigurator sparse generation",
     "the same of one token a sequence",
     {"kv_cache_dtype", "gemm_type", "num_heads", "batch_size", "step", "latency"},
     "dsa_generation",
     aic_sparse_generation},
    {"aiconfigurator gated delta rule",
     "layers with states, of prompts and of one token a sequence",
     {"kernel_source", "phase", "batch_size", "seq_len", "num_v_heads", "head_k_dim", "head_v_dim",
      "latency"},
     NULL,
     aic_delta},
    {"aiconfigurator context attention",
     "prefill of whole prompts",
     {"attn_dtype", "kv_cache_dtype", "batch_size", "isl", "num_heads", "num_key_value_heads",
      "head_dim", "latency"},
     NULL,
     aic_context},
    {"aiconfigurator generation attention",
     "decode of sequences of equal length",
     {"attn_dtype", "kv_cache_dtype", "batch_size", "step", "num_heads", "num_key_value_heads",
      "head_dim", "latency"},
     NULL,
     aic_generation},
    {"aiconfigurator all-reduce",
     "the engine's own kernels, in graphs and eager",
     {"kernel_source", "allreduce_dtype", "num_gpus", "message_size", "latency"},
     NULL,
     aic_allreduce},
    {"llmservingsim attention",
     "of Llama-3.1-8B on one GPU; prefill, decode and both",
     {"prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"},
     NULL,
     llmservingsim_attention},
    {"llmservingsim dense",
     "the other operations of its layers, by tokens",
     {"layer", "tokens", "time_us"},
     NULL,
     llmservingsim_dense},
    {"llmservingsim per sequence",
     "its LM head, by sequences",
     {"layer", "sequences", "time_us"},
     NULL,
     llmservingsim_per_sequence},
    {"aiconfigurator steps",
     "forward passes of Qwen3-32B; the file's name has _tp and a number",
     {"sum_prefill_tokens", "num_prefill_requests", "sum_prefill_kv_tokens", "var_prefill_length",
      "num_decode_requests", "sum_decode_kv_tokens", "latency_ms"},
     "_tp",
     aic_steps},
    {0},
};

const struct adapter *adapters(void)
{
    return all;
}

static bool bind_columns(const struct adapter *adapter, const struct table *table,
                         int columns[ADAPTER_MAX_COLUMNS])
{
    for (int i = 0; i < ADAPTER_MAX_COLUMNS && adapter->columns[i]; i++)
        if ((columns[i] = table_column(table, adapter->columns[i])) < 0)
            return false;
    return !adapter->file_has || strstr(table->path, adapter->file_has);
}

const struct adapter *adapter_of(const struct table *table, struct ifl_error *error)
{
    int columns[ADAPTER_MAX_COLUMNS];
    for (const struct adapter *adapter = all; adapter->name; adapter++)
        if (bind_columns(adapter, table, columns))
            return adapter;
    ifl_fail_at(error, table->path, 1, 0,
                "no known table has the columns \"%.40s\" ... \"%.40s\", expected those of a table "
                "that inflight fit --tables lists",
                table_name(table, 0), table_name(table, table->n_columns - 1));
    return NULL;
}

int adapter_read(const struct adapter *adapter, const struct table *table,
                 struct fit_sample *samples, struct ifl_error *error)
{
    int columns[ADAPTER_MAX_COLUMNS];
    bind_columns(adapter, table, columns);
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct adapter_row row = {table, columns, i};
        const int code = adapter->sample(&row, &samples[i], error);
        if (code)
            return code;
        samples[i].row = i;
    }
    return 0;
}
