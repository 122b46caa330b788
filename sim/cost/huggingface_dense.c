/* Reads dense models with gated MLPs: what they have in addition to Llama's parts, each according
 * to its configuration and modeling files in transformers, or in the checkpoint's folder. */
#include <jansson.h>
#include <string.h>

#include "cost/huggingface_kinds.h"
#include "inflight/minmax.h"

/* ---- parts ---- */

void hf_add_to_layers(struct model *model, int64_t n)
{
    model->other_parameters += model->layers * n;
}

void hf_share_norm(struct model *model)
{
    hf_add_to_layers(model, -model_norm_parameters(model, model->d_model));
}

void hf_widen_qk_norm(struct model *model)
{
    const int64_t d_head =
        model->d_head > 0 ? model->d_head : model->d_model / ifl_max(model->n_q_heads, 1);
    model->qk_norm = true;
    hf_add_to_layers(model, (model->n_q_heads + model->n_kv_heads) * d_head -
                                2 * model_norm_parameters(model, d_head));
}

void hf_read_window(struct ifl_hf_config *config, struct model *model)
{
    const int32_t tokens = ifl_hf_count(config, "sliding_window", 0, IFL_MODEL_MAX_TOKENS);
    const int32_t layers =
        ifl_hf_layers(config, "sliding_attention", model->layers, tokens > 0 ? model->layers : 0);
    if (tokens == 0 || layers == 0 || tokens >= model->max_model_len)
        return;
    model->window_tokens = tokens;
    model->window_layers = layers;
}

/* ---- Command-R, Command-A ---- */

/* modeling_cohere.py: LayerNorm without a bias, which counts as RMSNorm does. */
void hf_read_cohere(struct ifl_hf_config *config, struct model *model)
{
    hf_read_llama_like(config, model);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
    hf_share_norm(model);
    if (ifl_hf_flag(config, "use_qk_norm", false))
        hf_widen_qk_norm(model);
}

void hf_read_cohere2(struct ifl_hf_config *config, struct model *model)
{
    hf_read_cohere(config, model);
    hf_read_windows(config, model, 4096,
                    ifl_hf_count(config, "sliding_window_pattern", 4, IFL_MODEL_MAX_LAYERS));
}

/* ---- GLM-4 ---- */

void hf_read_glm(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 128);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    if (ifl_hf_flag(config, "attention_bias", true))
        model->attention_bias = MODEL_BIAS_QKV;
}

void hf_read_glm4(struct ifl_hf_config *config, struct model *model)
{
    hf_read_glm(config, model);
    model->branch_norms = true;
}

/* configuration_chatglm.py of THUDM/glm-4-9b-chat and chatglm3-6b: the same as glm, with keys of
 * other names. */
void hf_read_chatglm(struct ifl_hf_config *config, struct model *model)
{
    model->layers = hf_need(config, "num_layers", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "hidden_size", IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads = hf_need(config, "num_attention_heads", IFL_MODEL_MAX_HEADS);
    if (ifl_hf_flag(config, "multi_query_attention", false))
        model->n_kv_heads = hf_need(config, "multi_query_group_num", IFL_MODEL_MAX_HEADS);
    model->d_head = hf_need(config, "kv_channels", IFL_MODEL_MAX_D_HEAD);
    model->d_ffn = hf_need(config, "ffn_hidden_size", IFL_MODEL_MAX_D_FFN);
    model->vocab = hf_need(config, "padded_vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "seq_length", IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
    if (ifl_hf_flag(config, "add_qkv_bias", false))
        model->attention_bias = MODEL_BIAS_QKV;
    if (ifl_hf_flag(config, "add_bias_linear", false) || !ifl_hf_flag(config, "rmsnorm", true))
        hf_refuse(config, "add_bias_linear is true or rmsnorm false", "false and true");
}

/* ---- Llama's, with biases of other names ---- */

static void set_biases(struct ifl_hf_config *config, struct model *model, const char *key,
                       bool otherwise)
{
    if (!ifl_hf_flag(config, key, otherwise))
        return;
    model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
    model->mlp_bias = true;
}

/* configuration_internlm2.py of internlm/internlm2_5-7b-chat: biases of attention alone. */
void hf_read_internlm2(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    if (ifl_hf_flag(config, "bias", true))
        model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
}

/* configuration_internlm3.py of internlm/internlm3-8b-instruct. */
void hf_read_internlm3(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 128);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    set_biases(config, model, "bias", false);
    const bool qkv = ifl_hf_flag(config, "qkv_bias", false);
    if (qkv && !model->mlp_bias)
        model->attention_bias = MODEL_BIAS_QKV;
    else if (!qkv && model->mlp_bias)
        hf_refuse(config, "bias is true without qkv_bias", "both or neither");
}

void hf_read_ernie4_5(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 128);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
    set_biases(config, model, "use_bias", false);
}

/* ---- others ---- */

/* configuration_exaone.py: older files have num_layers. */
void hf_read_exaone(struct ifl_hf_config *config, struct model *model)
{
    hf_rename(config, config->root, "num_layers", "num_hidden_layers");
    hf_read_llama_like(config, model);
}

/* modeling_exaone4.py: norms behind attention and MLP in place of those before them. A pattern is a
 * word such as LLLG, of layers with a window and without, or a number. */
void hf_read_exaone4(struct ifl_hf_config *config, struct model *model)
{
    const char *word = ifl_hf_text(config->root, "sliding_window_pattern");
    const size_t n = strlen(word);
    const bool is_known =
        n > 0 && n <= IFL_MODEL_MAX_LAYERS && strspn(word, "L") == n - 1 && word[n - 1] == 'G';
    hf_read_grouped(config, model);
    model->qk_norm = true;
    if (!ifl_hf_value(config->root, "sliding_window"))
        return;
    if (*word && !is_known)
        ifl_hf_fail(config, "sliding_window_pattern",
                    ifl_hf_value(config->root, "sliding_window_pattern"),
                    "a number, or letters L that end with a G");
    hf_read_windows(config, model, 0,
                    is_known
                        ? (int32_t)n
                        : ifl_hf_count(config, "sliding_window_pattern", 4, IFL_MODEL_MAX_LAYERS));
}

/* modeling_hunyuan_v1_dense.py: norms of queries and keys, unless the file says otherwise. */
void hf_read_hunyuan(struct ifl_hf_config *config, struct model *model)
{
    hf_read_llama_like(config, model);
    model->qk_norm = ifl_hf_flag(config, "use_qk_norm", true);
}

/* configuration_mimo.py of XiaomiMiMo/MiMo-7B-RL: Qwen2 with a head that predicts further tokens,
 * which is none of the layers. */
void hf_read_mimo(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    if (ifl_hf_flag(config, "attention_bias", true))
        model->attention_bias = MODEL_BIAS_QKV;
    if (ifl_hf_flag(config, "use_sliding_window", false))
        hf_refuse(config, "use_sliding_window is true", "false");
}

void hf_read_ministral3(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 128);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    hf_read_window(config, model);
}

/* modeling_stablelm.py: norms of queries and keys have no bias, and a weight for each head. */
void hf_read_stablelm(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    model->norm = MODEL_LAYERNORM;
    if (ifl_hf_flag(config, "use_qkv_bias", false))
        model->attention_bias = MODEL_BIAS_QKV;
    if (ifl_hf_flag(config, "use_parallel_residual", false))
        hf_share_norm(model);
    if (ifl_hf_flag(config, "qk_layernorm", false))
        hf_widen_qk_norm(model);
}
