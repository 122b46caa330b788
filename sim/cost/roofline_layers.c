/* The time of the layers of a forward pass, except attention. */
#include "cost/roofline_layers.h"

#include "cost/roofline_sparse.h"
#include "cost/roofline_state.h"

#include <math.h>

/* The part of the tokens' picks that the experts of this rank get. */
static double experts_share(const struct roofline_rank *rank)
{
    const double imbalance = rank->exchange->imbalance;
    const int32_t n_ranks = rank->parallel.expert;
    return n_ranks > 1 ? fmax(imbalance, 1) / n_ranks : 1;
}

/* What the experts of this rank compute: rows, and different experts among their weights. */
static double rank_picks(const struct roofline_rank *rank, struct roofline_tokens m)
{
    return m.all * model_experts_per_token(rank->model) * experts_share(rank);
}

static double rank_experts(const struct roofline_rank *rank, struct roofline_tokens m)
{
    return model_most_experts(rank->model, m.all);
}

/* Of a token, by an activation over so many columns. */
static double activation_elements(const struct roofline_rank *rank, double columns)
{
    return (rank->model->mlp == MODEL_MLP_GATED ? 3 : 2) * columns;
}

/* A norm that also adds the residual: reads both and writes both. */
static double norm_elements(const struct roofline_rank *rank)
{
    const int32_t shares = rank->parallel.sequence ? rank->parallel.tensor : 1;
    return 4.0 * rank->model->d_model / shares;
}

/* Four fused kernels a layer: two norms, rotary embedding of queries and keys in place, and the
 * MLP's activation, unless that is part of the experts. One more for the norm of each latent. */
static double layer_elementwise_s(const struct roofline_rank *rank, double m,
                                  double activated_elements)
{
    const struct model *model = rank->model;
    const int n_branches = model->branch_norms ? 2 : 0; /* norms that add no residual */
    const double elements = 2 * norm_elements(rank) + rank->rotary_elements + activated_elements +
                            2 * rank->latent_elements + n_branches * norm_elements(rank) / 2;
    const int n_launches = (activated_elements > 0 ? 4 : 3) + rank->n_latents + n_branches;
    return elementwise_s(rank->hardware, n_launches, m * elements * model->weight_bytes);
}

static double experts_elements(const struct roofline_rank *rank, struct roofline_tokens m)
{
    if (rank->fused_experts)
        return activation_elements(rank, rank->shared_columns);
    return activation_elements(rank, rank->ffn_columns) * model_experts_per_token(rank->model) *
               experts_share(rank) * (m.own > 0 ? m.all / m.own : 1) +
           activation_elements(rank, rank->shared_columns);
}

static double router_s(const struct roofline_rank *rank, double m)
{
    const struct model *model = rank->model;
    return gemm_s(rank->hardware, m, model->n_experts, model->d_model, model->weight_bytes);
}

static enum product_format part_format(const struct roofline_rank *rank, enum model_part part)
{
    return part == MODEL_PART_ATTENTION ? rank->attention_format : rank->product_format;
}

/* The elements of a part that are not quantised are multiplied in 16 bits. */
static double part_s(const struct roofline_rank *rank, enum model_part part,
                     struct gemm_group group)
{
    const struct model *model = rank->model;
    const double plain = model->plain_frac[part];
    double s = 0;
    group.element_bytes = model->weight_bytes;
    if (plain > 0) {
        group.weight_bytes = model->weight_bytes;
        s = plain * gemm_group_s(rank->hardware, &group);
    }
    if (plain >= 1)
        return s;
    group.weight_bytes = model_quantized_element_bytes(model, part);
    group.format = part_format(rank, part);
    return s + (1 - plain) * gemm_group_s(rank->hardware, &group);
}

/* Experts run as one group: the tokens' picks are its rows, and the router is a small product. */
static double linear_s(const struct roofline_rank *rank, int i, struct roofline_tokens m)
{
    const struct model *model = rank->model;
    const bool experts = i >= MODEL_MLP_UP;
    const struct gemm_group group = {
        .m = experts ? rank_picks(rank, m) : m.own,
        .n = (double)rank->linears[i].n,
        .k = (double)rank->linears[i].k,
        .n_weights = experts ? rank_experts(rank, m) : 1,
    };
    const bool routes = i == MODEL_MLP_UP && model->n_experts > 0;
    return (routes ? router_s(rank, m.own) : 0) +
           part_s(rank, experts ? model_picked_part(model) : MODEL_PART_ATTENTION, group);
}

