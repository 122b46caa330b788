/* Speculation by n-gram look-up, as vLLM v1: each decode verifies up to MAX_DRAFT guessed tokens;
 * what was rejected is rolled back, and the next guess is as long as the last one that held. */
#include "inflight/policy.h"

enum { MAX_DRAFT = 5 };

static int32_t draft_of(const void *self, const struct ifl_request *r)
{
    const int32_t left = r->n_max_new - ifl_n_out(r) - 1;
    const int32_t *last = ifl_mine(self, r), want = *last < MAX_DRAFT ? *last + 1 : MAX_DRAFT;
    return want < left ? want : left;
}
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    (void)view;
    for (size_t i = 0; i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        while (r->state == IFL_RUNNING && ifl_todo(r) > 0 &&
               ifl_schedule_drafts(step, r, ifl_todo(r), draft_of(self, r), 0) != IFL_YES)
            if (!ifl_make_room(step, r))
                break;
    }
}
static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct ifl_results results = ifl_results(end);
    (void)view;
    for (size_t i = 0; i < results.n; i++)
        if (results.of[i].n_draft > 0)
            *(int32_t *)ifl_mine(self, results.of[i].request) = results.of[i].n_sampled - 1;
}
static const struct ifl_batching_ops ops = {plan};
const struct ifl_policy ngram = {.kind = IFL_BATCHING,
                                 .name = "ngram",
                                 .request_bytes = sizeof(int32_t),
                                 .on_step_end = on_step_end,
                                 .ops.batching = &ops};
