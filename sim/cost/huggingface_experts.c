/* Reads models with experts in each layer, or in all layers after the first, each according to its
 * configuration and modeling files in transformers. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cost/huggingface_kinds.h"

/* A number, or a list of one a layer, which must be alike; 1 where the key is missing. */
static int32_t count_of_layers(struct ifl_hf_config *config, const char *key, int32_t max)
{
    const json_t *list = ifl_hf_value(config->root, key);
    if (!json_is_array(list))
        return ifl_hf_count(config, key, 1, max);
    const json_int_t first = json_integer_value(json_array_get(list, 0));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_integer_value(json_array_get(list, i)) != first)
            hf_refuse(config, "layers have other numbers of experts than the first", "the same");
    if (first < 1 || first > max)
        ifl_hf_fail(config, key, list, "whole numbers above 0");
    return config->code ? 1 : (int32_t)first;
}

/* modeling_qwen2_moe.py: the shared expert has a gate, d_model numbers a layer. */
void hf_read_qwen2_moe(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 0);
    if (ifl_hf_flag(config, "qkv_bias", true))
        model->attention_bias = MODEL_BIAS_QKV;
    model->n_experts = hf_need(config, "num_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->shared_experts = 1;
    model->d_ffn_shared = hf_need(config, "shared_expert_intermediate_size", IFL_MODEL_MAX_D_FFN);
    hf_add_to_layers(model, model->d_model);
    hf_need_experts_everywhere(config);
    if (ifl_hf_flag(config, "use_sliding_window", false))
        hf_refuse(config, "use_sliding_window is true", "false");
}

/* modeling_phimoe.py: LayerNorm, and a bias of the LM head. */
void hf_read_phimoe(struct ifl_hf_config *config, struct model *model)
{
    hf_read_llama_like(config, model);
    model->norm = MODEL_LAYERNORM;
    model->n_experts = ifl_hf_count(config, "num_local_experts", 16, MODEL_MAX_EXPERTS);
    model->experts_per_token = ifl_hf_count(config, "num_experts_per_tok", 2, MODEL_MAX_EXPERTS);
    hf_read_window(config, model);
    if (ifl_hf_flag(config, "lm_head_bias", false))
        model->other_parameters += model->vocab;
}

/* modeling_hunyuan.py of tencent/Hunyuan-A13B-Instruct: experts of moe_intermediate_size, shared
 * ones of intermediate_size. */
