/* Computes the fields of a model that follow from the others, and refuses contradictions. */
#include "cost/model.h"

/* ---- attention ---- */

static const char *complete_heads(struct model *model, struct ifl_error *error)
{
    if (model->n_kv_heads == 0)
        model->n_kv_heads = model->n_q_heads;
    if (model->n_q_heads % model->n_kv_heads != 0) {
        ifl_fail(error, IFL_E_INPUT, "n_kv_heads is %d, expected a divisor of the %d query heads",
                 model->n_kv_heads, model->n_q_heads);
        return "n_kv_heads";
    }
    return NULL;
}

static const char *complete_width(struct model *model, struct ifl_error *error)
{
    if (model->d_head == 0 && model->d_model % model->n_q_heads != 0) {
        ifl_fail(error, IFL_E_INPUT,
                 "d_head is not given and %d query heads do not divide d_model, %d, "
                 "expected d_head",
                 model->n_q_heads, model->d_model);
        return "n_q_heads";
    }
    if (model->d_head == 0)
        model->d_head = model->d_model / model->n_q_heads;
    return NULL;
}

struct named_width {
    const char *name;
    int32_t width;
};

/* A width of latent attention that a model without it has. */
static const char *refuse_widths(const struct model *model, struct ifl_error *error)
{
    const struct named_width of[] = {{"qk_nope_head_dim", model->qk_nope_head_dim},
                                     {"qk_rope_head_dim", model->qk_rope_head_dim},
                                     {"v_head_dim", model->v_head_dim},
                                     {"index_heads", model->index_heads},
                                     {"index_head_dim", model->index_head_dim},
                                     {"index_topk", model->index_topk},
                                     {"index_layers", model->index_layers}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].width > 0) {
            ifl_fail(error, IFL_E_INPUT,
                     "%s is %d, expected none without kv_lora_rank, that of latent attention",
                     of[i].name, of[i].width);
            return of[i].name;
        }
    return NULL;
}

static const char *need_widths(const struct model *model, struct ifl_error *error)
{
    const struct named_width of[] = {{"qk_nope_head_dim", model->qk_nope_head_dim},
                                     {"qk_rope_head_dim", model->qk_rope_head_dim},
                                     {"v_head_dim", model->v_head_dim}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].width == 0) {
            ifl_fail(error, IFL_E_INPUT,
                     "%s is not given, expected it beside kv_lora_rank (latent attention)",
                     of[i].name);
            return of[i].name;
        }
    return NULL;
}

/* Parts of other attention that latent attention has not. */
static const char *refuse_parts(const struct model *model, struct ifl_error *error)
{
    const struct {
        const char *name;
        bool is_there;
    } of[] = {{"attention_bias", model->attention_bias != MODEL_BIAS_NONE},
              {"qk_norm", model->qk_norm},
              {"window_tokens", model->window_tokens > 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].is_there) {
            ifl_fail(error, IFL_E_INPUT,
                     "%s is set, expected none beside kv_lora_rank (latent attention)", of[i].name);
            return of[i].name;
        }
    return NULL;
}

/* The widths of an indexer are given together, beside the latent that its queries are made of. */
static const char *check_index(const struct model *model, struct ifl_error *error)
{
    const struct named_width of[] = {{"index_heads", model->index_heads},
                                     {"index_head_dim", model->index_head_dim},
                                     {"index_topk", model->index_topk},
                                     {"q_lora_rank", model->q_lora_rank}};
    const bool is_there = of[0].width + of[1].width + of[2].width > 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (is_there && of[i].width == 0) {
            ifl_fail(error, IFL_E_INPUT, "%s is not given, expected it beside an indexer's others",
                     of[i].name);
            return of[i].name;
        }
    if (model->index_layers > (is_there ? model->layers : 0)) {
        ifl_fail(error, IFL_E_INPUT, "index_layers is %d, expected at most the %d layers%s",
                 model->index_layers, is_there ? model->layers : 0,
                 is_there ? "" : " that have an indexer");
        return "index_layers";
    }
    return NULL;
}

