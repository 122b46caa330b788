/* Remaining steps, Llumnix's dispatch (Sun et al., OSDI 2024): the replica where free memory lasts
 * longest. It is measured as free blocks, less those that waiting prompts need, per request at the
 * replica: the blocks by which each request may still grow. */
#include "inflight/policy.h"

static double blocks_each(const struct ifl_routing *routing, size_t i)
{
    const struct ifl_load *load = &routing->of[i];
    const int32_t n = load->n_running + load->n_waiting;
    const double awaited = (double)load->n_waiting_tokens / routing->limits->block_tokens;
    return (load->n_free_blocks - awaited) / (n > 0 ? n : 1);
}

static size_t pick(const void *self, const struct ifl_routing *routing)
{
    size_t best = 0;
    (void)self;
    for (size_t i = 1; i < routing->n; i++)
        if (blocks_each(routing, i) > blocks_each(routing, best))
            best = i;
    return best;
}

static const struct ifl_route_ops ops = {.pick = pick};

const struct ifl_policy policy_route_remaining_steps = {
    .kind = IFL_ROUTE,
    .name = "remaining-steps",
    .doc = "most free blocks for each request there (Llumnix)",
    .ops.route = &ops,
};
