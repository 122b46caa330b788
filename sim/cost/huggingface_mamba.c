/* Reads models with Mamba-2 in part of their layers, and their families. */
#include <jansson.h>
#include <string.h>

#include "cost/huggingface_kinds.h"
#include "inflight/minmax.h"

/* What the families call the same numbers. */
struct mamba_keys {
    const char *heads, *head_dim, *groups, *state, *conv;
};

/* d_head "auto", or none, is the width of the layer's inside over its heads. */
static int32_t head_dim(struct ifl_hf_config *config, const struct model *model,
                        const struct mamba_keys *key)
{
    const int32_t expand = ifl_hf_count(config, "mamba_expand", 2, 64);
    const int32_t inside =
        ifl_hf_count(config, "mamba_d_ssm", expand * model->d_model, IFL_MODEL_MAX_D_FFN);
    const json_t *value = ifl_hf_value(config->root, key->head_dim);
    if (value && !json_is_string(value))
        return hf_need(config, key->head_dim, IFL_MODEL_MAX_D_HEAD);
    return inside / ifl_max(model->state_v_heads, 1);
}

static void read_mamba(struct ifl_hf_config *config, struct model *model,
                       const struct mamba_keys *key)
{
    if (model->state_layers == 0)
        return;
    model->state_rule = MODEL_STATE_MAMBA2;
    model->state_v_heads = hf_need(config, key->heads, IFL_MODEL_MAX_HEADS);
    model->state_v_dim = head_dim(config, model, key);
    model->state_k_heads = ifl_hf_count(config, key->groups, 1, IFL_MODEL_MAX_HEADS);
    model->state_k_dim = hf_need(config, key->state, IFL_MODEL_MAX_D_HEAD);
    model->conv_tokens = ifl_hf_count(config, key->conv, 4, 64);
    hf_read_state_bytes(config, model);
}

static const struct mamba_keys of_bamba = {"mamba_n_heads", "mamba_d_head", "mamba_n_groups",
                                           "mamba_d_state", "mamba_d_conv"};
static const struct mamba_keys of_nemotron = {"mamba_num_heads", "mamba_head_dim", "n_groups",
                                              "ssm_state_size", "conv_kernel"};

/* The layers that attend are named by their places, in order. */
static int32_t count_attending(struct ifl_hf_config *config, int32_t layers)
{
    static const char key[] = "attn_layer_indices";
    const json_t *places = ifl_hf_value(config->root, key);
    json_int_t before = -1;
    for (size_t i = 0; i < json_array_size(places); i++) {
        const json_t *place = json_array_get(places, i);
        const json_int_t at = json_integer_value(place);
        if (!json_is_integer(place) || at <= before || at >= layers)
            ifl_hf_fail(config, key, place, "places of layers from 0 on, in order");
        before = at;
    }
    return (int32_t)json_array_size(places);
}

/* modeling_bamba.py */
void hf_read_bamba(struct ifl_hf_config *config, struct model *model)
{
    hf_read_shape(config, model, 0);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->state_layers = model->layers - count_attending(config, model->layers);
    read_mamba(config, model, &of_bamba);
}

/* modeling_falcon_h1.py: a layer adds up attention and Mamba-2 of the same input, and an MLP stands
 * behind both. Here that is two layers, attention alone and Mamba-2 with the MLP, which have a norm
 * more. Mamba-2's own norm may be missing. */
void hf_read_falcon_h1(struct ifl_hf_config *config, struct model *model)
{
    static const char *const biases[] = {"attention_bias", "mlp_bias", "projectors_bias",
                                         "mamba_proj_bias"};
    const int32_t n = hf_need(config, "num_hidden_layers", IFL_MODEL_MAX_LAYERS / 2);
    hf_read_shape(config, model, 0);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->layers = 2 * n;
    model->state_layers = model->bare_layers = n;
    read_mamba(config, model, &of_bamba);
    model->other_parameters -= (int64_t)n * model->d_model;
    if (!ifl_hf_flag(config, "mamba_rms_norm", false))
        model->other_parameters -= (int64_t)n * model->state_v_heads * model->state_v_dim;
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        if (ifl_hf_flag(config, biases[i], false))
            hf_refuse(config, "a bias of projections is true", "projections without biases");
    if (!ifl_hf_flag(config, "mamba_conv_bias", true))
        hf_refuse(config, "mamba_conv_bias is false", "true");
}

/* modeling_granitemoehybrid.py: each layer has experts and a shared MLP, or that MLP alone. */
void hf_read_granite_hybrid(struct ifl_hf_config *config, struct model *model)
{
    const int32_t shared = hf_need(config, "shared_intermediate_size", IFL_MODEL_MAX_D_FFN);
    hf_read_shape(config, model, 0);
    model->state_layers = ifl_hf_layers(config, "linear_attention", model->layers, model->layers);
    read_mamba(config, model, &of_bamba);
    model->n_experts = hf_zero_or_count(config, "num_local_experts", MODEL_MAX_EXPERTS);
    model->d_ffn = shared;
    if (model->n_experts == 0)
        return;
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->shared_experts = 1;
    model->d_ffn_shared = shared;
}

/* ---- layers that mix tokens, and layers that do not, in any order ---- */