/* The router and the experts, as one operation. */
static double fused_experts_s(const struct roofline_rank *rank, struct roofline_tokens m)
{
    const struct model *model = rank->model;
    const double plain = model->plain_frac[MODEL_PART_EXPERTS];
    struct expert_group group = {
        .n_picks = rank_picks(rank, m),
        .n_experts = rank_experts(rank, m),
        .n_matrices = model->mlp == MODEL_MLP_GATED ? 3 : 2,
        .d_model = model_expert_width(model),
        .d_ffn = rank->ffn_columns,
        .element_bytes = model->weight_bytes,
        .weight_bytes = model_quantized_element_bytes(model, MODEL_PART_EXPERTS),
        .format = rank->expert_format,
    };
    double s = router_s(rank, m.own) + (1 - plain) * experts_s(rank->hardware, &group);
    if (plain > 0) {
        group.weight_bytes = model->weight_bytes;
        if (experts_are_known(rank->hardware, EXPERTS_16_BIT))
            group.format = EXPERTS_16_BIT;
        s += plain * experts_s(rank->hardware, &group);
    }
    return s;
}

double roofline_product_s(const struct roofline_rank *rank, enum model_part part, double m,
                          double n, double k)
{
    return part_s(rank, part, (struct gemm_group){.m = m, .n = n, .k = k, .n_weights = 1});
}

/* An MLP beside experts, or in place of them. */
static double mlp_s(const struct roofline_rank *rank, enum model_part part, double m,
                    double columns)
{
    const double up = rank->model->mlp == MODEL_MLP_GATED ? 2 * columns : columns;
    const double d = rank->model->d_model;
    return columns > 0 ? roofline_product_s(rank, part, m, up, d) +
                             roofline_product_s(rank, part, m, d, columns)
                       : 0;
}

static double q_up_s(const struct roofline_rank *rank, double m)
{
    const struct model_linear *up = &rank->ups[MODEL_Q_UP];
    return up->n > 0
               ? roofline_product_s(rank, MODEL_PART_ATTENTION, m, (double)up->n, (double)up->k)
               : 0;
}

double roofline_latent_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const struct model *model = rank->model;
    const struct model_linear *up = &rank->ups[MODEL_KV_UP];
    const bool sparse = is_sparse(rank);
    const double n_prompt = totals->n_prefill_tokens, h = rank->heads.q_heads;
    const double decodes = totals->n_tokens - (sparse ? 0 : n_prompt);
    const double prompts = sparse ? 0 : n_prompt + (double)totals->prefill_kv_64;
    struct gemm_group absorbed = {.m = h * decodes,
                                  .n = model->kv_lora_rank,
                                  .k = model->qk_nope_head_dim,
                                  .n_weights = h,
                                  .element_bytes = model->weight_bytes,
                                  .weight_bytes = model->weight_bytes};
    double s =
        roofline_product_s(rank, MODEL_PART_ATTENTION, prompts, (double)up->n, (double)up->k);
    s += gemm_group_s(rank->hardware, &absorbed);
    absorbed.n = model->v_head_dim;
    absorbed.k = model->kv_lora_rank;
    s += gemm_group_s(rank->hardware, &absorbed);
    return s + (sparse ? roofline_index_products_s(rank, totals->n_tokens)
                       : latent_s(rank->hardware, n_prompt, decodes));
}

double roofline_projections_s(const struct roofline_rank *rank, double m)
{
    const struct roofline_tokens own = {m, m};
    const double elements = rank->rotary_elements + 2 * rank->latent_elements;
    double s = elementwise_s(rank->hardware, 1 + rank->n_latents,
                             m * elements * rank->model->weight_bytes);
    for (int i = 0; i < MODEL_MLP_UP; i++)
        s += linear_s(rank, i, own);
    return s + q_up_s(rank, m);
}

double roofline_hop_s(const struct roofline_rank *rank, double m)
{
    const struct model *model = rank->model;
    return send_recv_s(rank->hardware, m * model->d_model * model->weight_bytes);
}

double roofline_hops_s(const struct roofline_rank *rank, double m)
{
    const int32_t n_stages = rank->parallel.pipeline;
    return n_stages > 1 ? (n_stages - 1) * roofline_hop_s(rank, m) : 0;
}

/* A reduce-scatter and an all-gather send half of an all-reduce's bytes each. */
static double reductions_s(const struct roofline_rank *rank, double m)
{
    const double bytes = m * rank->model->d_model * rank->model->weight_bytes;
    if (rank->parallel.tensor <= 1)
        return 0;
    return rank->parallel.sequence ? 4 * lines_s(&rank->allreduce, bytes / 2)
                                   : 2 * lines_s(&rank->allreduce, bytes);
}

/* Ranks that share the context of a KV head gather one another's queries and merge their outputs by
 * the log-sum-exp of their parts: 2 d_head of 16 bits, or the widths of absorbed queries and
 * outputs, and 4 bytes for each query head of theirs. */
