/* Reads models in which part of the layers have states of other rules: LFM2, MiniMax-01, Jamba,
 * Kimi Linear, each according to its configuration and modeling files in transformers. */
#include <jansson.h>
#include <string.h>

#include "cost/huggingface_kinds.h"
#include "inflight/minmax.h"

/* ---- which layers attend ---- */

static bool is_among(const json_t *places, json_int_t place)
{
    for (size_t i = 0; i < json_array_size(places); i++)
        if (json_integer_value(json_array_get(places, i)) == place)
            return true;
    return false;
}

/* Lists of the layers that attend, and the number of the first layer there. */
struct places {
    const json_t *list;
    int32_t first;
};

static struct places places_of(const json_t *root)
{
    const json_t *linear = ifl_hf_value(root, "linear_attn_config");
    const struct places of[] = {{ifl_hf_value(root, "attn_layer_indices"), 0},
                                {ifl_hf_value(root, "full_attn_idxs"), 0},
                                {ifl_hf_value(linear, "full_attn_layers"), 1}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].list)
            return of[i];
    return (struct places){NULL, 0};
}

/* configuration_jamba.py: where files leave out the offsets of attention and of experts. */
enum { JAMBA_ATTENDS = 4, JAMBA_EXPERTS = 1 };

static int32_t number_of(const json_t *root, const char *key, int32_t otherwise)
{
    const json_t *value = ifl_hf_value(root, key);
    return value ? (int32_t)json_integer_value(value) : otherwise;
}

bool hf_attends(const struct json_t *root, int32_t layer)
{
    const json_t *kinds = ifl_hf_value(root, "attn_type_list");
    const char *type =
        json_string_value(json_array_get(ifl_hf_value(root, "layer_types"), (size_t)layer));
    const struct places places = places_of(root);
    if (type)
        return strcmp(type, "full_attention") == 0 || strcmp(type, "attention") == 0;
    if (kinds)
        return json_integer_value(json_array_get(kinds, (size_t)layer)) == 1;
    if (places.list)
        return is_among(places.list, layer + places.first);
    if (ifl_hf_value(root, "attn_layer_period"))
        return layer % ifl_max(number_of(root, "attn_layer_period", 1), 1) ==
               number_of(root, "attn_layer_offset", JAMBA_ATTENDS);
    return (layer + 1) % ifl_max(number_of(root, "full_attention_interval", 4), 1) == 0;
}

static int32_t count_attending(const struct ifl_hf_config *config, const struct model *model)
{
    int32_t n = 0;
    for (int32_t layer = 0; layer < model->layers; layer++)
        n += hf_attends(config->root, layer);
    return n;
}

/* A list names each of its layers once. */
static void check_places(struct ifl_hf_config *config, const struct model *model)
{
    const struct places places = places_of(config->root);
    const json_t *kinds = ifl_hf_value(config->root, "attn_type_list");
    if (kinds && json_array_size(kinds) != (size_t)model->layers)
        hf_refuse(config, "attn_type_list has not one kind for each layer", "as many as layers");
    if (!kinds && !places.list)
        hf_refuse(config, "layer_types is missing", "the kind of each layer");
    else if (!kinds && json_array_size(places.list) != (size_t)count_attending(config, model))
        hf_refuse(config, "the list of layers that attend names others, or one twice",
                  "places of layers");
}

/* `type` is that of the other layers in layer_types. */
static void read_state_layers(struct ifl_hf_config *config, struct model *model, const char *type)
{
    if (ifl_hf_value(config->root, "layer_types")) {
        model->state_layers = ifl_hf_layers(config, type, model->layers, 0);
        return;
    }
    check_places(config, model);
    model->state_layers = model->layers - count_attending(config, model);
}

/* Of a model in which no layer has a state, nothing of it is set. */
static bool has_states(struct ifl_hf_config *config, struct model *model,
                       enum model_state_rule rule)
{
    if (config->code || model->state_layers == 0)
        return false;
    model->state_rule = (int32_t)rule;
    return true;
}

/* ---- LFM2 ---- */