enum part { PART_MAMBA, PART_ATTENTION, PART_MLP, PART_EXPERTS, N_PARTS };
static const char letters_of[] = "M*-E";
static const char *const words_of[] = {"mamba", "attention", "mlp", "moe"};

static const char letters_key[] = "hybrid_override_pattern", words_key[] = "layers_block_type";

static void count(struct ifl_hf_config *config, const char *key, int part, int32_t n[N_PARTS])
{
    if (part < N_PARTS)
        n[part]++;
    else
        ifl_hf_fail(config, key, ifl_hf_value(config->root, key),
                    "layers of Mamba-2 (M, mamba), attention (*), an MLP (-, mlp) or experts (E, "
                    "moe)");
}

static void count_letters(struct ifl_hf_config *config, const char *letters, int32_t n[N_PARTS])
{
    for (; *letters; letters++) {
        const char *at = strchr(letters_of, *letters);
        count(config, letters_key, at ? (int)(at - letters_of) : N_PARTS, n);
    }
}

static void count_words(struct ifl_hf_config *config, const json_t *words, int32_t n[N_PARTS])
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        int part = 0;
        while (part < N_PARTS && (!word || strcmp(word, words_of[part]) != 0))
            part++;
        count(config, words_key, part, n);
    }
}

/* Older files have a letter a layer, newer ones a list of words. */
static void read_pattern(struct ifl_hf_config *config, int32_t n[N_PARTS])
{
    const json_t *words = ifl_hf_value(config->root, words_key);
    if (words)
        count_words(config, words, n);
    else
        count_letters(config, ifl_hf_text(config->root, letters_key), n);
    int64_t n_layers = 0;
    for (int part = 0; part < N_PARTS; part++)
        n_layers += n[part];
    if (n[PART_MAMBA] + n[PART_ATTENTION] == 0)
        ifl_hf_fail(config, letters_key, ifl_hf_value(config->root, letters_key),
                    "a letter a layer, or layers_block_type");
    else if (n_layers > IFL_MODEL_MAX_LAYERS)
        hf_refuse(config, "the pattern has more than 1000 layers", "at most 1000");
}

/* LatentMoE of Nemotron 3 Super and Ultra: experts see a latent of the hidden state. The
 * projections to it and back are two matrices, as an MLP of as many columns without gates has: they
 * are counted with the shared experts, which each token passes as well. */
static void read_latent_experts(struct ifl_hf_config *config, struct model *model)
{
    const int32_t latent = hf_zero_or_count(config, "moe_latent_size", IFL_MODEL_MAX_D_MODEL);
    if (latent == 0)
        return;
    if (model->shared_experts > 1)
        hf_refuse(config, "moe_latent_size is set with several shared experts", "one or none");
    model->d_expert = latent;
    model->shared_experts = 1;
    model->d_ffn_shared += latent;
}

static void read_nemotron_experts(struct ifl_hf_config *config, struct model *model)
{
    model->n_experts = hf_need(config, "n_routed_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    model->shared_experts = hf_zero_or_count(config, "n_shared_experts", MODEL_MAX_EXPERTS);
    if (model->shared_experts > 0)
        model->d_ffn_shared =
            hf_need(config, "moe_shared_expert_intermediate_size", IFL_MODEL_MAX_D_FFN);
    read_latent_experts(config, model);
}

/* The number of layers may be that of the words alone (Nemotron 3 Ultra). */
static void set_layers(struct ifl_hf_config *config)
{
    static const char key[] = "num_hidden_layers";
    const json_t *words = ifl_hf_value(config->root, words_key);
    if (words && !ifl_hf_value(config->root, key) && !config->code &&
        json_object_set_new(config->root, key, json_integer((json_int_t)json_array_size(words))) <
            0)
        config->code = ifl_fail_nomem(config->error);
}

/* modeling_nemotron_h.py: a layer is Mamba-2, attention, an MLP of two matrices, or experts. Here
 * an MLP stands behind attention or a state, so that there are as many layers as of these two. */
void hf_read_nemotron_h(struct ifl_hf_config *config, struct model *model)
{
    int32_t n[N_PARTS] = {0};
    read_pattern(config, n);
    set_layers(config);
    hf_read_shape(config, model,
                  ifl_hf_count(config, "attention_head_dim", 0, IFL_MODEL_MAX_D_HEAD));
    model->mlp = MODEL_MLP_PLAIN;
    model->layers = n[PART_MAMBA] + n[PART_ATTENTION];
    model->state_layers = n[PART_MAMBA];
    model->bare_layers = model->layers - n[PART_MLP] - n[PART_EXPERTS];
    read_mamba(config, model, &of_nemotron);
    if (n[PART_MLP] > 0 && n[PART_EXPERTS] > 0)
        hf_refuse(config, "some layers are an MLP and others have experts", "one of the two");
    if (model->bare_layers < 0)
        hf_refuse(config, "more layers are MLPs than attend or have a state", "at most as many");
    if (ifl_hf_flag(config, "use_bias", false) || ifl_hf_flag(config, "mlp_bias", false))
        hf_refuse(config, "use_bias or mlp_bias is true", "projections without biases");
    if (n[PART_EXPERTS] > 0)
        read_nemotron_experts(config, model);
    else
        model->d_ffn = hf_need(config, "intermediate_size", IFL_MODEL_MAX_D_FFN);
}
