/* vLLM v1 under pipeline parallelism: chunks of a prompt may be in several steps in flight; a
 * decode has nothing left to compute until its token is known, and is passed over. */
#include "inflight/policy.h"

struct vllm_pipeline {
    int32_t max_tokens, max_seqs;
};

static int32_t at_most(int32_t n, int32_t most)
{
    return n < most ? n : most;
}
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct vllm_pipeline *p = self;
    const struct ifl_requests running = ifl_running(step);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)view;
    for (size_t i = 0; i < running.n; i++)
        if (ifl_todo(running.of[i]) > 0)
            ifl_give(step, running.of[i],
                     at_most(ifl_todo(running.of[i]), p->max_tokens - step->n_tokens), 0);
    while (step->n_running_seqs < p->max_seqs && step->n_tokens < p->max_tokens &&
           (r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        const int32_t n = at_most(ifl_todo(r), p->max_tokens - step->n_tokens);
        if (!ifl_settled(step, r, ifl_start(step, r, n)))
            return;
    }
}
const struct ifl_batching_ops vllm_pipeline = {plan};
