/* Sarathi-Serve, Vidur and Orca under pipeline parallelism: a request is in one step at a time, and
 * the micro batches of decodes stay apart: each goes with the slot that it started in. */
#include "inflight/policy.h"

struct sarathi {
    int32_t chunk_tokens;
};

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct sarathi *p = self;
    const struct ifl_requests running = ifl_running(step);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    for (size_t i = 0; i < running.n; i++) {
        const int32_t *slot = ifl_mine(self, running.of[i]);
        if (running.of[i]->n_in_flight == 0 && *slot == view->slot)
            ifl_give(step, running.of[i], ifl_decodes(running.of[i]) ? 1 : p->chunk_tokens, 0);
    }
    while (step->n_tokens < p->chunk_tokens && (r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (!ifl_settled(step, r, ifl_start(step, r, p->chunk_tokens - step->n_tokens)))
            return;
}
static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    int32_t *slot = ifl_mine(self, r);
    *slot = view->slot;
}
static const struct ifl_batching_ops ops = {plan};
const struct ifl_policy sarathi_pipeline = {
    .kind = IFL_BATCHING,
    .name = "sarathi-pipeline",
    .request_bytes = sizeof(int32_t),
    .on_start = on_start,
    .ops.batching = &ops,
};
