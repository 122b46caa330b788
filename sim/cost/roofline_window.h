/* Layers with a window of attention: a query attends to the last `window` tokens alone.
 *
 * The totals of a step are sums over its sequences, so the context of a single sequence is not
 * known. Decodes read the sum of their contexts, but at most the window W each, n W in all. This is
 * exact if all contexts are longer than the window, or all are shorter. Otherwise it is too much,
 * by at most the tokens that the shorter contexts lack to the window. With attention in chunks of W
 * tokens (`chunked`) decodes read n W / 2 in all if the sum of their contexts exceeds n W. The
 * chunks of prompts in the step count as chunks of the mean length behind contexts of the mean
 * length. */
#ifndef SIM_COST_ROOFLINE_WINDOW_H
#define SIM_COST_ROOFLINE_WINDOW_H

#include "cost/roofline.h"

/* Returns the totals of the step as layers with a window see them, and the context that so many
 * decodes read there. */
struct ifl_step_totals window_totals(const struct roofline_rank *rank,
                                     const struct ifl_step_totals *totals);
double window_context(const struct roofline_rank *rank, double n_seqs, double context_tokens);

/* Returns the mean over all layers of a time that is full_s with full attention and other_s in
 * layers with a window or a state. */
static inline double others_mean(const struct roofline_rank *rank, double full_s, double other_s)
{
    const double layers = rank->model->layers, others = rank->other_layers;
    return ((layers - others) * full_s + others * other_s) / layers;
}

#endif
