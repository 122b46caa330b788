/* Reads models in which part of the layers have a window of attention, a chunk or a state, and
 * their families. */
#include "cost/huggingface_kinds.h"

#include <jansson.h>
#include <string.h>

#include "inflight/minmax.h"

/* ---- windows ---- */

/* Layers of a type are all but each `period`-th one, unless layer_types names them. */
static int32_t layers_of(struct ifl_hf_config *config, const struct model *model, const char *type,
                         int32_t period)
{
    return ifl_hf_layers(config, type, model->layers,
                         model->layers - model->layers / ifl_max(period, 1));
}

void hf_read_windows(struct ifl_hf_config *config, struct model *model, int32_t otherwise,
                     int32_t period)
{
    model->window_layers = layers_of(config, model, "sliding_attention", period);
    model->window_tokens = ifl_hf_count(config, "sliding_window", otherwise, IFL_MODEL_MAX_TOKENS);
    if (model->window_layers == 0)
        model->window_tokens = 0;
}

/* modeling_gpt_oss.py: experts and the router have biases. The sinks of attention, a number a head,
 * are left out. */
void hf_read_gpt_oss(struct ifl_hf_config *config, struct model *model)
{
    const bool is_old = !ifl_hf_value(config->root, "num_experts_per_tok");
    hf_read_grouped(config, model);
    hf_read_windows(config, model, 128, 2);
    model->n_experts = ifl_hf_count(config, "num_local_experts", 128, MODEL_MAX_EXPERTS);
    model->experts_per_token = ifl_hf_count(
        config, is_old ? "experts_per_token" : "num_experts_per_tok", 4, MODEL_MAX_EXPERTS);
    model->mlp_bias = true;
    if (ifl_hf_flag(config, "attention_bias", true))
        model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
}

/* Files of Gemma leave out what its configuration class has by default. */
struct gemma_defaults {
    int32_t layers, d_model, n_q_heads, n_kv_heads, d_head, d_ffn, vocab, max_model_len;
};