/* All heads attend to one latent, which is both keys and values. */
static const char *complete_latent(struct model *model, struct ifl_error *error)
{
    const int32_t width = model->kv_lora_rank + model->qk_rope_head_dim;
    const char *guilty = need_widths(model, error);
    if (!guilty)
        guilty = refuse_parts(model, error);
    if (guilty)
        return guilty;
    if (model->n_kv_heads > 1) {
        ifl_fail(error, IFL_E_INPUT,
                 "n_kv_heads is %d, expected 1 or none: with kv_lora_rank all heads share a latent",
                 model->n_kv_heads);
        return "n_kv_heads";
    }
    if (model->d_head != 0 && model->d_head != width) {
        ifl_fail(error, IFL_E_INPUT,
                 "d_head is %d, expected %d, kv_lora_rank + qk_rope_head_dim, or none",
                 model->d_head, width);
        return "d_head";
    }
    model->n_kv_heads = 1;
    model->d_head = width;
    return check_index(model, error);
}

static const char *complete_attention(struct model *model, struct ifl_error *error)
{
    if (model_is_latent(model))
        return complete_latent(model, error);
    if (model->q_lora_rank > 0 && model->attention_bias != MODEL_BIAS_NONE) {
        ifl_fail(error, IFL_E_INPUT, "attention_bias is set, expected none beside q_lora_rank");
        return "attention_bias";
    }
    const char *guilty = refuse_widths(model, error);
    return guilty ? guilty : complete_heads(model, error);
}

/* ---- experts ---- */

static const char *check_experts(const struct model *model, struct ifl_error *error)
{
    if (model->experts_per_token < 1 || model->experts_per_token > model->n_experts) {
        ifl_fail(error, IFL_E_INPUT, "experts_per_token is %d, expected a number from 1 to %d",
                 model->experts_per_token, model->n_experts);
        return "experts_per_token";
    }
    if (model->mlp_bias && (model->first_dense_layers > 0 || model->shared_experts > 0)) {
        ifl_fail(error, IFL_E_INPUT,
                 "mlp_bias is set, expected no biases beside dense layers and shared experts");
        return "mlp_bias";
    }
    return NULL;
}

/* What belongs to experts, of a model that has none. */
static const char *refuse_experts(const struct model *model, struct ifl_error *error)
{
    if (model->quantization == MODEL_MXFP4) {
        ifl_fail(error, IFL_E_INPUT,
                 "quantization is mxfp4, expected another one without n_experts: it is that of "
                 "experts");
        return "quantization";
    }
    const struct named_width of[] = {{"first_dense_layers", model->first_dense_layers},
                                     {"d_ffn_dense", model->d_ffn_dense},
                                     {"shared_experts", model->shared_experts},
                                     {"d_ffn_shared", model->d_ffn_shared},
                                     {"d_expert", model->d_expert}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i].width > 0) {
            ifl_fail(error, IFL_E_INPUT, "%s is %d, expected none without n_experts", of[i].name,
                     of[i].width);
            return of[i].name;
        }
    return NULL;
}

static const char *check_dense_layers(const struct model *model, struct ifl_error *error)
{
    if (model->first_dense_layers >= model->layers) {
        ifl_fail(error, IFL_E_INPUT,
                 "first_dense_layers is %d, expected fewer than the %d layers: those behind them "
                 "have experts",
                 model->first_dense_layers, model->layers);
        return "first_dense_layers";
    }
    if ((model->first_dense_layers > 0) != (model->d_ffn_dense > 0)) {
        ifl_fail(error, IFL_E_INPUT,
                 "d_ffn_dense is %d with first_dense_layers %d, expected both or neither",
                 model->d_ffn_dense, model->first_dense_layers);
        return model->d_ffn_dense > 0 ? "d_ffn_dense" : "first_dense_layers";
    }
    return NULL;
}

