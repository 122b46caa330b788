/* Retract the shortest output, as SGLang does (2026-08, python/sglang/srt/managers/
 * schedule_batch.py, retract_decode). The victim is the decoding request with the shortest output;
 * ties go to the longest prompt, then to the last started. Its K/V is dropped and it goes to the
 * end of the queue.
 *
 * At least one request goes on decoding. If there is no other decode, a prompt that has begun is
 * the victim; if there is none, no request is (SGLang aborts a last request that lacks memory).
 * With contiguous blocks, which cannot grow, a last request starts over with more of them. */
#include "inflight/policy.h"

static bool gives_way_before(const struct ifl_view *view, const struct ifl_request *a,
                             const struct ifl_request *b)
{
    if (!b || ifl_known_out(view, a) != ifl_known_out(view, b))
        return !b || ifl_known_out(view, a) < ifl_known_out(view, b);
    return a->n_prompt >= b->n_prompt;
}

static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    (void)self;
    const struct ifl_requests running = ifl_running(step);
    const struct ifl_request *shortest = NULL, *begun = NULL;
    size_t n_decode = 0;
    for (size_t i = 0; i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        if (r->state != IFL_RUNNING || ifl_n_now(r) != 0)
            continue;
        if (!ifl_decodes(r)) {
            begun = r;
            continue;
        }
        n_decode++;
        if (gives_way_before(view, r, shortest))
            shortest = r;
    }
    const bool needy_decodes = needy->state == IFL_RUNNING && ifl_decodes(needy);
    const bool keeps_one = n_decode > 1 || (n_decode == 1 && !needy_decodes);
    const struct ifl_request *victim = keeps_one ? shortest : begun;
    if (!victim && view->limits->contiguous && needy->state == IFL_RUNNING)
        victim = needy;
    return (struct ifl_victim){victim, victim ? IFL_RECOMPUTE : IFL_KEEP, IFL_BACK};
}

static const struct ifl_preempt_ops ops = {pick, NULL};

const struct ifl_policy policy_preempt_shortest_output = {
    .kind = IFL_PREEMPT,
    .name = "shortest-output",
    .doc =
        "preempts the request with the shortest output; it goes to the end of the queue (SGLang)",
    .steady = ifl_always_steady,
    .ops.preempt = &ops,
};