static double merge_s(const struct roofline_rank *rank, double m)
{
    const double bytes =
        m * rank->decode_heads.q_heads * (rank->merged_elements * rank->model->weight_bytes + 4);
    return rank->parallel.context > 1 ? 2 * lines_s(&rank->merge, bytes / 2) : 0;
}

static double experts_exchange_s(const struct roofline_rank *rank, struct roofline_tokens m)
{
    const struct model *model = rank->model;
    const struct deployment_exchange *exchange = rank->exchange;
    const struct exchange_shape shape = {m.own,
                                         m.all,
                                         model_expert_width(model),
                                         model_experts_per_token(model),
                                         rank->parallel.data,
                                         model->weight_bytes};
    if (rank->parallel.data <= 1)
        return 0;
    if (exchange->gb_per_s > 0)
        return exchange_s(exchange, &shape);
    return 2 * lines_s(&rank->gather, m.all * model_expert_width(model) * model->weight_bytes / 2);
}

/* What a server takes for experts in fp8 beyond the profile's kernels: some pad the rows of each
 * that a rank holds, picked or not, to those of a tile. */
static double held_experts_s(const struct roofline_rank *rank)
{
    const struct model *model = rank->model;
    if (model->n_experts == 0 || model->quantization != MODEL_FP8)
        return 0;
    return rank->exchange->expert_s * model->n_experts * model_rank_experts_frac(model) *
           (1 - model->plain_frac[MODEL_PART_EXPERTS]);
}

/* One of the first layers, without experts. */
static double dense_layer_s(const struct roofline_rank *rank, double m, double frac)
{
    const double columns = rank->dense_columns;
    const struct roofline_tokens own = {m, m};
    double layer_s = layer_elementwise_s(rank, m, activation_elements(rank, columns));
    for (int i = 0; i < MODEL_MLP_UP; i++)
        layer_s += linear_s(rank, i, own);
    layer_s += q_up_s(rank, m) + mlp_s(rank, MODEL_PART_MLP, m, columns);
    return layer_s * frac + reductions_s(rank, m) + merge_s(rank, m);
}

/* One without an MLP: attention or a state between one norm and one reduction. */
static double bare_layer_s(const struct roofline_rank *rank, double m, double frac)
{
    const double norm_s =
        elementwise_s(rank->hardware, 1, m * norm_elements(rank) * rank->model->weight_bytes);
    return (norm_s + roofline_projections_s(rank, m)) * frac + reductions_s(rank, m) / 2 +
           merge_s(rank, m);
}

/* With experts, or of a dense model. */
static double layer_s(const struct roofline_rank *rank, struct roofline_tokens m, double frac)
{
    const int n_linears = rank->fused_experts ? MODEL_MLP_UP : MODEL_LINEARS;
    double s = layer_elementwise_s(rank, m.own, experts_elements(rank, m));
    for (int i = 0; i < n_linears; i++)
        s += linear_s(rank, i, m);
    if (rank->fused_experts)
        s += fused_experts_s(rank, m);
    s += q_up_s(rank, m.own) + mlp_s(rank, MODEL_PART_SHARED, m.own, rank->shared_columns);
    s *= frac;
    s += reductions_s(rank, m.own) + merge_s(rank, m.own) + experts_exchange_s(rank, m) +
         held_experts_s(rank);
    return s;
}

double roofline_layers_s(const struct roofline_rank *rank, struct roofline_tokens m, double frac)
{
    const int32_t n_dense = rank->model->first_dense_layers, n_bare = rank->model->bare_layers;
    const double first_s = n_dense > 0 ? n_dense * dense_layer_s(rank, m.own, frac) : 0;
    double s = (rank->model->layers - n_dense - n_bare) * layer_s(rank, m, frac) + first_s +
               roofline_hops_s(rank, m.own);
    if (IFL_RARE(n_bare > 0))
        s += n_bare * bare_layer_s(rank, m.own, frac);
    if (IFL_RARE(rank->state_layers > 0))
        s += frac * rank->state_layers *
             (roofline_state_projections_s(rank, m.own) - roofline_projections_s(rank, m.own));
    return s;
}

/* A layer reads the keys again that the window votes on, pools the votes and
 * chooses, and gathers what it keeps of keys and values. The products of the window with the keys
 * are left out: a thousandth of those of the prompt. */
enum { KEEP_LAUNCHES = 5 };

double roofline_keep_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals)
{
    const double layers = (double)rank->model->layers / rank->parallel.pipeline;
    const double bytes =
        rank->token_bytes * (2.0 * totals->n_slots_kept + 0.5 * totals->n_keys_voted);
    return elementwise_s(rank->hardware, KEEP_LAUNCHES * layers, bytes);
}
