/* H2O (NeurIPS 2023): a request keeps the K/V of at most `budget_tokens` tokens, heavy hitters and
 * recent ones, while positions go on; admission counts slots, not positions. */
#include "inflight/policy.h"

struct h2o {
    int32_t budget_tokens;
};

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct h2o *p = self;
    const struct ifl_requests running = ifl_running(step);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)view;
    ifl_decode_one_by_one(step, 0);
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING &&
            ifl_n_slots(running.of[i]) + ifl_n_now(running.of[i]) > p->budget_tokens)
            ifl_keep(step, running.of[i], p->budget_tokens);
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (!ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            return;
}
const struct ifl_batching_ops h2o = {plan};
