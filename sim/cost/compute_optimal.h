/* The model size and the data that a compute budget is best spent on.
 *
 *     L(N, D) = 406.4 / N^0.34 + 410.7 / D^0.29 + 1.69,  C = 6 N D
 *
 * Hoffmann et al., Training Compute-Optimal Large Language Models, 2022, equation 10. */
#ifndef SIM_COST_COMPUTE_OPTIMAL_H
#define SIM_COST_COMPUTE_OPTIMAL_H

#include "inflight/error.h"

struct compute_optimal {
    double flops, parameters, tokens, loss;
};

/* Finds the least loss that `flops` of training can reach. Returns IFL_E_INPUT outside 1e12 to
 * 1e36. */
int compute_optimal_find(double flops, struct compute_optimal *optimal, struct ifl_error *error);

#endif
