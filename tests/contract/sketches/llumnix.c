/* Llumnix (OSDI 2024): dispatch to the replica with free blocks for the longest time; every 50 ms
 * the shortest request of the most loaded replica moves to the least loaded one while it decodes.
 */
#include "inflight/policy.h"

static double freeness(const struct ifl_fleet *fleet, size_t i)
{
    const struct ifl_load *load = ifl_load_of(fleet, i);
    const double awaited = (double)load->n_waiting_tokens / load->limits->block_tokens;
    return (load->n_free_blocks - awaited) / (load->n_running + load->n_waiting + 1);
}
static size_t freest(const struct ifl_fleet *fleet, double sign)
{
    size_t best = ifl_nth(fleet, IFL_DECODES, 0);
    for (size_t k = 1; k < ifl_up(fleet, IFL_DECODES); k++) {
        const size_t i = ifl_nth(fleet, IFL_DECODES, k);
        if (sign * freeness(fleet, i) > sign * freeness(fleet, best))
            best = i;
    }
    return best;
}
static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    (void)self;
    return ifl_send(freest(fleet, 1));
}
static int64_t balance(void *self, const struct ifl_fleet *fleet)
{
    const struct ifl_requests running = ifl_running_at(fleet, freest(fleet, -1));
    const struct ifl_request *shortest = running.n > 0 ? running.of[0] : NULL;
    (void)self;
    for (size_t i = 1; i < running.n; i++)
        if (running.of[i]->state != IFL_MOVING &&
            ifl_n_blocks(running.of[i]) < ifl_n_blocks(shortest))
            shortest = running.of[i];
    if (shortest)
        (void)ifl_migrate(fleet, shortest, freest(fleet, 1));
    return fleet->now_ns + 50000000;
}
const struct ifl_route_ops llumnix = {.pick = pick, .balance = balance};