/* modeling_lfm2.py, Lfm2MLP: two thirds of the width in the file, times a factor, rounded up. */
static int32_t lfm2_columns(struct ifl_hf_config *config)
{
    const char *key =
        ifl_hf_value(config->root, "block_ff_dim") ? "block_ff_dim" : "intermediate_size";
    const int32_t wide = hf_need(config, key, IFL_MODEL_MAX_D_FFN);
    const int32_t whole = ifl_hf_count(config, "block_multiple_of", 256, IFL_MODEL_MAX_D_FFN);
    const json_t *factor = ifl_hf_value(config->root, "block_ffn_dim_multiplier");
    if (config->code || !ifl_hf_flag(config, "block_auto_adjust_ff_dim", true))
        return wide;
    const int64_t two_thirds = 2 * (int64_t)wide / 3;
    const double columns = (factor ? json_number_value(factor) : 1) * (double)two_thirds;
    if (!(columns >= 1 && columns <= IFL_MODEL_MAX_D_FFN)) {
        ifl_hf_fail(config, "block_ffn_dim_multiplier", factor, "a factor of the MLP's width");
        return wide;
    }
    return ((int32_t)columns + whole - 1) / whole * whole;
}

/* Channels stand in groups as wide as the heads of attention, for ranks to share. */
static void read_groups(struct ifl_hf_config *config, struct model *model)
{
    model->state_v_dim = model->d_model / model->n_q_heads;
    if (model->d_model % model->n_q_heads != 0)
        hf_refuse(config, "num_attention_heads does not divide hidden_size", "a divisor");
}

static void read_convolutions(struct ifl_hf_config *config, struct model *model)
{
    read_state_layers(config, model, "conv");
    if (!has_states(config, model, MODEL_STATE_CONV))
        return;
    model->state_v_heads = model->n_q_heads;
    model->conv_tokens = ifl_hf_count(config, "conv_L_cache", 3, 64);
    read_groups(config, model);
    if (ifl_hf_flag(config, "conv_bias", false))
        hf_refuse(config, "conv_bias is true", "false");
}

static void read_lfm2_attention(struct ifl_hf_config *config, struct model *model)
{
    const char *tied =
        ifl_hf_value(config->root, "tie_embedding") ? "tie_embedding" : "tie_word_embeddings";
    hf_read_shape(config, model, 0);
    model->tied_embeddings = ifl_hf_flag(config, tied, true);
    model->qk_norm = true;
    read_convolutions(config, model);
}

void hf_read_lfm2(struct ifl_hf_config *config, struct model *model)
{
    read_lfm2_attention(config, model);
    model->d_ffn = lfm2_columns(config);
}

