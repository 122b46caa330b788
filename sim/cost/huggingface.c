/* Reads a Hugging Face config.json as a model. Keys and their defaults are those of each
 * architecture's configuration class in the transformers library. */
#include <jansson.h>
#include <string.h>

#include "cost/huggingface_kinds.h"
#include "inflight/inputs.h"
#include "inflight/nearest.h"

void hf_refuse(struct ifl_hf_config *config, const char *what, const char *expected)
{
    if (!config->code)
        config->code =
            ifl_fail_at(config->error, config->path, 0, 0, "%s, expected %s", what, expected);
}

int32_t hf_need(struct ifl_hf_config *config, const char *key, int32_t max)
{
    return ifl_hf_count(config, key, IFL_HF_REQUIRED, max);
}

int32_t hf_zero_or_count(struct ifl_hf_config *config, const char *key, int32_t max)
{
    const struct json_t *value = ifl_hf_value(config->root, key);
    if (json_is_integer(value) && json_integer_value(value) == 0)
        return 0;
    return ifl_hf_count(config, key, 0, max);
}

void hf_rename(struct ifl_hf_config *config, const struct json_t *from, const char *older,
               const char *key)
{
    const json_t *value = ifl_hf_value(from, older);
    if (value && !ifl_hf_value(config->root, key) && !config->code &&
        json_object_set_new(config->root, key, json_copy((json_t *)value)) < 0)
        config->code = ifl_fail_nomem(config->error);
}

/* ---- one function an architecture ---- */

/* What engines compute as well. */
static void read_decoder(struct ifl_hf_config *config, struct model *model)
{
    struct ifl_hf_decoder decoder;
    ifl_hf_read_decoder(config, &decoder);
    const struct ifl_engine_model *m = &decoder.model;
    model->layers = m->n_layers;
    model->d_model = m->d_model;
    model->n_q_heads = m->n_q_heads;
    model->n_kv_heads = m->n_kv_heads;
    model->d_head = m->d_head;
    model->d_ffn = m->d_ffn;
    model->vocab = m->n_vocab;
    model->tied_embeddings = m->tied_embeddings;
    model->mlp_bias = m->mlp_bias;
    model->qk_norm = m->qk_norm;
    if (m->qkv_bias)
        model->attention_bias = m->out_bias ? MODEL_BIAS_QKV_AND_OUT : MODEL_BIAS_QKV;
    model->window_tokens = decoder.n_window_layers > 0 ? decoder.window_tokens : 0;
    model->window_layers = model->window_tokens > 0 ? decoder.n_window_layers : 0;
    model->max_model_len = hf_need(config, "max_position_embeddings", IFL_MODEL_MAX_TOKENS);
}

static void read_mixtral(struct ifl_hf_config *config, struct model *model)
{
    read_decoder(config, model);
    model->n_experts = ifl_hf_count(config, "num_local_experts", 8, MODEL_MAX_EXPERTS);
    model->experts_per_token = ifl_hf_count(config, "num_experts_per_tok", 2, MODEL_MAX_EXPERTS);
}

void hf_need_experts_everywhere(struct ifl_hf_config *config)
{
    if (ifl_hf_count(config, "decoder_sparse_step", 1, IFL_MODEL_MAX_LAYERS) != 1)
        hf_refuse(config, "decoder_sparse_step is not 1", "experts in every layer");
    if (json_array_size(ifl_hf_value(config->root, "mlp_only_layers")) > 0)
        hf_refuse(config, "mlp_only_layers names layers", "experts in every layer");
}

static void read_qwen3_moe(struct ifl_hf_config *config, struct model *model)
{
    read_decoder(config, model);
    model->n_experts = ifl_hf_count(config, "num_experts", 128, MODEL_MAX_EXPERTS);
    model->experts_per_token = ifl_hf_count(config, "num_experts_per_tok", 8, MODEL_MAX_EXPERTS);
    model->d_ffn = ifl_hf_count(config, "moe_intermediate_size", 768, IFL_MODEL_MAX_D_FFN);
    hf_need_experts_everywhere(config);
}

