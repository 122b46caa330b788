/* Messages between the ranks of a model in each layer: all-reduces of a tensor-parallel group, the
 * exchange of tokens between data-parallel ranks around experts, and the merge of attention that is
 * split over the context. */
#ifndef SIM_COST_COLLECTIVE_H
#define SIM_COST_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "cost/hardware.h"

/* Fills the lines of the all-reduce of n_gpus: those of the deployment, or those of the profile for
 * that number, or those for the nearest lower number n' in the profile (the lowest, if none is
 * lower), with
 *
 *     latency x (n + 2) / (n' + 2)      rate x (n' - 1) / n' x n / (n - 1)
 *
 * A ring has 2 (n - 1) hops and sends 2 (n - 1) / n of the message over each link (Patarasuk and
 * Yuan, 2009). The constant beside the hops is measured: NCCL takes 1.5 and 2.5 times as long over
 * 4 and 8 GPUs as over 2 for small messages (ai-dynamo/aiconfigurator at 095f58a5: 6.2, 9.5, 15.6
 * us on H100; 10.3, 15.1, 25.1 us on B200; over PCIe more, 1.9 and 3.9 on L40S). The latency of
 * large messages, which is the time to fill a pipeline, does not grow (8 MiB in vLLM's graphs: 51,
 * 43, 39 us on B200). Returns false if there is no all-reduce. */
bool allreduce_lines(const struct platform *platform, int32_t n_gpus, struct lines_profile *lines);

/* The exchange of a layer of experts between n_ranks: `own` tokens of the rank with most of them,
 * `all` of all ranks together, in elements of d_model.
 *
 *     gather      (n - 1) / n all d (dispatch + combine): every rank receives all tokens and sends
 *                 back its part of their sums (vLLM's allgather_reducescatter, its default)
 *     all_to_all  own min(k, n) d (dispatch + combine): a token goes to the ranks of its k experts,
 *                 once each (DeepEP)
 *
 * bytes, with `dispatch` and `combine` bytes an element; 2 latencies and the bytes at the rate. */
struct exchange_shape {
    double own, all, d_model, experts_per_token;
    int32_t n_ranks;
    double element_bytes; /* bytes of an element if the deployment has 0 for that direction */
};
double exchange_bytes(const struct deployment_exchange *exchange,
                      const struct exchange_shape *shape);
double exchange_s(const struct deployment_exchange *exchange, const struct exchange_shape *shape);

#endif
