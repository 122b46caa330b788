/* Reads dense models with plain MLPs and LayerNorm, each according to its configuration and
 * modeling files in transformers. */
#include <jansson.h>

#include "cost/huggingface_kinds.h"

static void set_biases(struct model *model, bool attention, bool mlp)
{
    hf_set_classic(model);
    model->attention_bias = attention ? MODEL_BIAS_QKV_AND_OUT : MODEL_BIAS_NONE;
    model->mlp_bias = mlp;
}

/* A key that files may leave out: there are as many heads of keys as of queries. */
static void read_kv_heads(struct ifl_hf_config *config, struct model *model, const char *key)
{
    model->n_kv_heads = ifl_hf_count(config, key, model->n_q_heads, IFL_MODEL_MAX_HEADS);
}

static void read_heads(struct ifl_hf_config *config, struct model *model)
{
    model->layers = hf_need(config, "num_hidden_layers", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "hidden_size", IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads = hf_need(config, "num_attention_heads", IFL_MODEL_MAX_HEADS);
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
}

void hf_read_starcoder2(struct ifl_hf_config *config, struct model *model)
{
    const bool biases = ifl_hf_flag(config, "use_bias", true);
    hf_read_grouped(config, model);
    set_biases(model, biases, biases);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
    hf_read_window(config, model);
}

/* Each layer has two norms, whether or not attention and MLP run beside each other. */
void hf_read_gpt_neox(struct ifl_hf_config *config, struct model *model)
{
    read_heads(config, model);
    set_biases(model, ifl_hf_flag(config, "attention_bias", true), true);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->max_model_len = hf_need(config, "max_position_embeddings", IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
}

/* StarCoder: GPT-2 with one head of keys. */
void hf_read_gpt_bigcode(struct ifl_hf_config *config, struct model *model)
{
    hf_set_classic(model);
    model->layers = hf_need(config, "n_layer", IFL_MODEL_MAX_LAYERS);
    model->d_model = hf_need(config, "n_embd", IFL_MODEL_MAX_D_MODEL);
    model->n_q_heads = hf_need(config, "n_head", IFL_MODEL_MAX_HEADS);
    model->n_kv_heads = ifl_hf_flag(config, "multi_query", true) ? 1 : model->n_q_heads;
    model->d_ffn = ifl_hf_count(config, "n_inner", 4 * model->d_model, IFL_MODEL_MAX_D_FFN);
    model->vocab = hf_need(config, "vocab_size", IFL_MODEL_MAX_VOCAB);
    model->max_model_len = hf_need(config, "n_positions", IFL_MODEL_MAX_TOKENS);
    model->learned_positions = model->max_model_len;
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
}

/* Falcon-7B has one head of keys, 40B and 180B have several; attention and MLP of the first read
 * one norm, those of the others two, unless num_ln_in_parallel_attn says otherwise. */
void hf_read_falcon(struct ifl_hf_config *config, struct model *model)
{
    const bool is_new = ifl_hf_flag(config, "new_decoder_architecture", false);
    const bool biases = ifl_hf_flag(config, "bias", false);
    read_heads(config, model);
    set_biases(model, biases, biases);
    if (is_new)
        read_kv_heads(config, model, "num_kv_heads");
    else
        model->n_kv_heads = ifl_hf_flag(config, "multi_query", true) ? 1 : model->n_q_heads;
    model->d_ffn = ifl_hf_count(config, "ffn_hidden_size", 4 * model->d_model, IFL_MODEL_MAX_D_FFN);
    model->max_model_len =
        ifl_hf_count(config, "max_position_embeddings", 2048, IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", true);
    const int32_t norms = ifl_hf_count(config, "num_ln_in_parallel_attn", is_new ? 2 : 1, 2);
    if (norms == 1 && ifl_hf_flag(config, "parallel_attn", true))
        hf_share_norm(model);
}

/* Minitron, Nemotron-4: squared ReLU. The weight of a norm is stored less one. */
void hf_read_nemotron(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    set_biases(model, ifl_hf_flag(config, "attention_bias", false),
               ifl_hf_flag(config, "mlp_bias", false));
}

/* Phi-1.5 and 2: one norm a layer, and a bias of the LM head. */
void hf_read_phi(struct ifl_hf_config *config, struct model *model)
{
    read_heads(config, model);
    read_kv_heads(config, model, "num_key_value_heads");
    hf_set_classic(model);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->max_model_len = hf_need(config, "max_position_embeddings", IFL_MODEL_MAX_TOKENS);
    model->tied_embeddings = ifl_hf_flag(config, "tie_word_embeddings", false);
    model->qk_norm = ifl_hf_flag(config, "qk_layernorm", false);
    hf_share_norm(model);
    model->other_parameters += model->vocab;
}
