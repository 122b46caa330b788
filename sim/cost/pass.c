#include "cost/pass.h"

#include <math.h>

/* `rows` over all of `n_weights` different weights. */
static struct pass_part product(const struct model *model, const struct model_linear *linear,
                                double rows, double n_weights, double weight_bytes)
{
    const double n = (double)linear->n, k = (double)linear->k;
    return (struct pass_part){linear->name, 2 * rows * n * k,
                              (rows * k + rows * n) * model->weight_bytes +
                                  n_weights * n * k * weight_bytes};
}

static struct pass_part both(struct pass_part a, struct pass_part b)
{
    return (struct pass_part){a.name, a.flops + b.flops, a.bytes + b.bytes};
}

/* Of a layer in which each new token sees so many, of which all together read `kv_tokens`. */
static struct pass_part attention_to(const struct model *model, int32_t tensor_parallel,
                                     const struct pass *pass, double seen_tokens, double kv_tokens)
{
    const double h = model_q_heads_per_rank(model, tensor_parallel);
    const double g = model_kv_heads_per_rank(model, tensor_parallel);
    const double pairs = pass->n_seqs * pass->new_tokens * seen_tokens;
    const double kv_bytes = 2 * pass->n_seqs * kv_tokens * g * model->d_head * model->kv_bytes;
    const double query_bytes =
        2 * pass->n_seqs * pass->new_tokens * h * model->d_head * model->weight_bytes;
    return (struct pass_part){"attention", 4 * h * model->d_head * pairs, kv_bytes + query_bytes};
}

static struct pass_part times(double n, struct pass_part part)
{
    return (struct pass_part){part.name, n * part.flops, n * part.bytes};
}

/* A state is decayed, asked for a key, written and asked for a query: 7 FLOP an element and token;
 * 5 with rules that ask for no key. It is read and written once a pass. */
static struct pass_part state_rule(const struct model *model, int32_t tensor_parallel,
                                   const struct pass *pass)
{
    const double elements = (double)model->state_v_heads / tensor_parallel * model->state_k_dim *
                            model->state_v_dim * pass->n_seqs;
    const double flops = model_state_asks(model) ? 7 : 5;
    return (struct pass_part){"attention", flops * elements * pass->new_tokens,
                              2 * elements * model->state_bytes};
}

static double state_share(const struct model *model)
{
    return (double)model->state_layers / model->layers;
}

/* The products of a state into it, or out. */
static struct pass_part around_state(const struct model *model, int32_t tensor_parallel, double m,
                                     bool in)
{
    struct model_linear states[MODEL_STATE_LINEARS];
    const double bytes = model_element_bytes(model, MODEL_PART_STATE);
    model_state_linears(model, tensor_parallel, states);
    if (!in)
        return product(model, &states[MODEL_STATE_OUT], m, 1, bytes);
    struct pass_part part = product(model, &states[MODEL_STATE_IN], m, 1, bytes);
    for (int i = MODEL_STATE_DOWN; i <= MODEL_STATE_UP; i++)
        if (states[i].n > 0)
            part = both(part, product(model, &states[i], m, 1, bytes));
    return part;
}

/* The products of a layer around its attention or its state, in the mean: into it, or out. */
static struct pass_part around(const struct model *model, int32_t tensor_parallel, double m,
                               const struct model_linear *of_attention, bool in)
{
    const double share = state_share(model);
    const struct pass_part full =
        product(model, of_attention, m, 1, model_element_bytes(model, MODEL_PART_ATTENTION));
    if (model->state_layers == 0)
        return full;
    return both(times(1 - share, full), times(share, around_state(model, tensor_parallel, m, in)));
}

/* ---- latent attention ---- */

static bool is_absorbed(const struct pass *pass)
{
    return pass->new_tokens <= 1 && pass->context_tokens > 0;
}

/* 2 FLOPs for each element of a key and of a value. Keys and values that were made of latents are
 * read for each head; the latent itself once for all. */
static struct pass_part latent_attention(const struct model *model, int32_t tensor_parallel,
                                         const struct pass *pass)
{
    const double h = model_q_heads_per_rank(model, tensor_parallel);
    const double kv_tokens = pass->n_seqs * (pass->context_tokens + pass->new_tokens);
    const struct model_widths of =
        is_absorbed(pass) ? model_latent_decode(model) : model_latent_prompt(model);
    const double widths = of.key + of.value;
    const double kv_bytes = is_absorbed(pass) ? of.key * model_kv_element_bytes(model)
                                              : h * widths * model->weight_bytes;
    const double query_bytes = pass->n_seqs * pass->new_tokens * h * widths * model->weight_bytes;
    return (struct pass_part){"attention", 2 * h * widths * pass->new_tokens * kv_tokens,
                              kv_tokens * kv_bytes + query_bytes};
}

/* The products behind latents. Those of keys and values: of all tokens, or of each head's queries
 * and outputs with its part of the same weights, in 16 bits. */
