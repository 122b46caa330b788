/* Completes layers that have a state in place of K/V, by the rule of the state. */
#include "cost/model.h"

enum norm { NORM_NONE, NORM_OF_HEAD, NORM_OF_ALL };

/* Multiples of a rank's widths: of the values (v_heads v_dim), of the keys (k_heads k_dim), of the
 * value heads, and of state_rank. */
static const struct rule {
    const char *name;
    int32_t in_values, in_keys, in_heads, in_ranks; /* columns of the projection in */
    int32_t ups;                    /* values that are made of a low rank; 0: none */
    int32_t conv_values, conv_keys; /* channels of the convolution */
    int32_t of_heads, of_values;    /* numbers that a head has, and a channel of the values */
    bool conv_bias, needs_rank;
    bool asks;    /* a key asks the state for its value, before another is written */
    bool selects; /* keys, queries and the low rank are made of what the convolution leaves, and
                     each element of the state has a decay */
    enum norm norm;
} rules[] = {
    [MODEL_STATE_DELTA] = {.name = "the gated delta rule",
                           .in_values = 2,
                           .in_keys = 2,
                           .in_heads = 2,
                           .conv_values = 1,
                           .conv_keys = 2,
                           .of_heads = 2,
                           .asks = true,
                           .norm = NORM_OF_HEAD},
    [MODEL_STATE_MAMBA2] = {.name = "Mamba-2",
                            .in_values = 2,
                            .in_keys = 2,
                            .in_heads = 1,
                            .conv_values = 1,
                            .conv_keys = 2,
                            .conv_bias = true,
                            .of_heads = 3,
                            .norm = NORM_OF_ALL},
    [MODEL_STATE_MAMBA1] = {.name = "Mamba-1",
                            .in_values = 2,
                            .ups = 1,
                            .conv_values = 1,
                            .conv_bias = true,
                            .of_values = 2,
                            .needs_rank = true,
                            .selects = true},
    [MODEL_STATE_KDA] = {.name = "Kimi Delta Attention",
                         .in_values = 1,
                         .in_keys = 2,
                         .in_heads = 1,
                         .in_ranks = 2,
                         .ups = 2,
                         .conv_values = 1,
                         .conv_keys = 2,
                         .of_heads = 1,
                         .of_values = 1,
                         .needs_rank = true,
                         .asks = true,
                         .norm = NORM_OF_HEAD},
    [MODEL_STATE_LIGHTNING] = {.name = "lightning attention",
                               .in_values = 2,
                               .in_keys = 2,
                               .norm = NORM_OF_ALL},
    [MODEL_STATE_CONV] = {.name = "a short convolution", .in_values = 3, .conv_values = 1},
};

static const struct rule *rule_of(const struct model *model)
{
    return &rules[model->state_rule];
}

const char *model_state_name(const struct model *model)
{
    return rule_of(model)->name;
}

bool model_state_needs_rank(const struct model *model)
{
    return rule_of(model)->needs_rank;
}

bool model_state_asks(const struct model *model)
{
    return rule_of(model)->asks;
}

bool model_state_convolves(const struct model *model)
{
    return rule_of(model)->conv_values > 0;
}

int64_t model_state_values(const struct model *model, int32_t tensor_parallel)
{
    return (int64_t)model->state_v_heads / tensor_parallel * model->state_v_dim;
}

int64_t model_state_keys(const struct model *model, int32_t tensor_parallel)
{
    return (int64_t)model_state_k_heads_per_rank(model, tensor_parallel) * model->state_k_dim;
}

int64_t model_state_channels(const struct model *model, int32_t tensor_parallel)
{
    const struct rule *rule = rule_of(model);
    return rule->conv_values * model_state_values(model, tensor_parallel) +
           rule->conv_keys * model_state_keys(model, tensor_parallel);
}

void model_state_linears(const struct model *model, int32_t tensor_parallel,
                         struct model_linear linears[MODEL_STATE_LINEARS])
{
    const struct rule *rule = rule_of(model);
    const int64_t values = model_state_values(model, tensor_parallel);
    const int64_t keys = model_state_keys(model, tensor_parallel), rank = model->state_rank;
    const int64_t columns = rule->in_values * values + rule->in_keys * keys +
                            rule->in_heads * (model->state_v_heads / tensor_parallel) +
                            rule->in_ranks * rank;
    linears[MODEL_STATE_IN] = (struct model_linear){"state in", columns, model->d_model};
    linears[MODEL_STATE_OUT] = (struct model_linear){"state out", model->d_model, values};
    linears[MODEL_STATE_DOWN] =
        (struct model_linear){"state down", rule->selects ? rank + 2 * keys : 0, values};
    linears[MODEL_STATE_UP] = (struct model_linear){"state up", rule->ups * values, rank};
}

int64_t model_state_bytes(const struct model *model, int32_t tensor_parallel)
{
    const int64_t state = model_state_values(model, tensor_parallel) * model->state_k_dim;
    const int64_t channels = model_state_channels(model, tensor_parallel);
    const int64_t last = channels > 0 ? channels * (model->conv_tokens - 1) : 0;
    return state * model->state_bytes + last * model->weight_bytes;
}

int64_t model_state_vectors(const struct model *model, int32_t tensor_parallel)
{
    const struct rule *rule = rule_of(model);
    const int64_t values = model_state_values(model, tensor_parallel);
    const int64_t channels = model_state_channels(model, tensor_parallel);
    int64_t n = channels * (model->conv_tokens + (rule->conv_bias ? 1 : 0)) +
                rule->of_heads * (model->state_v_heads / tensor_parallel) +
                rule->of_values * values;
    if (rule->selects)
        n += values * model->state_k_dim;
    if (rule->norm == NORM_OF_HEAD)
        n += model_norm_parameters(model, model->state_v_dim);
    return rule->norm == NORM_OF_ALL ? n + model_norm_parameters(model, values) : n;
}
