/* Remaining steps, Llumnix's dispatch (Sun et al., OSDI 2024; AlibabaPAI/llumnix 24220fb of
 * 2025-08, llumnix/load_computation.py, RemainingStepsLoad): the replica where free memory lasts
 * longest. This is measured as free blocks, minus those that waiting prompts need, per request at
 * the replica: the blocks by which each request may still grow. An idle replica comes before all
 * others; of equal replicas the first is taken. The source rounds each waiting prompt up to blocks;
 * here the sum of the prompts is divided. */
#include <math.h>

#include "inflight/policy.h"

static double blocks_each(const struct ifl_load *load)
{
    const int32_t n = load->n_running + load->n_waiting;
    const double awaited = (double)load->n_waiting_tokens / load->limits->block_tokens;
    return n > 0 ? (load->n_free_blocks - awaited) / n : INFINITY;
}

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    size_t best = ifl_nth(fleet, IFL_PREFILLS, 0);
    (void)self;
    for (size_t k = 1; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        if (blocks_each(ifl_load_of(fleet, i)) > blocks_each(ifl_load_of(fleet, best)))
            best = i;
    }
    return ifl_send(best);
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_remaining_steps = {
    .kind = IFL_ROUTE,
    .name = "remaining-steps",
    .doc = "replica with most free blocks per request (Llumnix)",
    .ops.route = &ops,
};