void hf_read_latent(struct ifl_hf_config *config, struct model *model)
{
    model->n_q_heads = hf_need(config, "num_attention_heads", IFL_MODEL_MAX_HEADS);
    model->q_lora_rank = ifl_hf_count(config, "q_lora_rank", 0, IFL_MODEL_MAX_D_MODEL);
    model->kv_lora_rank = hf_need(config, "kv_lora_rank", IFL_MODEL_MAX_D_HEAD);
    model->qk_nope_head_dim = hf_need(config, "qk_nope_head_dim", IFL_MODEL_MAX_D_HEAD);
    model->qk_rope_head_dim = hf_need(config, "qk_rope_head_dim", IFL_MODEL_MAX_D_HEAD);
    model->v_head_dim = hf_need(config, "v_head_dim", IFL_MODEL_MAX_D_HEAD);
}

void hf_read_dense_front(struct ifl_hf_config *config, struct model *model, int32_t n)
{
    model->first_dense_layers = n;
    if (n > 0)
        model->d_ffn_dense = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
}

/* MoE layers from first_k_dense_replace on (modeling_deepseek.py, DeepseekV3DecoderLayer). */
static void read_deepseek_experts(struct ifl_hf_config *config, struct model *model)
{
    model->n_experts = hf_need(config, "n_routed_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->shared_experts = ifl_hf_count(config, "n_shared_experts", 0, MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    hf_read_dense_front(config, model,
                        hf_zero_or_count(config, "first_k_dense_replace", IFL_MODEL_MAX_LAYERS));
    if (ifl_hf_count(config, "moe_layer_freq", 1, IFL_MODEL_MAX_LAYERS) != 1)
        hf_refuse(config, "moe_layer_freq is not 1", "experts in every layer behind the first");
}

/* The module that predicts further tokens (num_nextn_predict_layers) is none of the layers. */
void hf_read_deepseek(struct ifl_hf_config *config, struct model *model)
{
    model->layers = hf_need(config, "num_hidden_layers", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "hidden_size", IFL_MODEL_MAX_D_MODEL);
    hf_read_latent(config, model);
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "max_position_embeddings", IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
    if (ifl_hf_flag(config, "attention_bias", false))
        hf_refuse(config, "attention_bias is true", "projections without biases");
    if (ifl_hf_count(config, "num_key_value_heads", model->n_q_heads, IFL_MODEL_MAX_HEADS) !=
        model->n_q_heads)
        hf_refuse(config, "num_key_value_heads differs from num_attention_heads",
                  "the same number: latent attention has keys and values for each head");
    if (!ifl_hf_value(config->root, "n_routed_experts"))
        model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    else
        read_deepseek_experts(config, model);
}

/* True if the layer takes the tokens that an earlier one's indexer picked: by the list of GLM-5.2,
 * or by its period (index_topk_freq; vllm/model_executor/models/deepseek_v2.py). */
static bool shares_index(struct ifl_hf_config *config, int32_t layer, int32_t period,
                         int32_t offset)
{
    static const char key[] = "indexer_types";
    const json_t *types = ifl_hf_value(config->root, key);
    const json_t *type = json_array_get(types, (size_t)layer);
    const char *word = json_string_value(type);
    const int32_t behind = layer - offset + 1;
    if (!types)
        return behind > 0 && behind % period != 0;
    if (!word || (strcmp(word, "full") != 0 && strcmp(word, "shared") != 0))
        ifl_hf_fail(config, key, type ? type : types, "full or shared for each layer");
    return word && strcmp(word, "shared") == 0;
}

static void read_index_layers(struct ifl_hf_config *config, struct model *model)
{
    const int32_t period = ifl_hf_count(config, "index_topk_freq", 1, IFL_MODEL_MAX_LAYERS);
    const int32_t offset = hf_zero_or_count(config, "index_skip_topk_offset", IFL_MODEL_MAX_LAYERS);
    int32_t n = 0;
    for (int32_t layer = 0; layer < model->layers && !config->code; layer++)
        n += !shares_index(config, layer, period, offset);
    if (n == 0)
        hf_refuse(config, "no layer has an indexer of its own", "one in the first layer");
    model->index_layers = n < model->layers ? n : 0;
}

/* DeepSeek-V3.2, and GLM-5 (configuration_deepseek_v32.py, configuration_glm_moe_dsa.py). */
static void read_deepseek_sparse(struct ifl_hf_config *config, struct model *model)
{
    hf_read_deepseek(config, model);
    model->index_heads = hf_need(config, "index_n_heads", IFL_MODEL_MAX_HEADS);
    model->index_head_dim = hf_need(config, "index_head_dim", IFL_MODEL_MAX_D_HEAD);
    model->index_topk = hf_need(config, "index_topk", IFL_MODEL_MAX_TOKENS);
    read_index_layers(config, model);
}