static const char *complete_shared(struct model *model, struct ifl_error *error)
{
    if (model->d_ffn_shared > 0 && model->shared_experts == 0) {
        ifl_fail(error, IFL_E_INPUT, "d_ffn_shared is %d, expected none without shared_experts",
                 model->d_ffn_shared);
        return "d_ffn_shared";
    }
    if (model->shared_experts > 0 && model->d_ffn_shared == 0)
        model->d_ffn_shared = model->d_ffn;
    return NULL;
}

static const char *complete_experts(struct model *model, struct ifl_error *error)
{
    if (model->n_experts == 0)
        return refuse_experts(model, error);
    const char *guilty = check_experts(model, error);
    if (!guilty)
        guilty = check_dense_layers(model, error);
    return guilty ? guilty : complete_shared(model, error);
}

static const char *complete_windows(struct model *model, struct ifl_error *error)
{
    if (model->window_layers > model->layers) {
        ifl_fail(error, IFL_E_INPUT, "window_layers is %d, expected at most the %d layers",
                 model->window_layers, model->layers);
        return "window_layers";
    }
    if (model->window_layers > 0 && model->window_tokens == 0) {
        ifl_fail(error, IFL_E_INPUT, "window_layers is %d, expected window_tokens beside it",
                 model->window_layers);
        return "window_layers";
    }
    if (model->chunked && model->window_tokens == 0) {
        ifl_fail(error, IFL_E_INPUT, "chunked is set, expected window_tokens beside it");
        return "chunked";
    }
    if (model->window_tokens > 0 && model->window_layers == 0)
        model->window_layers = model->layers;
    return NULL;
}

/* ---- states ---- */

static const char *check_state_layers(const struct model *model, struct ifl_error *error)
{
    if (model->state_layers >= model->layers) {
        ifl_fail(error, IFL_E_INPUT, "state_layers is %d, expected fewer than the %d layers",
                 model->state_layers, model->layers);
        return "state_layers";
    }
    if (model->state_layers > 0 && (model->window_layers > 0 || model->index_topk > 0)) {
        ifl_fail(error, IFL_E_INPUT,
                 "state_layers is %d beside %s, expected attention to all tokens in the other "
                 "layers",
                 model->state_layers, model->window_layers > 0 ? "window_tokens" : "index_topk");
        return "state_layers";
    }
    if (model->state_layers == 0 && model->state_rule != MODEL_STATE_DELTA) {
        ifl_fail(error, IFL_E_INPUT, "state_rule is set, expected state_layers beside it");
        return "state_rule";
    }
    return NULL;
}

/* A width is there in layers whose rule has it, and in no others. */
static const char *check_state_widths(const struct model *model, struct ifl_error *error)
{
    const bool is_there = model->state_layers > 0;
    const bool has_keys = is_there && model->state_rule != MODEL_STATE_CONV;
    const struct {
        struct named_width of;
        bool expected;
    } widths[] = {{{"state_k_heads", model->state_k_heads}, has_keys},
                  {{"state_v_heads", model->state_v_heads}, is_there},
                  {{"state_k_dim", model->state_k_dim}, has_keys},
                  {{"state_v_dim", model->state_v_dim}, is_there},
                  {{"state_rank", model->state_rank}, is_there && model_state_needs_rank(model)}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        const struct named_width of = widths[i].of;
        if ((of.width > 0) == widths[i].expected)
            continue;
        if (is_there && of.width > 0)
            ifl_fail(error, IFL_E_INPUT, "%s is %d, expected none: layers of %s have none", of.name,
                     of.width, model_state_name(model));
        else
            ifl_fail(error, IFL_E_INPUT, "%s is %d with state_layers %d, expected both or neither",
                     of.name, of.width, model->state_layers);
        return of.width > 0 ? of.name : "state_layers";
    }
    return NULL;
}

