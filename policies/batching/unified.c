/* Unified batching, as vLLM v1 schedules (vllm/v1/core/sched/scheduler.py, 2025 to 2026-08).
 *
 * There is no phase. Each request has tokens that are not computed yet, one of a decode or many of
 * a prompt, and the step lets it catch up as far as a budget goes: running requests in the order in
 * which they started, then, if nobody had to give way, waiting ones in rank order until the first
 * that must wait. A running request that finds no blocks takes them from the preempt module's
 * victim; one that gives way itself ends the walk.
 *
 * With asynchronous scheduling a step is planned when the one before it begins (vllm/v1/engine/
 * core.py, step_with_batch_queue). So a plan does not know yet who arrived or ended with that one:
 * the first wait, the others keep their seats and blocks. Whose declared limit it was to end gets
 * no token more (async_scheduler.py), who ended before it one for nothing. If there is nothing to
 * plan, it waits for the end, and then knows all. */
#include "inflight/policy.h"

#include "overrun.h"

struct unified {
    int32_t max_seqs;
    int32_t max_batched_tokens;
    int32_t long_prefill_tokens; /* 0: no limit */
    bool ahead;
};

struct last_step {
    int64_t start_ns;       /* of the step planned last, or of the first that it promised */
    struct overrun overrun; /* of those that ended before their limit */
};

/* What a plan does not know of. */
struct unknown {
    int64_t since_ns; /* who arrived later */
    int32_t n_seqs, n_blocks, n_tokens;
    bool hides; /* there is anything of this */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct unified, max_seqs), 256, 1, 1 << 20, NULL, "sequences",
     "most sequences on the device"},
    {"max_batched_tokens", IFL_INT, offsetof(struct unified, max_batched_tokens), 2048, 1, 1 << 30,
     NULL, "tokens", "token budget of a step, decodes included"},
    {"long_prefill_tokens", IFL_INT, offsetof(struct unified, long_prefill_tokens), 0, 0, 1 << 30,
     NULL, "tokens", "most tokens of one request in a step (long_prefill_token_threshold); 0: any"},
    {"ahead", IFL_BOOL, offsetof(struct unified, ahead), 0, 0, 1, NULL, "",
     "a step is planned as the one before it begins (async_scheduling)"},
};

static struct last_step *last_step_of(const void *self)
{
    return ifl_state(self);
}

static int32_t budget_left(const struct unified *p, const struct ifl_step *step,
                           const struct unknown *unknown)
{
    return p->max_batched_tokens - unknown->n_tokens - step->n_tokens;
}

static int32_t share_of(const struct unified *p, int32_t left, const struct ifl_request *r)
{
    const int32_t todo = ifl_todo(r);
    const int32_t most =
        p->long_prefill_tokens && p->long_prefill_tokens < left ? p->long_prefill_tokens : left;
    return todo < most ? todo : most;
}

/* As ifl_give, but blocks that are free are not all known to be. */
static bool give(struct ifl_step *step, const struct ifl_request *r, int32_t n, int32_t n_unknown)
{
    while (n_unknown > 0 && n > 0 && r->state == IFL_RUNNING &&
           ifl_need(step, r, ifl_n_computed(r) + n) > step->n_free_blocks - n_unknown)
        if (!ifl_make_room(step, r))
            return false;
    return ifl_give(step, r, n, 0);
}

static void serve_running(const struct unified *p, struct ifl_step *step,
                          const struct unknown *unknown)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = 0; i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        const int32_t n = share_of(p, budget_left(p, step, unknown), r);
        if (r->state == IFL_RUNNING && !give(step, r, n, unknown->n_blocks))
            return;
    }
}

static enum ifl_verdict start_one(const struct unified *p, struct ifl_step *step,
                                  const struct ifl_request *r, const struct unknown *unknown)
{
    const int32_t n = share_of(p, budget_left(p, step, unknown), r);
    const enum ifl_verdict verdict =
        unknown->n_blocks > 0 ? ifl_ask_beyond(step, r, n, unknown->n_blocks) : IFL_YES;
    return verdict == IFL_YES ? ifl_start(step, r, n) : verdict;
}

static void start_from(const struct unified *p, struct ifl_step *step, enum ifl_list list,
                       struct unknown *unknown)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (budget_left(p, step, unknown) > 0 && (r = ifl_next(step, list, &cursor))) {
        if (r->arrival_ns > unknown->since_ns) {
            unknown->hides = true;
            continue;
        }
        if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        if (step->n_running_seqs + unknown->n_seqs + r->n_seqs > p->max_seqs)
            return;
        if (!ifl_settled(step, r, start_one(p, step, r, unknown)))
            return;
    }
}

/* All decodes at once. They may be served before the prompts where that is the order of start:
 * without a limit a prompt is cut only where the budget ends, so that nobody starts behind it. */
static bool serve_decodes(const struct unified *p, const struct ifl_view *view,
                          struct ifl_step *step, const struct unknown *unknown)
{
    return view->n_running <= (size_t)budget_left(p, step, unknown) &&
           (p->long_prefill_tokens == 0 || step->n_in_prefill == 0) &&
           ifl_schedule_ready(step, unknown->n_blocks);
}

static void plan_with(const struct unified *p, const struct ifl_view *view, struct ifl_step *step,
                      struct unknown *unknown)
{
    const bool decodes = serve_decodes(p, view, step, unknown);
    if ((size_t)step->n_requests < view->n_running)
        serve_running(p, step, unknown);
    if (step->n_preempted > 0)
        return;
    start_from(p, step, IFL_IN_SWAPPED, unknown); /* vLLM v1 recomputes: nobody is there */
    if (step->n_swapped == 0)
        start_from(p, step, IFL_IN_WAITING, unknown);
    if (unknown->hides || !decodes || step->n_prefill_tokens > 0 || step->n_swapped_in > 0)
        return;
    if (p->ahead)
        ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
    else
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

/* ---- ahead ---- */

static struct unknown unknown_to(const struct unified *p, const struct ifl_view *view)
{
    const struct last_step *last = last_step_of(p);
    if (!p->ahead)
        return (struct unknown){.since_ns = IFL_NEVER};
    return (struct unknown){
        .since_ns = last->start_ns,
        .n_seqs = view->n_ended_seqs,
        .n_blocks = view->n_ended_blocks + last->overrun.n_new_blocks,
        .n_tokens = last->overrun.n_seqs,
        .hides = view->n_ended_seqs > 0,
    };
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct unified *p = self;
    const struct last_step *last = last_step_of(self);
    struct unknown unknown = unknown_to(p, view), nothing = {.since_ns = IFL_NEVER};
    plan_with(p, view, step, &unknown);
    if (unknown.hides && step->n_requests == 0 && step->n_preempted == 0)
        plan_with(p, view, step, &nothing);
    else if (last->overrun.n_seqs > 0)
        overrun_pad(step, &last->overrun);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)step;
    *last_step_of(self) = (struct last_step){.start_ns = view->now_ns};
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct unified *p = self;
    if (p->ahead && r->n_prefill > 0 /* it was not turned away */ && ifl_n_out(r) < r->n_max_new)
        overrun_add(&last_step_of(self)->overrun, view, r);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_unified = {
    .kind = IFL_BATCHING,
    .name = "unified",
    .doc = "no phases: everyone catches up as far as a token budget goes (vLLM v1)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct unified),
    .state_bytes = sizeof(struct last_step),
    .on_step_start = on_step_start,
    .on_leave = on_leave,
    .steady = ifl_always_steady,
    .ops.batching = &ops,
};
