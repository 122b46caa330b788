/* DistServe (OSDI 2024): a prompt goes to the prefill replica with the fewest in progress. The
 * decode replica copies prompts before a step, while waiting ones hold few of its blocks. */
#include "inflight/policy.h"

static struct ifl_route pick(const void *self, const struct ifl_fleet *fleet)
{
    size_t best = ifl_nth(fleet, IFL_PREFILLS, 0);
    for (size_t k = 1; k < ifl_up(fleet, IFL_PREFILLS); k++) {
        const size_t i = ifl_nth(fleet, IFL_PREFILLS, k);
        if (*(int32_t *)ifl_at(self, i) < *(int32_t *)ifl_at(self, best))
            best = i;
    }
    return ifl_send_pair(best, ifl_least(fleet, IFL_DECODES));
}
static void on_sent(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    (void)fleet;
    ++*(int32_t *)ifl_at(self, replica);
}
static void on_first_token(void *self, const struct ifl_fleet *fleet, size_t replica)
{
    (void)fleet;
    --*(int32_t *)ifl_at(self, replica);
}
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)self;
    while (view->n_loaded_blocks < view->limits->n_blocks / 20 &&
           (r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (ifl_load(step, r, ifl_hit(step, r).n_below, IFL_LOAD_BEFORE) != IFL_YES)
            break;
    while ((r = ifl_next(step, IFL_IN_LOADED, &cursor))) /* loaded before an earlier step */
        (void)ifl_start(step, r, 1);
    ifl_decode_one_by_one(step, 0);
}
const struct ifl_route_ops distserve_route = {
    .pick = pick, .on_sent = on_sent, .on_first_token = on_first_token};
const struct ifl_batching_ops distserve_decode = {plan};
