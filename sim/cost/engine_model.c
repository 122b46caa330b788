#include "cost/engine_model.h"

int engine_describe_model(const struct model *model, struct ifl_engine_model *described,
                          struct ifl_error *error)
{
    if (model->mlp != MODEL_MLP_GATED || model->norm != MODEL_RMSNORM ||
        model->learned_positions > 0 || model->embedding_norm)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s is no Llama-style decoder (gated MLP, RMSNorm, rotary "
                        "positions), expected one: engines run no other",
                        model->name);
    if (model_is_latent(model))
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s has latent attention (kv_lora_rank %d), expected heads with keys "
                        "and values of their own: engines run no other",
                        model->name, model->kv_lora_rank);
    if (model->q_lora_rank > 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s makes queries of a latent (q_lora_rank %d), expected queries of "
                        "the hidden state: engines run no other",
                        model->name, model->q_lora_rank);
    if (model->n_experts > 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s has %d experts in a layer, expected a dense model: engines run "
                        "no other",
                        model->name, model->n_experts);
    if (model->state_layers > 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s has %d layers with states, expected attention in all: engines "
                        "run no other",
                        model->name, model->state_layers);
    if (model->branch_norms || model->window_layers % model->layers != 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s has %s, expected layers that are alike with a norm before "
                        "attention and MLP: engines run no other",
                        model->name, model->branch_norms ? "branch_norms" : "window_layers");
    if (model->other_parameters != 0)
        return ifl_fail(
            error, IFL_E_INPUT,
            "model %s has norms or vectors that a Llama-style decoder has not, expected "
            "one: engines run no other",
            model->name);
    if (model->quantization != MODEL_PLAIN)
        return ifl_fail(error, IFL_E_INPUT,
                        "model %s is quantised, expected one that is not: engines run no other",
                        model->name);
    *described = (struct ifl_engine_model){
        .n_layers = model->layers,
        .d_model = model->d_model,
        .n_q_heads = model->n_q_heads,
        .n_kv_heads = model->n_kv_heads,
        .d_head = model->d_head,
        .d_ffn = model->d_ffn,
        .n_vocab = model->vocab,
        .qkv_bias = model->attention_bias != MODEL_BIAS_NONE,
        .out_bias = model->attention_bias == MODEL_BIAS_QKV_AND_OUT,
        .mlp_bias = model->mlp_bias,
        .qk_norm = model->qk_norm,
        .tied_embeddings = model->tied_embeddings,
    };
    return 0;
}