void hf_read_lfm2_moe(struct ifl_hf_config *config, struct model *model)
{
    read_lfm2_attention(config, model);
    model->n_experts = hf_need(config, "num_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    model->d_ffn = hf_need(config, "moe_intermediate_size", IFL_MODEL_MAX_D_FFN);
    hf_read_dense_front(config, model,
                        hf_zero_or_count(config, "num_dense_layers", IFL_MODEL_MAX_LAYERS));
}

/* ---- MiniMax-Text-01, MiniMax-M1 ---- */

/* modeling_minimax.py: lightning attention has as many heads of keys as of queries. */
void hf_read_minimax(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    model->n_experts = hf_need(config, "num_local_experts", MODEL_MAX_EXPERTS);
    model->experts_per_token = hf_need(config, "num_experts_per_tok", MODEL_MAX_EXPERTS);
    if (hf_zero_or_count(config, "shared_intermediate_size", IFL_MODEL_MAX_D_FFN) > 0)
        hf_refuse(config, "shared_intermediate_size is not 0", "no shared expert");
    if (ifl_hf_value(config->root, "sliding_window"))
        hf_refuse(config, "sliding_window is set", "none");
    read_state_layers(config, model, "linear_attention");
    if (!has_states(config, model, MODEL_STATE_LIGHTNING))
        return;
    const int32_t d_head =
        model->d_head > 0 ? model->d_head : model->d_model / ifl_max(model->n_q_heads, 1);
    model->state_k_heads = model->state_v_heads = model->n_q_heads;
    model->state_k_dim = model->state_v_dim = d_head;
    hf_read_state_bytes(config, model);
}

/* ---- Jamba ---- */

/* Mamba-1, with norms of steps, B and C. Each channel has a state of its own. */
static void read_mamba1(struct ifl_hf_config *config, struct model *model)
{
    const int32_t expand = ifl_hf_count(config, "mamba_expand", 2, 64);
    if (!has_states(config, model, MODEL_STATE_MAMBA1))
        return;
    model->state_k_heads = 1;
    model->state_k_dim = ifl_hf_count(config, "mamba_d_state", 16, IFL_MODEL_MAX_D_HEAD);
    model->state_v_heads = expand * model->n_q_heads;
    model->conv_tokens = ifl_hf_count(config, "mamba_d_conv", 4, 64);
    model->state_rank = (model->d_model + 15) / 16;
    if (!json_is_string(ifl_hf_value(config->root, "mamba_dt_rank")))
        model->state_rank =
            ifl_hf_count(config, "mamba_dt_rank", model->state_rank, IFL_MODEL_MAX_D_MODEL);
    model->other_parameters +=
        (int64_t)model->state_layers * (model->state_rank + 2 * model->state_k_dim);
    hf_read_state_bytes(config, model);
    read_groups(config, model);
    if (ifl_hf_flag(config, "mamba_proj_bias", false) ||
        !ifl_hf_flag(config, "mamba_conv_bias", true))
        hf_refuse(config, "mamba_proj_bias is true or mamba_conv_bias false", "false and true");
}

bool hf_has_experts(const struct json_t *root, int32_t layer, int32_t n_dense)
{
    const int32_t period = number_of(root, "expert_layer_period", 0);
    return period > 0 ? layer % period == number_of(root, "expert_layer_offset", JAMBA_EXPERTS)
                      : layer >= n_dense;
}

/* Layers with experts stand among others, whose MLP is as wide as one of them. */
static void read_jamba_experts(struct ifl_hf_config *config, struct model *model)
{
    const int32_t n_experts = ifl_hf_count(config, "num_experts", 16, MODEL_MAX_EXPERTS);
    int32_t n_layers = 0;
    hf_need(config, "expert_layer_period", IFL_MODEL_MAX_LAYERS);
    for (int32_t layer = 0; layer < model->layers && n_experts > 1; layer++)
        n_layers += hf_has_experts(config->root, layer, 0);
    if (n_layers == 0 || config->code)
        return;
    model->n_experts = n_experts;
    model->experts_per_token = ifl_hf_count(config, "num_experts_per_tok", 2, MODEL_MAX_EXPERTS);
    model->first_dense_layers = model->layers - n_layers;
    model->d_ffn_dense = model->first_dense_layers > 0 ? model->d_ffn : 0;
}

void hf_read_jamba(struct ifl_hf_config *config, struct model *model)
{
    hf_read_grouped(config, model);
    hf_need(config, "attn_layer_period", IFL_MODEL_MAX_LAYERS);
    hf_zero_or_count(config, "attn_layer_offset", IFL_MODEL_MAX_LAYERS);
    if (!config->code)
        model->state_layers = model->layers - count_attending(config, model);
    read_mamba1(config, model);
    read_jamba_experts(config, model);
}

/* ---- Kimi Linear ---- */

/* The checkpoint's file names what transformers has by other names. */
static void rename_kimi(struct ifl_hf_config *config)
{
    static const char *const names[][2] = {{"num_experts", "n_routed_experts"},
                                           {"num_local_experts", "n_routed_experts"},
                                           {"num_experts_per_token", "num_experts_per_tok"},
                                           {"num_shared_experts", "n_shared_experts"},
                                           {"model_max_length", "max_position_embeddings"}};
    static const char *const linear[][2] = {{"head_dim", "linear_head_dim"},
                                            {"num_heads", "linear_num_heads"},
                                            {"short_conv_kernel_size", "linear_conv_kernel_dim"}};
    const json_t *of_linear = ifl_hf_value(config->root, "linear_attn_config");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hf_rename(config, config->root, names[i][0], names[i][1]);
    for (size_t i = 0; i < sizeof linear / sizeof *linear; i++)
        hf_rename(config, of_linear, linear[i][0], linear[i][1]);
}

/* modeling_kimi_linear.py: DeepSeek-V3's parts, and Kimi Delta Attention, whose states have 32 bits
 * in vLLM. */
void hf_read_kimi_linear(struct ifl_hf_config *config, struct model *model)
{
    rename_kimi(config);
    hf_read_glm4_moe_lite(config, model);
    read_state_layers(config, model, "linear_attention");
    if (!has_states(config, model, MODEL_STATE_KDA))
        return;
    model->state_k_heads = model->state_v_heads =
        ifl_hf_count(config, "linear_num_heads", 32, IFL_MODEL_MAX_HEADS);
    model->state_k_dim = model->state_v_dim = model->state_rank =
        ifl_hf_count(config, "linear_head_dim", 128, IFL_MODEL_MAX_D_HEAD);
    model->conv_tokens = ifl_hf_count(config, "linear_conv_kernel_dim", 4, 64);
    model->state_bytes = 4;
}
