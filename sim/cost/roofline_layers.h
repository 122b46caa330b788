/* The time of the layers of a forward pass by the roofline, except attention itself. */
#ifndef SIM_COST_ROOFLINE_LAYERS_H
#define SIM_COST_ROOFLINE_LAYERS_H

#include "cost/roofline.h"

/* New tokens of a step: of this rank, and of all data-parallel ranks. */
struct roofline_tokens {
    double own, all;
};

/* Time of all layers: products, element-wise operations, messages between ranks and stages. `frac`
 * is a factor of the kernels' times; messages have times of their own. */
double roofline_layers_s(const struct roofline_rank *rank, struct roofline_tokens m, double frac);

/* One product with weights of a part's format. */
double roofline_product_s(const struct roofline_rank *rank, enum model_part part, double m,
                          double n, double k);

/* The products of a layer's attention, the norms of its latents and the rotary embedding. */
double roofline_projections_s(const struct roofline_rank *rank, double m);

/* Products of one layer with W^UK and W^UV, of a model with latent attention, and the kernels
 * between them. Prompts compute keys
 * and values of their new tokens, and anew those of the tokens before them, of which the latent
 * alone is there (rounded up to 64 for each sequence). Decodes multiply each head's query by its
 * W^UK, and its output by its W^UV (DeepSeek-V2, section 2.1.2: absorbed): batched products of 16
 * bits. */
double roofline_latent_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals);

/* Time to give up K/V of prompts, in all layers of a stage. */
double roofline_keep_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals);

/* Each stage sends the hidden states of all tokens to the next (Narayanan et al., SC 2021, 3.2):
 * one of these messages, and all. */
double roofline_hop_s(const struct roofline_rank *rank, double m);
double roofline_hops_s(const struct roofline_rank *rank, double m);

#endif
