/* Unified batching, as vLLM v1 schedules (vllm/v1/core/sched/scheduler.py, 2025 to 2026-11).
 *
 * There are no phases. Each request has tokens that are not computed yet, one of a decode or many
 * of a prompt, and the step computes as many as the budget allows:
 *   1. of running requests in order of start;
 *   2. if the step preempts none, of waiting requests in rank order, until one must wait.
 * A running request that finds no blocks takes those of the preempt module's victim. If the victim
 * is the request itself, the walk ends, or since v0.33 goes on behind it (walks_on).
 *
 * No request gets more than long_prefill_tokens in a step. Since v0.31 the limit does not bind the
 * only request, waiting or running, and may be raised to an equal share of the budget
 * (long_prefill_alone, long_prefill_adapts).
 *
 * With speculation a decode also has the tokens that are guessed for it, as far as the budget
 * allows. Since 2026-06 (vllm-project/vllm pull request 45237; scheduler.py at v0.33.0,
 * pad_spec_decode) a request that starts with only one token to compute is padded with rows in
 * place of guesses if running requests are scheduled and none of them is in its prompt, so that all
 * requests of the batch have the same number of rows. If the budget or the model's length has no
 * room for these rows, the request and all behind it wait (pads_newcomers). Prompts that start in
 * the same step do not count.
 *
 * With asynchronous scheduling (serving.in_flight.ahead) a step is planned when the step before it
 * begins (vllm/v1/engine/core.py, step_with_batch_queue): step.h, limits->plans_ahead, says what
 * the plan does not know. A request that has all its declared tokens gets no further one
 * (async_scheduler.py); a request that ended earlier gets a token in vain. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct unified {
    int32_t max_seqs;
    int32_t max_active_seqs; /* 0: max_seqs */
    int32_t max_batched_tokens;
    int32_t long_prefill_tokens; /* 0: no limit */
    bool long_prefill_alone;
    bool long_prefill_adapts;
    bool walks_on;
    int32_t draft_input_tokens;
    bool pads_newcomers;
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct unified, max_seqs), 256, 1, 1 << 20, NULL, "sequences",
     "most sequences on the device"},
    {"max_active_seqs", IFL_INT, offsetof(struct unified, max_active_seqs), 0, 0, 1 << 20, NULL,
     "sequences",
     "no request starts while this many are on the device (max_num_active_seqs); 0: max_seqs"},
    {"max_batched_tokens", IFL_INT, offsetof(struct unified, max_batched_tokens), 2048, 1, 1 << 30,
     NULL, "tokens", "token budget of a step, decodes included"},
    {"long_prefill_tokens", IFL_INT, offsetof(struct unified, long_prefill_tokens), 0, 0, 1 << 30,
     NULL, "tokens",
     "most tokens of one request in a step (long_prefill_token_threshold); 0: no limit"},
    {"long_prefill_alone", IFL_BOOL, offsetof(struct unified, long_prefill_alone), 1, 0, 1, NULL,
     "", "long_prefill_tokens also limits a request that is alone (vLLM before v0.31)"},
    {"long_prefill_adapts", IFL_BOOL, offsetof(struct unified, long_prefill_adapts), 0, 0, 1, NULL,
     "",
     "long_prefill_tokens is at least max_batched_tokens / (waiting + running requests) "
     "(long_prefill_token_threshold_adaptive)"},
    {"walks_on", IFL_BOOL, offsetof(struct unified, walks_on), 0, 0, 1, NULL, "",
     "if a running request preempts itself, the requests behind it are still scheduled; false: "
     "they are not (vLLM before v0.33)"},
    {"draft_input_tokens", IFL_INT, offsetof(struct unified, draft_input_tokens), 0, 0, 1 << 10,
     NULL, "tokens",
     "part of the budget that each request takes in addition, for the input of a draft model "
     "(vLLM: 1 for a draft model, 0 for heads and n-grams)"},
    {"pads_newcomers", IFL_BOOL, offsetof(struct unified, pads_newcomers), 0, 0, 1, NULL, "",
     "with guesses: a request that starts with one token, in a step of decodes alone, is padded "
     "with rows in place of guesses (vLLM since 2026-06)"},
};

static int32_t budget_left(const struct unified *p, const struct ifl_step *step)
{
    return p->max_batched_tokens - step->n_tokens - step->n_requests * p->draft_input_tokens;
}

static int32_t share_of(const struct unified *p, struct ifl_step *step, int32_t left,
                        const struct ifl_request *r)
{
    const int32_t own = left - p->draft_input_tokens;
    const int32_t most = p->long_prefill_tokens ? ifl_min(p->long_prefill_tokens, own) : own;
    return ifl_min(ifl_todo_and_drafts(step, r), most);
}

static int32_t seats(const struct unified *p)
{
    return p->max_active_seqs > 0 ? p->max_active_seqs : p->max_seqs;
}

/* ---- the limit of a long prompt ---- */

