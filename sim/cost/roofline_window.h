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

/* The mean over layers of what takes full_s where all is attended to, and other_s in layers with a
 * window or a state. */
static inline double others_mean(const struct roofline_rank *rank, double full_s, double other_s)
{
    const double layers = rank->model->layers, others = rank->other_layers;
    return ((layers - others) * full_s + others * other_s) / layers;
}

#endif
