/* Layers with a state in place of K/V, by the rules of model.h. The gated delta rule has a profile
 * of its own, which Kimi Delta Attention takes, too. Prompts of the other rules go by the bytes
 * that their kernels move; decodes, which read and write a state once as those of the delta rule
 * do, take the same time.
 */
#ifndef SIM_COST_ROOFLINE_STATE_H
#define SIM_COST_ROOFLINE_STATE_H

#include "cost/roofline.h"

/* Time in one layer of the operations in place of attention and of the products around it
 * (roofline_projections_s). The convolution is an element-wise operation, which also reads and
 * writes a decode's last tokens; so are gates and norms. */
double roofline_state_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals);
double roofline_state_projections_s(const struct roofline_rank *rank, double n_tokens);

#endif
