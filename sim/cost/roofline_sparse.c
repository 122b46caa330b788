#include "cost/roofline_sparse.h"

#include <math.h>

#include "cost/roofline_layers.h"

/* Share of the layers with an indexer of their own. */
static double index_frac(const struct model *model)
{
    return (double)model_index_layers(model) / model->layers;
}

/* Each rank has all index heads, since it needs the tokens that they pick. In the mean of a layer.
 */
double roofline_index_products_s(const struct roofline_rank *rank, double n_tokens)
{
    const struct model *model = rank->model;
    const double width = model->index_head_dim, heads = model->index_heads;
    return index_frac(model) * (roofline_product_s(rank, MODEL_PART_ATTENTION, n_tokens,
                                                   heads * width, model->q_lora_rank) +
                                roofline_product_s(rank, MODEL_PART_ATTENTION, n_tokens,
                                                   width + heads, model->d_model));
}

/* FlashMLA's kernel of prompts has tiles of 64 heads; with K/V of 8 bits fewer than 32 take as long
 * as 128 (tables of a H200, vLLM 0.24). */
static double tile_heads(const struct roofline_rank *rank)
{
    const double heads = rank->heads.q_heads;
    return heads < 32 && rank->heads.element_bytes == 1 ? 128 : fmax(heads, 64);
}

/* Pairs of a query of prompts and a token before it. */
static double pairs_of(const struct ifl_step_totals *totals)
{
    return (double)totals->prefill_q_kv + (double)totals->prefill_q_q / 2;
}

double roofline_sparse_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals,
                         const struct ifl_step_totals *seen)
{
    const struct model *model = rank->model;
    const struct model_widths widths = model_latent_decode(model);
    const double index_width = (double)model->index_heads * model->index_head_dim;
    const double frac = index_frac(model);
    struct sparse_shape shape = {
        .n_prompt_tokens = totals->n_prefill_tokens,
        .n_decodes = totals->n_tokens - totals->n_prefill_tokens,
        .prompt_flops = 2 * tile_heads(rank) * (widths.key + widths.value) * pairs_of(seen),
        .index_flops = 2 * index_width * pairs_of(totals),
        .index_bytes = (double)totals->decode_context * model_index_bytes(model),
    };
    const double s = sparse_s(rank->hardware, &shape);
    if (frac >= 1)
        return s;
    shape.index_flops = shape.index_bytes = 0;
    return frac * s + (1 - frac) * sparse_s(rank->hardware, &shape);
}