static struct pass_part latent_ups(const struct model *model, int32_t tensor_parallel,
                                   const struct pass *pass)
{
    struct model_linear ups[MODEL_UPS];
    const double h = model_q_heads_per_rank(model, tensor_parallel);
    const double m = pass->n_seqs * pass->new_tokens;
    const double matrix_bytes = model_element_bytes(model, MODEL_PART_ATTENTION);
    const double rows = pass->n_seqs * (pass->context_tokens + pass->new_tokens);
    const struct model_linear w_uk = {"kv up", model->kv_lora_rank, model->qk_nope_head_dim};
    const struct model_linear w_uv = {"kv up", model->v_head_dim, model->kv_lora_rank};
    model_latent_ups(model, tensor_parallel, ups);
    const struct pass_part none = {"qkv", 0, 0};
    const struct pass_part q =
        ups[MODEL_Q_UP].n > 0 ? product(model, &ups[MODEL_Q_UP], m, 1, matrix_bytes) : none;
    if (ups[MODEL_KV_UP].n == 0)
        return q;
    const struct pass_part kv = is_absorbed(pass)
                                    ? both(product(model, &w_uk, m * h, h, model->weight_bytes),
                                           product(model, &w_uv, m * h, h, model->weight_bytes))
                                    : product(model, &ups[MODEL_KV_UP], rows, 1, matrix_bytes);
    return ups[MODEL_Q_UP].n > 0 ? both(q, kv) : kv;
}

/* ---- attention ---- */

static struct pass_part full_attention(const struct model *model, int32_t tensor_parallel,
                                       const struct pass *pass)
{
    const double all = pass->context_tokens + pass->new_tokens;
    return model_is_latent(model) ? latent_attention(model, tensor_parallel, pass)
                                  : attention_to(model, tensor_parallel, pass, all, all);
}

/* Of a layer in the mean. */
static struct pass_part attention(const struct model *model, int32_t tensor_parallel,
                                  const struct pass *pass)
{
    const double all = pass->context_tokens + pass->new_tokens, window = model->window_tokens;
    const struct pass_part full = full_attention(model, tensor_parallel, pass);
    const int32_t others = model->window_layers + model->state_layers;
    const double share = (double)others / model->layers;
    if (others == 0 || (model->state_layers == 0 && window >= all))
        return full;
    const struct pass_part part = model->state_layers > 0
                                      ? state_rule(model, tensor_parallel, pass)
                                      : attention_to(model, tensor_parallel, pass, window,
                                                     fmin(window + pass->new_tokens - 1, all));
    return both(times(1 - share, full), times(share, part));
}

/* ---- the parts ---- */

/* The MLPs of all layers: those that a router picks, the shared ones, and the first layers' own. */
static struct pass_part mlp_of(const struct model *model, enum model_part part, int64_t columns,
                               double m)
{
    const int64_t up = model->mlp == MODEL_MLP_GATED ? 2 * columns : columns, d = model->d_model;
    const double matrix_bytes = model_element_bytes(model, part);
    if (columns == 0)
        return (struct pass_part){"mlp", 0, 0};
    return both(product(model, &(struct model_linear){"mlp up", up, d}, m, 1, matrix_bytes),
                product(model, &(struct model_linear){"mlp down", d, columns}, m, 1, matrix_bytes));
}

static struct pass_part mlps(const struct model *model, int32_t tensor_parallel, double m)
{
    struct model_linear linears[MODEL_LINEARS];
    const double expert_bytes = model_element_bytes(model, model_picked_part(model));
    const double picks = m * model_experts_per_token(model);
    const double experts = model_distinct_experts(model, m);
    const int32_t n_dense = model->first_dense_layers, n_bare = model->bare_layers;
    model_layer_linears(model, tensor_parallel, linears);
    const struct pass_part picked =
        both(product(model, &linears[MODEL_MLP_UP], picks, experts, expert_bytes),
             product(model, &linears[MODEL_MLP_DOWN], picks, experts, expert_bytes));
    const struct pass_part layer = both(
        picked, mlp_of(model, MODEL_PART_SHARED, model_shared_columns(model, tensor_parallel), m));
    return both(times(model->layers - n_dense - n_bare, layer),
                times(n_dense, mlp_of(model, MODEL_PART_MLP,
                                      model_dense_columns(model, tensor_parallel), m)));
}

static struct pass_part of_layers(const struct model *model, const char *name, struct pass_part one)
{
    const struct pass_part all = times(model->layers, one);
    return (struct pass_part){name, all.flops, all.bytes};
}

void pass_count(const struct model *model, int32_t tensor_parallel, const struct pass *pass,
                struct pass_part parts[PASS_PARTS])
{
    struct model_linear linears[MODEL_LINEARS];
    const struct model_linear head = model_lm_head(model, tensor_parallel);
    const double m = pass->n_seqs * pass->new_tokens;
    model_layer_linears(model, tensor_parallel, linears);
    const struct pass_part ups = latent_ups(model, tensor_parallel, pass);
    const struct pass_part qkv =
        both(around(model, tensor_parallel, m, &linears[0], true),
             model->state_layers > 0 ? times(1 - state_share(model), ups) : ups);
    parts[PASS_QKV] = of_layers(model, "qkv", qkv);
    parts[PASS_ATTENTION] = of_layers(model, "attention", attention(model, tensor_parallel, pass));
    parts[PASS_OUT] =
        of_layers(model, "out", around(model, tensor_parallel, m, &linears[1], false));
    parts[PASS_MLP] = mlps(model, tensor_parallel, m);
    parts[PASS_MLP].name = "mlp";
    parts[PASS_HEAD] =
        product(model, &head, pass->all_logits ? m : pass->n_seqs, 1, model->weight_bytes);
}

struct pass_part pass_sum(const struct pass_part parts[PASS_PARTS])
{
    struct pass_part sum = {"sum", 0, 0};
    for (int i = 0; i < PASS_PARTS; i++)
        sum = both(sum, parts[i]);
    return sum;
}