void hf_read_hunyuan_moe(struct ifl_hf_config *config, struct model *model)
{
    hf_read_hunyuan(config, model);
    model->n_experts = hf_need(config, "num_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = count_of_layers(config, "moe_topk", MODEL_MAX_EXPERTS);
    if (ifl_hf_value(config->root, "moe_intermediate_size"))
        model->d_ffn = count_of_layers(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->shared_experts = count_of_layers(config, "num_shared_expert", MODEL_MAX_EXPERTS);
    model->d_ffn_shared = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    if (!ifl_hf_flag(config, "use_mixed_mlp_moe", true))
        model->shared_experts = model->d_ffn_shared = 0;
}

/* modeling_olmoe.py: a norm of all heads of queries together, and one of those of keys. */
void hf_read_olmoe(struct ifl_hf_config *config, struct model *model)
{
    hf_read_llama_like(config, model);
    model->n_experts = ifl_hf_count(config, "num_experts", 64, MODEL_MAX_EXPERTS);
    model->experts_per_token = ifl_hf_count(config, "num_experts_per_tok", 8, MODEL_MAX_EXPERTS);
    hf_widen_qk_norm(model);
}

/* Granite 3 with experts; granitemoeshared has an MLP for all tokens beside them. */
void hf_read_granitemoe(struct ifl_hf_config *config, struct model *model)
{
    hf_read_llama_like(config, model);
    model->n_experts = hf_need(config, "num_local_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->d_ffn_shared = hf_zero_or_count(config, "shared_intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->shared_experts = model->d_ffn_shared > 0;
}

/* A count in an object of the root. */
static int32_t need_in(struct ifl_hf_config *config, const char *object, const char *key,
                       int32_t max)
{
    struct ifl_hf_config part = *config;
    part.root = json_object_get(config->root, object);
    if (!json_is_object(part.root))
        ifl_hf_fail(config, object, part.root, "an object");
    const int32_t n = config->code ? 0 : hf_need(&part, key, max);
    config->code = config->code ? config->code : part.code;
    return n;
}

/* modeling_dbrx.py: LayerNorm without a bias, which counts as RMSNorm does. */
void hf_read_dbrx(struct ifl_hf_config *config, struct model *model)
{
    model->layers = hf_need(config, "n_layers", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "d_model", IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads = hf_need(config, "n_heads", IFL_MODEL_MAX_HEADS);
    model->n_kv_heads = need_in(config, "attn_config", "kv_n_heads", IFL_MODEL_MAX_HEADS);
    model->n_experts = need_in(config, "ffn_config", "moe_num_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = need_in(config, "ffn_config", "moe_top_k", MODEL_MAX_EXPERTS);
    model->d_ffn = need_in(config, "ffn_config", "ffn_hidden_size", IFL_MODEL_MAX_D_FFN);
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "max_seq_len", IFL_MODEL_MAX_TOKENS);
}

/* The text part of GLM-4.5V: biases unless the file says otherwise. */
void hf_read_glm4v_moe(struct ifl_hf_config *config, struct model *model)
{
    hf_read_glm4_moe(config, model);
    if (ifl_hf_flag(config, "attention_bias", true))
        model->attention_bias = MODEL_BIAS_QKV;
}

/* ---- latent attention ---- */

/* Layers at the front without experts: first_k_dense_replace, or as many of mlp_layer_types, or
 * one. */
static int32_t dense_front(struct ifl_hf_config *config, const struct model *model)
{
    const json_t *types = ifl_hf_value(config->root, "mlp_layer_types");
    int32_t n = 0;
    if (!types)
        return ifl_hf_value(config->root, "first_k_dense_replace") ? model->first_dense_layers : 1;
    const size_t n_types = json_array_size(types);
    for (size_t i = 0; i < n_types; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool is_dense = type && strcmp(type, "dense") == 0;
        if (is_dense && n < (int32_t)i)
            hf_refuse(config, "mlp_layer_types has a dense layer behind one with experts",
                      "dense layers at the front");
        n += is_dense;
    }
    return n;
}

/* GLM-4.7-Flash: DeepSeek-V3's parts. */
void hf_read_glm4_moe_lite(struct ifl_hf_config *config, struct model *model)
{
    hf_read_deepseek(config, model);
    hf_read_dense_front(config, model, dense_front(config, model));
}

/* Experts that pass a token on as it is are rows of the router and nothing else: of the picks of a
 * token, those that fall on the others at random count. */
static void read_zero_experts(struct ifl_hf_config *config, struct model *model)
{
    const int64_t zeros = hf_zero_or_count(config, "zero_expert_num", MODEL_MAX_EXPERTS);
    const int64_t picks = hf_need(config, "moe_topk", MODEL_MAX_EXPERTS);
    model->n_experts = hf_need(config, "n_routed_experts", MODEL_MAX_EXPERTS);
    if (config->code)
        return;
    model->experts_per_token =
        (int32_t)((picks * model->n_experts + (model->n_experts + zeros) / 2) /
                  (model->n_experts + zeros));
    model->other_parameters += model->layers / 2 * zeros * model->d_model;
}

/* modeling_longcat_flash.py: a layer has attention and a dense MLP twice, and experts beside the
 * second attention. Here that is two layers, one of which has experts, and its dense MLP as a
 * shared expert. */
void hf_read_longcat(struct ifl_hf_config *config, struct model *model)
{
    const int32_t wide = hf_need(config, "ffn_hidden_size", IFL_MODEL_MAX_D_FFN);
    const int32_t n = hf_need(config, "num_layers", IFL_MODEL_MAX_LAYERS / 2);
    model->layers = 2 * n;
    model->first_dense_layers = n;
    model->d_model = hf_need(config, "hidden_size", IFL_MODEL_MAX_D_MODEL);
    hf_read_latent(config, model);
    model->d_ffn_dense = model->d_ffn_shared = wide;
    model->shared_experts = 1;
    model->d_ffn = hf_need(config, "expert_ffn_hidden_size", IFL_MODEL_MAX_D_FFN);
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "max_position_embeddings", IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
    read_zero_experts(config, model);
    if (ifl_hf_flag(config, "attention_bias", false) || ifl_hf_flag(config, "router_bias", false))
        hf_refuse(config, "attention_bias or router_bias is true", "projections without biases");
}

/* ---- Step-3 ---- */

/* The layers with experts are numbers between commas; all but the first where there are none. */
static int32_t layers_with_experts(struct ifl_hf_config *config, const struct model *model)
{
    static const char key[] = "moe_layers_enum";
    const json_t *list = ifl_hf_value(config->root, key);
    const char *at = ifl_hf_text(config->root, key);
    long before = -1;
    int32_t n = 0;
    while (*at) {
        char *end;
        const long layer = strtol(at, &end, 10);
        if (end == at || layer <= before || layer >= model->layers || (*end && *end != ','))
            break;
        before = layer;
        n++;
        at = *end ? end + 1 : end;
    }
    if (list && (*at || n == 0))
        ifl_hf_fail(config, key, list, "numbers of layers from 0 on, in order, between commas");
    return list ? n : model->layers - 1;
}

/* vLLM's step3_text.py: queries are made of a latent with a norm, keys and values are not. */
void hf_read_step3(struct ifl_hf_config *config, struct model *model)
{
    model->layers = hf_need(config, "num_hidden_layers", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "hidden_size", IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads = hf_need(config, "num_attention_heads", IFL_MODEL_MAX_HEADS);
    model->n_kv_heads = ifl_hf_count(config, "num_attention_groups", 1, IFL_MODEL_MAX_HEADS);
    model->d_head = hf_need(config, "head_dim", IFL_MODEL_MAX_D_HEAD);
    model->q_lora_rank = hf_need(config, "share_q_dim", IFL_MODEL_MAX_D_MODEL);
    model->n_experts = hf_need(config, "moe_num_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "moe_top_k", MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->shared_experts = 1;
    model->d_ffn_shared = hf_need(config, "share_expert_dim", IFL_MODEL_MAX_D_FFN);
    hf_read_dense_front(config, model, model->layers - layers_with_experts(config, model));
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "max_position_embedding", IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
}

/* modeling_bailing_moe_v2.py of inclusionAI/Ling-mini-2.0: one fused projection of queries, keys
 * and values, and experts behind the first layers. */
void hf_read_bailing(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 0);
    model->qk_norm = ifl_hf_flag(config, "use_qk_norm", false);
    if (ifl_hf_flag(config, "use_qkv_bias", false))
        model->attention_bias = MODEL_BIAS_QKV;
    if (ifl_hf_flag(config, "use_bias", false))
        hf_refuse(config, "use_bias is true", "projections without biases");
    model->n_experts = hf_need(config, "num_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->shared_experts = hf_zero_or_count(config, "num_shared_experts", MODEL_MAX_EXPERTS);
    if (model->shared_experts > 0)
        model->d_ffn_shared = ifl_hf_count(config, "moe_shared_expert_intermediate_size",
                                           model->d_ffn, IFL_MODEL_MAX_D_FFN);
    hf_read_dense_front(config, model,
                        hf_zero_or_count(config, "first_k_dense_replace", IFL_MODEL_MAX_LAYERS));
}