static const char *check_state_heads(const struct model *model, struct ifl_error *error)
{
    if (model->state_k_heads > 0 && model->state_v_heads % model->state_k_heads != 0) {
        ifl_fail(error, IFL_E_INPUT, "state_v_heads is %d, expected a multiple of the %d key heads",
                 model->state_v_heads, model->state_k_heads);
        return "state_v_heads";
    }
    if (model->state_rule == MODEL_STATE_MAMBA1 && model->state_k_heads != 1) {
        ifl_fail(error, IFL_E_INPUT, "state_k_heads is %d, expected 1 with state_rule mamba1",
                 model->state_k_heads);
        return "state_k_heads";
    }
    return NULL;
}

/* What only layers with a state, or with a convolution, have. */
static const char *complete_convolution(struct model *model, struct ifl_error *error)
{
    const bool is_there = model->state_layers > 0;
    const bool is_conv = model->conv_tokens > 0;
    if (!is_there && (is_conv || model->state_bytes > 0)) {
        ifl_fail(error, IFL_E_INPUT, "%s is %d, expected none without state_layers",
                 is_conv ? "conv_tokens" : "state_bytes",
                 is_conv ? model->conv_tokens : model->state_bytes);
        return is_conv ? "conv_tokens" : "state_bytes";
    }
    if (is_conv && !model_state_convolves(model)) {
        ifl_fail(error, IFL_E_INPUT, "conv_tokens is %d, expected none: layers of %s have none",
                 model->conv_tokens, model_state_name(model));
        return "conv_tokens";
    }
    if (is_there && !is_conv && model_state_convolves(model))
        model->conv_tokens = 4;
    if (is_there && model->state_bytes == 0)
        model->state_bytes = 4;
    return NULL;
}

static const char *complete_states(struct model *model, struct ifl_error *error)
{
    const char *guilty = check_state_layers(model, error);
    if (!guilty)
        guilty = check_state_widths(model, error);
    if (!guilty)
        guilty = check_state_heads(model, error);
    return guilty ? guilty : complete_convolution(model, error);
}

static const char *check_bare_layers(const struct model *model, struct ifl_error *error)
{
    const int32_t n_others = model->bare_layers + model->first_dense_layers;
    if (model->bare_layers == 0 || n_others < model->layers)
        return NULL;
    ifl_fail(error, IFL_E_INPUT, "bare_layers is %d, expected some of the %d layers to have %s",
             model->bare_layers, model->layers, model->n_experts > 0 ? "experts" : "an MLP");
    return "bare_layers";
}

/* Each width is within its limits; their products must be within those of counts of bytes. */
static const char *check_size(const struct model *model, struct ifl_error *error)
{
    enum { MOST_TRILLIONS = 1000 };
    const double d = model->d_model, trillion = 1e12;
    const double heads = 2.0 * model->n_q_heads + 2.0 * model->n_kv_heads;
    const double latents = (double)model->q_lora_rank + model->kv_lora_rank + model->d_head;
    const double attention = heads * (d + latents) * model->d_head + latents * d;
    const double states =
        2 * d * model->state_k_heads * model->state_k_dim +
        4 * d * model->state_v_heads * model->state_v_dim +
        (2 * d + 2.0 * model->state_v_heads * model->state_v_dim) * model->state_rank;
    const double mlps = 3 * d *
                        ((model->n_experts + 1.0) * model->d_ffn + model->d_ffn_dense +
                         (double)model->shared_experts * model->d_ffn_shared);
    const double n = model->layers * (attention + states + mlps) + 2 * d * model->vocab;
    if (n <= MOST_TRILLIONS * trillion)
        return NULL;
    ifl_fail(error, IFL_E_INPUT, "the model has %.3g parameters, expected at most %g", n,
             MOST_TRILLIONS * trillion);
    return "layers";
}

const char *model_complete(struct model *model, struct ifl_error *error)
{
    const char *guilty = complete_attention(model, error);
    if (!guilty)
        guilty = complete_windows(model, error);
    if (!guilty)
        guilty = complete_states(model, error);
    if (!guilty)
        guilty = check_bare_layers(model, error);
    if (!guilty)
        guilty = complete_experts(model, error);
    if (!guilty)
        guilty = complete_width(model, error);
    return guilty ? guilty : check_size(model, error);
}