/* Sequences that wait or run, at most `most`: vLLM counts each as a request. */
static int32_t count_requests(struct ifl_step *step, int32_t most)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    int32_t n = step->n_running_seqs + step->n_swapped;
    while (n < most && (r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        n += r->n_seqs;
    return ifl_min(n, most);
}

/* The limit of a prompt's tokens in this plan, found before the plan changes anything; 0: none.
 * Requests are counted only as far as the count can change the limit. */
static int32_t long_prefill_now(const struct unified *p, struct ifl_step *step)
{
    const int32_t limit = p->long_prefill_tokens;
    if (limit == 0 || (p->long_prefill_alone && !p->long_prefill_adapts))
        return limit;
    const int32_t most = p->long_prefill_adapts ? p->max_batched_tokens / limit + 2 : 2;
    const int32_t n = count_requests(step, most);
    if (n <= 1 && !p->long_prefill_alone)
        return 0;
    const int32_t share = p->long_prefill_adapts ? p->max_batched_tokens / (n > 0 ? n : 1) : 0;
    return ifl_max(share, limit);
}

/* ---- the walk ---- */

static void serve_running(const struct unified *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = 0; i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        const int32_t n = share_of(p, step, budget_left(p, step), r);
        if (r->state != IFL_RUNNING || !ifl_may_go_on(view, r) || ifl_give(step, r, n, 0))
            continue;
        if (r->state == IFL_RUNNING || !p->walks_on)
            return;
    }
}

/* Rows with which r is padded, if it starts in a step of decodes only. */
static int32_t rows_to_pad(const struct unified *p, const struct ifl_step *step,
                           const struct ifl_request *r)
{
    return p->pads_newcomers && r->state != IFL_SWAPPED && ifl_todo(r) == 1 ? step->max_drafts : 0;
}

static bool has_room_for_rows(const struct unified *p, const struct ifl_view *view,
                              const struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    return 1 + n <= p->max_batched_tokens - step->n_tokens &&
           ifl_n_computed(r) + 1 + n <= view->limits->max_model_tokens;
}

/* only_decodes: running requests are scheduled, and none of them is in its prompt. */
static enum ifl_verdict start_one(const struct unified *p, const struct ifl_view *view,
                                  struct ifl_step *step, const struct ifl_request *r,
                                  bool only_decodes)
{
    const int32_t n_rows = only_decodes ? rows_to_pad(p, step, r) : 0;
    if (n_rows == 0)
        return ifl_start(step, r, share_of(p, step, budget_left(p, step), r));
    if (has_room_for_rows(p, view, step, r, n_rows))
        return ifl_start_padded(step, r, 1, n_rows);
    ifl_refuse(step, r, "has no room for it and rows in place of guesses");
    return IFL_WAIT;
}

static void start_from(const struct unified *p, const struct ifl_view *view, struct ifl_step *step,
                       enum ifl_list list)
{
    const bool only_decodes = step->n_requests > 0 && step->n_prefill_requests == 0;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (budget_left(p, step) > p->draft_input_tokens && (r = ifl_next(step, list, &cursor))) {
        if (ifl_dropped_as_too_wide(step, r, seats(p)))
            continue;
        if (step->n_running_seqs + r->n_seqs > seats(p))
            return;
        if (!ifl_settled(step, r, start_one(p, view, step, r, only_decodes)))
            return;
    }
}

/* Schedules all decodes at once, before the prompts, which gives the same plan as the order of
 * start if no prompt is on the device, or without a limit: a prompt is then cut only where the
 * budget ends, so that no request has started behind one that has begun. */
static bool serve_decodes(const struct unified *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    const size_t each = 1 + (size_t)(step->max_drafts + p->draft_input_tokens);
    return view->n_running * each <= (size_t)budget_left(p, step) &&
           (p->long_prefill_tokens == 0 || step->n_in_prefill == 0) && ifl_schedule_ready(step, 0);
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct unified now = *(const struct unified *)self;
    const struct unified *const p = &now;
    now.long_prefill_tokens = long_prefill_now(self, step);
    const bool decodes = serve_decodes(p, view, step);
    if (!decodes || step->n_in_prefill > 0)
        serve_running(p, view, step);
    if (step->n_preempted > 0)
        return;
    if (step->n_swapped > 0) /* never in vLLM v1, which recomputes */
        start_from(p, view, step, IFL_IN_SWAPPED);
    if (step->n_swapped == 0 && step->n_waiting > 0)
        start_from(p, view, step, IFL_IN_WAITING);
    if (decodes && step->n_prefill_tokens == 0 && step->n_swapped_in == 0)
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct unified *p = self;
    (void)limits;
    if (p->max_active_seqs > p->max_seqs)
        return ifl_fail(
            error, IFL_E_INPUT,
            "serving.batching.max_active_seqs is %d, expected at most max_seqs, which is %d",
            p->max_active_seqs, p->max_seqs);
    if (p->draft_input_tokens >= p->max_batched_tokens)
        return ifl_fail(error, IFL_E_INPUT,
                        "serving.batching.draft_input_tokens is %d, expected less than "
                        "max_batched_tokens, which is %d: no request would get a token",
                        p->draft_input_tokens, p->max_batched_tokens);
    return 0;
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_unified = {
    .kind = IFL_BATCHING,
    .name = "unified",
    .doc = "no phases: each request gets tokens as far as the token budget allows (vLLM v1)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct unified),
    .init = init,
    .steady = ifl_always_steady,
    .shown_alone = true,
    .ops.batching = &ops,
};
