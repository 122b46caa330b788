/* Layers whose attention sees the last tokens alone.
 *
 * A step is known by sums over its sequences, not by each of them. Decodes read at most the window
 * each, n W together; that is exact where all contexts are on one side of the window, and too much
 * by what the shorter ones leave otherwise. A chunk of a prompt counts as one of mean length behind
 * a context of mean length. */
#ifndef SIM_COST_ROOFLINE_WINDOW_H
#define SIM_COST_ROOFLINE_WINDOW_H

#include "cost/roofline.h"

/* The step as layers with a window see it, and what so many decodes read there of a context. */
struct ifl_step_totals window_totals(const struct roofline_rank *rank,
                                     const struct ifl_step_totals *totals);
double window_context(const struct roofline_rank *rank, double n_seqs, double context_tokens);

/* The mean over layers of what takes full_s without a window and window_s with it. */
static inline double window_mean(const struct roofline_rank *rank, double full_s, double window_s)
{
    const double layers = rank->model->layers;
    return ((layers - rank->window_layers) * full_s + rank->window_layers * window_s) / layers;
}

#endif
