/* Sparse attention with an indexer (DeepSeek-V3.2, DeepSeek-AI 2025, section 2.1), over latents.
 * The index heads of a query score each token before it by one key a token, and the query attends
 * to the index_topk tokens with the highest scores. Queries of prompts attend to latents, too, in
 * the form that decodes use. */
#ifndef SIM_COST_ROOFLINE_SPARSE_H
#define SIM_COST_ROOFLINE_SPARSE_H

#include "cost/roofline.h"

static inline bool is_sparse(const struct roofline_rank *rank)
{
    return rank->model->index_topk > 0;
}

/* Time per layer that the indexer adds to the products of n_tokens. */
double roofline_index_products_s(const struct roofline_rank *rank, double n_tokens);
/* Time per layer of the indexer's scores and of the attention of prompts. The attention of decodes
 * is latent attention to at most index_topk tokens. `seen` are the totals with so many tokens of
 * context (roofline_window.h). */
double roofline_sparse_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals,
                         const struct ifl_step_totals *seen);

#endif