/* ---- grouped queries with experts or biases of other names ---- */

void hf_read_shape(struct ifl_hf_config *config, struct model *model, int32_t d_head)
{
    model->layers = hf_need(config, "num_hidden_layers", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "hidden_size", IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads = hf_need(config, "num_attention_heads", IFL_MODEL_MAX_HEADS);
    model->n_kv_heads = hf_need(config, "num_key_value_heads", IFL_MODEL_MAX_HEADS);
    model->d_head = ifl_hf_count(config, "head_dim", d_head, IFL_MODEL_MAX_D_HEAD);
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "max_position_embeddings", IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
}

void hf_read_grouped(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 0);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
}

/* modeling_glm4_moe.py: biases on queries, keys and values alone. */
void hf_read_glm4_moe(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    read_deepseek_experts(config, model);
    model->qk_norm = ifl_hf_flag(config, "use_qk_norm", false);
    if (ifl_hf_flag(config, "attention_bias", false))
        model->attention_bias = MODEL_BIAS_QKV;
}

/* Its norms of queries and keys are of all heads together, a few thousand numbers a layer more than
 * those of one head, which count here. Other kinds of attention are those of MiniMax-Text-01. */
static void read_minimax_m2(struct ifl_hf_config *config, struct model *model)
{
    const json_t *kinds = ifl_hf_value(config->root, "attn_type_list");
    hf_read_grouped(config, model);
    model->n_experts = hf_need(config, "num_local_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->qk_norm = ifl_hf_flag(config, "use_qk_norm", true);
    if (hf_zero_or_count(config, "shared_intermediate_size", IFL_MODEL_MAX_D_FFN) > 0)
        hf_refuse(config, "shared_intermediate_size is not 0", "no shared expert");
    for (size_t i = 0; i < json_array_size(kinds); i++)
        if (json_integer_value(json_array_get(kinds, i)) != 1)
            hf_refuse(config, "attn_type_list has other kinds than 1", "one kind of attention");
}

static void read_seed_oss(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    model->mlp_bias = ifl_hf_flag(config, "mlp_bias", false);
    if (ifl_hf_flag(config, "attention_bias", true))
        model->attention_bias = MODEL_BIAS_QKV;
    if (!ifl_hf_flag(config, "attention_out_bias", false))
        return;
    if (model->attention_bias == MODEL_BIAS_NONE)
        hf_refuse(config, "attention_out_bias is true without attention_bias", "both or neither");
    model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
}

/* modeling_ernie4_5_moe.py: experts from moe_layer_start_index on, up to the end. */
static void read_ernie4_5_moe(struct ifl_hf_config *config, struct model *model)
{
    const json_t *end = ifl_hf_value(config->root, "moe_layer_end_index");
    hf_read_grouped(config, model);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
    model->first_dense_layers =
        hf_zero_or_count(config, "moe_layer_start_index", IFL_MODEL_MAX_LAYERS);
    model->d_ffn_dense = model->first_dense_layers > 0 ? model->d_ffn : 0;
    model->n_experts = hf_need(config, "moe_num_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "moe_k", MODEL_MAX_EXPERTS);
    model->shared_experts = hf_zero_or_count(config, "moe_num_shared_experts", MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    if (ifl_hf_count(config, "moe_layer_interval", 1, IFL_MODEL_MAX_LAYERS) != 1 ||
        (end && json_integer_value(end) != -1 && json_integer_value(end) != model->layers - 1))
        hf_refuse(config, "moe_layer_interval or moe_layer_end_index leaves layers without experts",
                  "experts in every layer behind the first");
    if (ifl_hf_flag(config, "use_bias", false))
        hf_refuse(config, "use_bias is true", "false");
}

/* configuration_granite.py, configuration_smollm3.py: factors and layers without rotary positions
 * cost nothing. */
void hf_read_llama_like(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    model->mlp_bias = ifl_hf_flag(config, "mlp_bias", false);
    if (ifl_hf_flag(config, "attention_bias", false))
        model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
}

static void read_smollm3(struct ifl_hf_config *config, struct model *model)
{
    hf_read_llama_like(config, model);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
}

void hf_set_classic(struct model *model)
{
    model->mlp = MODEL_MLP_PLAIN;
    model->norm = MODEL_LAYERNORM;
    model->attention_bias = MODEL_BIAS_QKV_AND_OUT;
    model->mlp_bias = true;
}

/* OPT's table of positions has two rows more than there are positions, since padding shifts them.
 */
static void read_opt(struct ifl_hf_config *config, struct model *model)
{
    hf_set_classic(model);
    model->layers = hf_need(config, "num_hidden_layers", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "hidden_size", IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads = hf_need(config, "num_attention_heads", IFL_MODEL_MAX_HEADS);
    model->d_ffn = hf_need(config, "ffn_dim", IFL_MODEL_MAX_D_FFN);
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "max_position_embeddings", IFL_MODEL_MAX_TOKENS);
    model->learned_positions = model->max_model_len + 2;
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
    if (ifl_hf_count(config, "word_embed_proj_dim", model->d_model, IFL_MODEL_MAX_D_MODEL) !=
        model->d_model)
        hf_refuse(config, "word_embed_proj_dim differs from hidden_size", "the same number");
    if (!ifl_hf_flag(config, "do_layer_norm_before", true))
        hf_refuse(config, "do_layer_norm_before is false", "true");
    if (!ifl_hf_flag(config, "enable_bias", true))
        hf_refuse(config, "enable_bias is false", "true");
}

/* Older checkpoints have n_embed and num_attention_heads in place of hidden_size and n_head. */
static void read_bloom(struct ifl_hf_config *config, struct model *model)
{
    hf_set_classic(model);
    model->layers =
        hf_need(config, ifl_hf_value(config->root, "n_layer") ? "n_layer" : "num_hidden_layers",
                IFL_MODEL_MAX_LAYERS);
    model->d_model =
        hf_need(config, ifl_hf_value(config->root, "n_embed") ? "n_embed" : "hidden_size",
                IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads =
        hf_need(config, ifl_hf_value(config->root, "n_head") ? "n_head" : "num_attention_heads",
                IFL_MODEL_MAX_HEADS);
    model->d_ffn = 4 * model->d_model;
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = ifl_hf_count(config, "seq_length", 2048, IFL_MODEL_MAX_TOKENS);
    model->embedding_norm = true;
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
}

static void read_gpt2(struct ifl_hf_config *config, struct model *model)
{
    hf_set_classic(model);
    model->layers = hf_need(config, "n_layer", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "n_embd", IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads = hf_need(config, "n_head", IFL_MODEL_MAX_HEADS);
    model->d_ffn = ifl_hf_count(config, "n_inner", 4 * model->d_model, IFL_MODEL_MAX_D_FFN);
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "n_positions", IFL_MODEL_MAX_TOKENS);
    model->learned_positions = model->max_model_len;
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
}

static const struct architecture {
    const char *model_type;
    void (*read)(struct ifl_hf_config *, struct model *);
} architectures[] = {
    {"llama", read_decoder},
    {"mistral", read_decoder},
    {"phi3", read_decoder},
    {"qwen2", read_decoder},
    {"qwen3", read_decoder},
    {"opt", read_opt},
    {"bloom", read_bloom},
    {"gpt2", read_gpt2},
    {"mixtral", read_mixtral},
    {"qwen3_moe", read_qwen3_moe},
    {"deepseek_v2", hf_read_deepseek},
    {"deepseek_v3", hf_read_deepseek},
    {"kimi_k2", hf_read_deepseek},
    {"mistral4", hf_read_deepseek},
    {"deepseek_v32", read_deepseek_sparse},
    {"glm_moe_dsa", read_deepseek_sparse},
    {"glm4_moe", hf_read_glm4_moe},
    {"minimax_m2", read_minimax_m2},
    {"seed_oss", read_seed_oss},
    {"ernie4_5_moe", read_ernie4_5_moe},
    {"granite", hf_read_llama_like},
    {"smollm3", read_smollm3},
    {"cohere", hf_read_cohere},
    {"cohere2", hf_read_cohere2},
    {"glm", hf_read_glm},
    {"glm4", hf_read_glm4},
    {"chatglm", hf_read_chatglm},
    {"qwen2_moe", hf_read_qwen2_moe},
    {"glm4_moe_lite", hf_read_glm4_moe_lite},
    {"ministral3", hf_read_ministral3},
    {"internlm2", hf_read_internlm2},
    {"internlm3", hf_read_internlm3},
    {"exaone", hf_read_exaone},
    {"exaone4", hf_read_exaone4},
    {"ernie4_5", hf_read_ernie4_5},
    {"hunyuan_v1_dense", hf_read_hunyuan},
    {"hunyuan_v1_moe", hf_read_hunyuan_moe},
    {"mimo", hf_read_mimo},
    {"phimoe", hf_read_phimoe},
    {"phi", hf_read_phi},
    {"falcon", hf_read_falcon},
    {"starcoder2", hf_read_starcoder2},
    {"gpt_bigcode", hf_read_gpt_bigcode},
    {"gpt_neox", hf_read_gpt_neox},
    {"stablelm", hf_read_stablelm},
    {"nemotron", hf_read_nemotron},
    {"olmoe", hf_read_olmoe},
    {"granitemoe", hf_read_granitemoe},
    {"granitemoeshared", hf_read_granitemoe},
    {"bailing_moe", hf_read_bailing},
    {"bailing_moe_v2", hf_read_bailing},
    {"dbrx", hf_read_dbrx},
    {"longcat_flash", hf_read_longcat},
    {"glm4v_text", hf_read_glm4},
    {"glm4v_moe_text", hf_read_glm4v_moe},
    {"olmo2", hf_read_olmo2},
    {"olmo3", hf_read_olmo3},
    {"gemma", hf_read_gemma},
    {"gemma2", hf_read_gemma2},
    {"gemma3_text", hf_read_gemma3},
    {"gpt_oss", hf_read_gpt_oss},
    {"llama4_text", hf_read_llama4},
    {"qwen3_next", hf_read_qwen3_next},
    {"qwen3_5_text", hf_read_qwen3_5},
    {"qwen3_5_moe_text", hf_read_qwen3_next},
    {"bamba", hf_read_bamba},
    {"granitemoehybrid", hf_read_granite_hybrid},
    {"nemotron_h", hf_read_nemotron_h},
    {"falcon_h1", hf_read_falcon_h1},
    {"lfm2", hf_read_lfm2},
    {"lfm2_moe", hf_read_lfm2_moe},
    {"minimax", hf_read_minimax},
    {"minimax_text_01", hf_read_minimax},
    {"minimax_m1", hf_read_minimax},
    {"jamba", hf_read_jamba},
    {"kimi_linear", hf_read_kimi_linear},
    {"step3_text", hf_read_step3},
};

enum { N_ARCHITECTURES = sizeof architectures / sizeof *architectures, MAX_OUTER = 64 };

/* True if two types differ in their digits alone: another generation, no misspelt name. */
static bool is_other_generation(const char *type, const char *known)
{
    static const char digits[] = "0123456789";
    for (;; type++, known++) {
        type += strspn(type, digits);
        known += strspn(known, digits);
        if (*type != *known || !*type)
            return *type == *known;
    }
}

/* The right name of a misspelt type, NULL if none is near. */
static const char *nearest_type(const char *type)
{
    const char *names[N_ARCHITECTURES + MAX_OUTER];
    size_t n = 0;
    for (; n < N_ARCHITECTURES; n++)
        names[n] = architectures[n].model_type;
    for (size_t i = 0; i < MAX_OUTER && hf_outer_type(i); i++)
        names[n++] = hf_outer_type(i);
    const char *near = ifl_nearest(type, names, n);
    return near && is_other_generation(type, near) ? NULL : near;
}

/* As many types as have room in an error, the number of the others, and the nearest. */
static void refuse_type(struct ifl_hf_config *config)
{
    const char *near = nearest_type(ifl_hf_text(config->root, "model_type"));
    char expected[620] = "one of ";
    const size_t room = sizeof expected - 140;
    size_t at = strlen(expected), i = 0;
    for (; i < N_ARCHITECTURES && at + strlen(architectures[i].model_type) + 2 < room; i++)
        at += (size_t)snprintf(expected + at, sizeof expected - at, "%s%s", i ? ", " : "",
                               architectures[i].model_type);
    if (i < N_ARCHITECTURES)
        at += (size_t)snprintf(expected + at, sizeof expected - at,
                               " and %zu more (docs/formats.md)", N_ARCHITECTURES - i);
    snprintf(expected + at, sizeof expected - at, "%s%s%s", near ? "; did you mean " : "",
             near ? near : "", near ? "?" : "");
    ifl_hf_fail(config, "model_type", ifl_hf_value(config->root, "model_type"), expected);
}

static const struct architecture *find_architecture(const char *type)
{
    for (size_t i = 0; i < N_ARCHITECTURES; i++)
        if (strcmp(architectures[i].model_type, type) == 0)
            return &architectures[i];
    return NULL;
}

bool hf_knows_type(const char *type)
{
    return find_architecture(type) || hf_refused(type);
}

static const struct architecture *architecture_of(struct ifl_hf_config *config)
{
    const char *type = ifl_hf_text(config->root, "model_type");
    const struct architecture *architecture = find_architecture(type);
    const char *expected = architecture ? NULL : hf_refused(type);
    if (expected)
        ifl_hf_fail(config, "model_type", ifl_hf_value(config->root, "model_type"), expected);
    else if (!architecture)
        refuse_type(config);
    return architecture;
}

/* The key is torch_dtype in older files, dtype in newer ones. */
static int32_t element_bytes(struct ifl_hf_config *config)
{
    const char *key = ifl_hf_value(config->root, "torch_dtype") ? "torch_dtype" : "dtype";
    const char *type = ifl_hf_text(config->root, key);
    if (!ifl_hf_value(config->root, key))
        return 2;
    if (strcmp(type, "float32") == 0)
        return 4;
    if (strcmp(type, "float16") != 0 && strcmp(type, "bfloat16") != 0)
        ifl_hf_fail(config, key, ifl_hf_value(config->root, key), "float16, bfloat16 or float32");
    return 2;
}

/* ", 16 bits: 100% of attention, ..."; empty where all matrices are quantised. */
static void list_plain_parts(const struct model *model, char *text, size_t n_bytes)
{
    static const char *const names[MODEL_PARTS] = {"attention", "states", "MLPs", "shared experts",
                                                   "experts"};
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < MODEL_PARTS; i++)
        if (model->plain_frac[i] > 0 && at < n_bytes)
            at +=
                (size_t)snprintf(text + at, n_bytes - at, "%s %.0f%% of %s",
                                 at > 0 ? "," : ", 16 bits:", 100 * model->plain_frac[i], names[i]);
}

static void read_text(struct ifl_hf_config *config, struct json_t *vision, struct model *model)
{
    const char *whole = hf_take_text_part(config);
    const struct architecture *architecture = config->code ? NULL : architecture_of(config);
    if (!architecture)
        return;
    architecture->read(config, model);
    if (whole)
        hf_read_vision(config, whole, vision, model);
    const char *encoder = vision_is_known(&model->vision)
                              ? ": the text part; of the image encoder only memory is modelled"
                              : ": the text part, the image encoder is not modelled";
    model->weight_bytes = model->kv_bytes = element_bytes(config);
    const char *weights = hf_read_quantization(config, whole != NULL, model);
    char plain[96];
    list_plain_parts(model, plain, sizeof plain);
    snprintf(model->about, sizeof model->about, "Hugging Face config, model_type %s%s%s%s%s",
             whole ? whole : architecture->model_type, weights ? ", " : "", weights ? weights : "",
             plain, whole ? encoder : "");
}

/* The text part takes the place of the whole object, so the encoder's is kept. */
static void read_object(struct ifl_hf_config *config, struct model *model)
{
    struct json_t *vision = json_incref(json_object_get(config->root, "vision_config"));
    read_text(config, vision, model);
    json_decref(vision);
}

int model_read_huggingface(const char *path, struct model *model, struct ifl_error *error)
{
    struct ifl_hf_config config;
    ifl_input_note(path);
    if (ifl_hf_open(path, &config, error) == 0)
        hf_add_quantization_beside(&config);
    if (config.code == 0)
        read_object(&config, model);
    ifl_hf_close(&config);
    if (config.code)
        return config.code;
    struct ifl_error reason;
    if (model_complete(model, &reason))
        return ifl_fail_at(error, path, 0, 0, "%s", reason.text);
    return 0;
}
