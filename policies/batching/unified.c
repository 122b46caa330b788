/* Unified batching, as vLLM v1 schedules (vllm/v1/core/sched/scheduler.py, 2025 to 2026-08).
 *
 * There is no phase. Each request has tokens that are not computed yet, one of a decode or many of
 * a prompt, and the step lets it catch up as far as a budget goes: running requests in the order in
 * which they started, then, if nobody had to give way, waiting ones in rank order until the first
 * that must wait. A running request that finds no blocks takes them from the preempt module's
 * victim; one that gives way itself ends the walk. */
#include "inflight/policy.h"

struct unified {
    int32_t max_seqs;
    int32_t max_batched_tokens;
    int32_t long_prefill_tokens; /* 0: no limit */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct unified, max_seqs), 256, 1, 1 << 20, NULL, "sequences",
     "most sequences on the device"},
    {"max_batched_tokens", IFL_INT, offsetof(struct unified, max_batched_tokens), 2048, 1, 1 << 30,
     NULL, "tokens", "token budget of a step, decodes included"},
    {"long_prefill_tokens", IFL_INT, offsetof(struct unified, long_prefill_tokens), 0, 0, 1 << 30,
     NULL, "tokens", "most tokens of one request in a step (long_prefill_token_threshold); 0: any"},
};

static int32_t share_of(const struct unified *p, const struct ifl_step *step,
                        const struct ifl_request *r)
{
    const int32_t left = p->max_batched_tokens - step->n_tokens;
    const int32_t todo = ifl_todo(r);
    const int32_t most =
        p->long_prefill_tokens && p->long_prefill_tokens < left ? p->long_prefill_tokens : left;
    return todo < most ? todo : most;
}

static void serve_running(const struct unified *p, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING &&
            !ifl_give(step, running.of[i], share_of(p, step, running.of[i]), 0))
            return;
}

static void start_from(const struct unified *p, struct ifl_step *step, enum ifl_list list)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_tokens < p->max_batched_tokens && (r = ifl_next(step, list, &cursor))) {
        if (step->n_running_seqs + r->n_seqs > p->max_seqs)
            return;
        if (!ifl_settled(step, r, ifl_start(step, r, share_of(p, step, r))))
            return;
    }
}

static bool has_prompts(struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    return ifl_next(step, IFL_IN_PREFILL, &cursor) != NULL;
}

/* All decodes at once. They may be served before the prompts where that is the order of start:
 * without a limit a prompt is cut only where the budget ends, so that nobody starts behind it. */
static bool serve_decodes(const struct unified *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    return view->n_running <= (size_t)p->max_batched_tokens &&
           (p->long_prefill_tokens == 0 || !has_prompts(step)) && ifl_schedule_ready(step, 0);
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct unified *p = self;
    const bool decodes = serve_decodes(p, view, step);
    if ((size_t)step->n_requests < view->n_running)
        serve_running(p, step);
    if (step->n_preempted > 0)
        return;
    start_from(p, step, IFL_IN_SWAPPED); /* vLLM v1 recomputes: nobody is there */
    if (step->n_swapped == 0)
        start_from(p, step, IFL_IN_WAITING);
    if (decodes && step->n_prefill_tokens == 0 && step->n_swapped_in == 0)
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_unified = {
    .kind = IFL_BATCHING,
    .name = "unified",
    .doc = "no phases: everyone catches up as far as a token budget goes (vLLM v1)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct unified),
    .ops.batching = &ops,
};