static void read_gemma_shape(struct ifl_hf_config *config, struct model *model,
                             const struct gemma_defaults *of)
{
    model->layers = ifl_hf_count(config, "num_hidden_layers", of->layers, IFL_MODEL_MAX_LAYERS);
    model->d_model = ifl_hf_count(config, "hidden_size", of->d_model, IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads =
        ifl_hf_count(config, "num_attention_heads", of->n_q_heads, IFL_MODEL_MAX_HEADS);
    model->n_kv_heads =
        ifl_hf_count(config, "num_key_value_heads", of->n_kv_heads, IFL_MODEL_MAX_HEADS);
    model->d_head = ifl_hf_count(config, "head_dim", of->d_head, IFL_MODEL_MAX_D_HEAD);
    model->d_ffn = ifl_hf_count(config, "intermediate_size", of->d_ffn, IFL_MODEL_MAX_D_FFN);
    model->vocab = ifl_hf_count(config, "vocab_size", of->vocab, IFL_MODEL_MAX_VOCAB);
    model->max_model_len =
        ifl_hf_count(config, "max_position_embeddings", of->max_model_len, IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
    if (ifl_hf_flag(config, "attention_bias", false))
        model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
}

void hf_read_gemma(struct ifl_hf_config *config, struct model *model)
{
    static const struct gemma_defaults defaults = {28, 3072, 16, 16, 256, 24576, 256000, 8192};
    read_gemma_shape(config, model, &defaults);
}

void hf_read_gemma2(struct ifl_hf_config *config, struct model *model)
{
    static const struct gemma_defaults defaults = {26, 2304, 8, 4, 256, 9216, 256000, 8192};
    read_gemma_shape(config, model, &defaults);
    hf_read_windows(config, model, 4096, 2);
    model->branch_norms = true;
}

void hf_read_gemma3(struct ifl_hf_config *config, struct model *model)
{
    static const struct gemma_defaults defaults = {26, 2304, 8, 4, 256, 9216, 262208, 131072};
    read_gemma_shape(config, model, &defaults);
    hf_read_windows(config, model, 4096,
                    ifl_hf_count(config, "sliding_window_pattern", 6, IFL_MODEL_MAX_LAYERS));
    model->branch_norms = model->qk_norm = true;
}

/* Norms behind attention and MLP in place of those before them, and norms of all heads of queries
 * and keys together, a few thousand numbers a layer more than those of one head, which count here.
 */
void hf_read_olmo2(struct ifl_hf_config *config, struct model *model)
{
    hf_read_llama_like(config, model);
    model->qk_norm = true;
}

void hf_read_olmo3(struct ifl_hf_config *config, struct model *model)
{
    hf_read_olmo2(config, model);
    hf_read_windows(config, model, 4096, 4);
}

/* modeling_llama4.py: each interleave_moe_layer_step-th layer has experts and a shared one, the
 * others an MLP of intermediate_size_mlp; layers with rotary positions attend within chunks. Its
 * norms of queries and keys have no weights. */
void hf_read_llama4(struct ifl_hf_config *config, struct model *model)
{
    const int32_t step = ifl_hf_count(config, "interleave_moe_layer_step", 1, IFL_MODEL_MAX_LAYERS);
    const json_t *rope = ifl_hf_value(config->root, "no_rope_layers");
    read_gemma_shape(config, model,
                     &(struct gemma_defaults){48, 5120, 40, 8, 128, 8192, 202048, 131072});
    model->window_layers =
        layers_of(config, model, "chunked_attention",
                  ifl_hf_count(config, "no_rope_layer_interval", 4, IFL_MODEL_MAX_LAYERS));
    model->window_tokens = ifl_hf_count(config, "attention_chunk_size", 8192, IFL_MODEL_MAX_TOKENS);
    const size_t n_rope = ifl_hf_value(config->root, "layer_types") ? 0 : json_array_size(rope);
    if (n_rope > 0)
        model->window_layers = 0;
    for (size_t i = 0; i < n_rope; i++)
        model->window_layers += json_integer_value(json_array_get(rope, i)) != 0;
    if (model->window_layers == 0)
        model->window_tokens = 0;
    model->chunked = model->window_tokens > 0;
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
    model->n_experts = ifl_hf_count(config, "num_local_experts", 16, MODEL_MAX_EXPERTS);
    model->experts_per_token = ifl_hf_count(config, "num_experts_per_tok", 1, MODEL_MAX_EXPERTS);
    model->shared_experts = 1;
    model->first_dense_layers = model->layers - model->layers / ifl_max(step, 1);
    if (model->first_dense_layers > 0)
        model->d_ffn_dense =
            ifl_hf_count(config, "intermediate_size_mlp", 16384, IFL_MODEL_MAX_D_FFN);
}

/* ---- states ---- */

/* modeling_qwen3_next.py: each full_attention_interval-th layer attends, the others have a state.
 */
static void read_states(struct ifl_hf_config *config, struct model *model)
{
    model->state_layers =
        layers_of(config, model, "linear_attention",
                  ifl_hf_count(config, "full_attention_interval", 4, IFL_MODEL_MAX_LAYERS));
    model->state_k_heads = ifl_hf_count(config, "linear_num_key_heads", 16, IFL_MODEL_MAX_HEADS);
    model->state_v_heads = ifl_hf_count(config, "linear_num_value_heads", 32, IFL_MODEL_MAX_HEADS);
    model->state_k_dim = ifl_hf_count(config, "linear_key_head_dim", 128, IFL_MODEL_MAX_D_HEAD);
    model->state_v_dim = ifl_hf_count(config, "linear_value_head_dim", 128, IFL_MODEL_MAX_D_HEAD);
    model->conv_tokens = ifl_hf_count(config, "linear_conv_kernel_dim", 4, 64);
    model->attention_gate = model->qk_norm = true;
}

void hf_read_state_bytes(struct ifl_hf_config *config, struct model *model)
{
    const char *key =
        ifl_hf_value(config->root, "mamba_ssm_dtype") ? "mamba_ssm_dtype" : "mamba_ssm_cache_dtype";
    const char *type = ifl_hf_text(config->root, key);
    model->state_bytes = strcmp(type, "float32") == 0 ? 4 : 2;
    if (*type && strcmp(type, "float32") != 0 && strcmp(type, "bfloat16") != 0 &&
        strcmp(type, "float16") != 0)
        ifl_hf_fail(config, key, ifl_hf_value(config->root, key), "float32, bfloat16 or float16");
}

static void read_shared_experts(struct ifl_hf_config *config, struct model *model)
{
    model->n_experts = hf_need(config, "num_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->d_ffn_shared =
        hf_zero_or_count(config, "shared_expert_intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->shared_experts = model->d_ffn_shared > 0;
}

void hf_read_qwen3_next(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 256);
    read_states(config, model);
    hf_read_state_bytes(config, model);
    read_shared_experts(config, model);
}

void hf_read_qwen3_5(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 256);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    read_states(config, model);
    hf_read_state_bytes(config, model);
}
