/* Layers that have a state in place of K/V, behind a short convolution: a gated delta rule (Gated
 * DeltaNet; Yang et al. 2024, arXiv 2412.06464), or Mamba-2 (Dao & Gu 2024, arXiv 2405.21060). In
 * both a decode reads and writes the state once, in the same time. */
#ifndef SIM_COST_ROOFLINE_STATE_H
#define SIM_COST_ROOFLINE_STATE_H

#include "cost/roofline.h"

/* In one layer: what takes the place of attention, and of the products around it
 * (roofline_projections_s). The convolution is an element-wise operation, which reads and writes a
 * decode's last tokens, too; so is the norm with the gate. */
double roofline_state_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals);
double roofline_state_projections_s(const struct roofline_rank *rank, double n_tokens);

#endif
