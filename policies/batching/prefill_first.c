/* Prefill-first continuous batching, as vLLM v0 schedules (v0.1.4 to v0.10,
 * vllm/core/scheduler.py).
 *
 * A step is all prefill or all decode.
 *   - Prefill: while no request is swapped out, waiting prompts start whole, in rank order, within
 *     the token and sequence budgets. If any starts, decodes wait.
 *   - Decode: otherwise each running request decodes one token. When blocks run short the preempt
 *     module picks victims. Swapped requests return if the step preempts none.
 *
 * With vLLM's priority policy (_schedule_priority_preemption, which _schedule_default calls if no
 * prompt has started) a blocked head of the queue preempts running requests that rank behind it,
 * before the decodes; it starts in the next step.
 *
 * With vLLM's num_scheduler_steps n > 1 (v0.6 to v0.10, engine/llm_engine.py, _has_remaining_steps;
 * core/scheduler.py, _get_num_lookahead_slots) n decode steps are scheduled together: each decode
 * takes the blocks of n tokens at the first of them, and no request starts or is preempted before
 * the last of these steps has ended. A request that gets its last token in an earlier step is
 * computed in the remaining steps as padding. If all requests have ended the remaining steps are
 * not run here. In a pipeline each virtual engine has steps of its own (cached_scheduler_outputs);
 * here a virtual engine is a replica.
 *
 * In nano-vLLM the first prompt of a step may exceed the budget. It runs in chunks, at the head of
 * as many steps as it takes. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

#include "split.h"

enum append_rule { APPEND_ONE_FREE, APPEND_TOUCHED };
enum walk { WALK_STARTED, WALK_RANKED };
enum blocked_head { HEAD_WAITS, HEAD_PREEMPTS };
enum budget_counts { COUNTS_TOKENS, COUNTS_PADDED };

struct prefill_first {
    int32_t max_seqs;
    bool split_seqs;
    int32_t max_batched_tokens; /* 0: max(max_model_len, 2048) */
    int32_t budget_counts;
    int32_t max_paddings; /* -1: prompts are not padded */
    bool first_chunked;
    double delay_factor;
    int32_t append_rule;
    int32_t walk;
    int32_t blocked_head;
    int32_t num_scheduler_steps;
};

/* State of the steps that are scheduled together. */
struct together {
    int32_t n_left;        /* steps that have not begun yet */
    int32_t n_ended_seqs;  /* sequences that got their last token in one of these steps */
    int64_t ended_context; /* tokens of K/V that these sequences read in the next step */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct prefill_first, max_seqs), 256, 1, 1 << 20, NULL,
     "sequences", "most sequences on the device"},
    {"split_seqs", IFL_BOOL, offsetof(struct prefill_first, split_seqs), 0, 0, 1, NULL, "",
     "in a pipeline a step has at most max_seqs / steps in flight (Vidur); false: no such limit"},
    {"max_batched_tokens", IFL_INT, offsetof(struct prefill_first, max_batched_tokens), 0, 0,
     1 << 30, NULL, "tokens", "token budget of a prefill step; 0: max(max_model_len, 2048)"},
    {"budget_counts", IFL_CHOICE, offsetof(struct prefill_first, budget_counts), COUNTS_TOKENS, 0,
     0, "tokens|padded", "",
     "the budget counts the tokens of prompts, or number of prompts x longest (vLLM v0.2, Vidur)"},
    {"max_paddings", IFL_INT, offsetof(struct prefill_first, max_paddings), -1, -1, 1 << 30, NULL,
     "tokens",
     "most padding tokens of a step, whose prompts are padded to the longest; a prompt that would "
     "add more waits (vLLM v0.2.3: 256); -1: no padding"},
    {"first_chunked", IFL_BOOL, offsetof(struct prefill_first, first_chunked), 0, 0, 1, NULL, "",
     "the first prompt of a step is cut to the budget (nano-vLLM); false: a longer one is dropped"},
    {"delay_factor", IFL_REAL, offsetof(struct prefill_first, delay_factor), 0, 0, 1e6, NULL, "",
     "a prompt waits for this multiple of the last prefill's duration (scheduler_delay_factor)"},
    {"append_rule", IFL_CHOICE, offsetof(struct prefill_first, append_rule), APPEND_ONE_FREE, 0, 0,
     "one-free|touched", "",
     "a decode must find one free block even if it needs none (block manager v1), or exactly the "
     "blocks that it touches (v2)"},
    {"walk", IFL_CHOICE, offsetof(struct prefill_first, walk), WALK_STARTED, 0, 0, "started|ranked",
     "", "order in which decodes are served: by start or by rank"},
    {"blocked_head", IFL_CHOICE, offsetof(struct prefill_first, blocked_head), HEAD_WAITS, 0, 0,
     "waits|preempts", "",
     "the first waiting request, if it cannot start, waits or preempts one ranked behind it"},
    {"num_scheduler_steps", IFL_INT, offsetof(struct prefill_first, num_scheduler_steps), 1, 1,
     1 << 10, NULL, "steps",
     "decode steps that are scheduled together (vLLM v0.6 to v0.10); needs append_rule touched"},
};

static int32_t token_budget(const struct prefill_first *p, const struct ifl_view *view)
{
    const int32_t longest = view->limits->max_model_tokens;
    if (p->max_batched_tokens)
        return p->max_batched_tokens;
    return ifl_max(longest, 2048);
}

static bool delay_passed(const struct prefill_first *p, const struct ifl_view *view,
                         struct ifl_step *step)
{
    if (!IFL_RARE(p->delay_factor > 0) || view->n_running == 0)
        return true;
    const int64_t waited_ns = view->now_ns - ifl_oldest_waiting_ns(step);
    return (double)waited_ns > p->delay_factor * (double)view->last_prefill_ns;
}

/* True if the limits of the step allow one more prompt: budget, seats on the device and in the
 * step, delay. */
static bool step_has_room(const struct prefill_first *p, const struct ifl_view *view,
                          struct ifl_step *step, const struct ifl_request *r, int32_t n,
                          int32_t longest)
{
    const int64_t n_padded = (int64_t)longest * (step->n_requests + 1);
    const int32_t n_tokens = step->n_tokens + n;
    const bool padded = p->budget_counts == COUNTS_PADDED;
    return (padded ? n_padded : n_tokens) <= token_budget(p, view) &&
           (p->max_paddings < 0 || n_padded - n_tokens <= p->max_paddings) &&
           step->n_running_seqs + r->n_seqs <= p->max_seqs &&
           step->n_requests < most_in_step(view, p->split_seqs, p->max_seqs) &&
           delay_passed(p, view, step);
}

/* Returns the tokens of a prompt in this step: all, unless it is the first prompt of the step and
 * over the budget. */
static int32_t share_of(const struct prefill_first *p, const struct ifl_view *view,
                        const struct ifl_step *step, const struct ifl_request *r)
{
    const int32_t n = ifl_todo(r), budget = token_budget(p, view);
    return p->first_chunked && step->n_requests == 0 ? ifl_min(n, budget) : n;
}

/* Continues the chunked prompt; there is at most one. It has held all its blocks since its start.
 */
static void continue_prompt(const struct prefill_first *p, const struct ifl_view *view,
                            struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (IFL_RARE(p->first_chunked) && (r = ifl_next(step, IFL_IN_PREFILL, &cursor)))
        if (ifl_todo(r) > 0)
            ifl_schedule(step, r, share_of(p, view, step, r), 0);
}

/* Starts prompts until one must wait; drops prompts that can never run (IGNORED in vLLM). */
static void admit_prompts(const struct prefill_first *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    const int32_t budget = token_budget(p, view);
    const int32_t max_tokens = view->limits->max_model_tokens;
    const int32_t prompt_limit = budget < max_tokens && !p->first_chunked ? budget : max_tokens;
    static const char too_long_why[] = "the prompt is longer than max_batched_tokens";
    int32_t longest = 0;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        const int32_t n = share_of(p, view, step, r);
        const int32_t widest = ifl_max(n, longest);
        const bool too_long = ifl_n_tokens(r) > prompt_limit; /* tokens in the cache included */
        const bool has_room = !too_long && step_has_room(p, view, step, r, n, widest);
        const enum ifl_verdict verdict = too_long   ? ifl_never(step, r, too_long_why)
                                         : has_room ? ifl_start(step, r, n)
                                                    : ifl_ask(step, r, n);
        if (!ifl_settled(step, r, verdict) || (verdict == IFL_YES && !has_room))
            return;
        if (verdict == IFL_YES)
            longest = widest;
    }
}

static bool may_start(const struct prefill_first *p, const struct ifl_view *view,
                      struct ifl_step *step, const struct ifl_request *r)
{
    return step->n_tokens + ifl_todo(r) <= token_budget(p, view) &&
           step->n_running_seqs + r->n_seqs <= p->max_seqs &&
           ifl_ask(step, r, ifl_todo(r)) == IFL_YES;
}

/* True if a running request ranks behind `head`, the first waiting request. Requests in a step in
 * flight are not shown, and do not count. */
static bool outranks_any(const struct ifl_view *view, struct ifl_step *step,
                         const struct ifl_request *head)
{
    const int32_t n_shown = (int32_t)view->n_running - step->n_preempted;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    int32_t n_before = 0;
    while ((r = ifl_next(step, IFL_IN_RUNNING | IFL_IN_WAITING, &cursor)) && r != head)
        n_before += r->state == IFL_RUNNING;
    return n_before < n_shown;
}

IFL_APART static void push_out(const struct prefill_first *p, const struct ifl_view *view,
                               struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *head = ifl_next(step, IFL_IN_WAITING, &cursor);
    while (head && !may_start(p, view, step, head) && outranks_any(view, step, head))
        if (!ifl_make_room(step, head))
            return;
}

/* Free blocks that a decode asks for, even if it needs none: one per sequence of the widest group.
 */
static int32_t spare_blocks(const struct prefill_first *p, struct ifl_step *step)
{
    return p->append_rule == APPEND_ONE_FREE ? ifl_widest_group(step) : 0;
}

static void decode(const struct prefill_first *p, struct ifl_step *step,
                   const struct ifl_request *r)
{
    ifl_give(step, r, 1 + ifl_drafts(step, r), p->append_rule == APPEND_ONE_FREE ? r->n_seqs : 0);
}

IFL_APART static void decode_one_by_one(const struct prefill_first *p, struct ifl_step *step,
                                        int32_t most)
{
    if (p->walk == WALK_RANKED) {
        struct ifl_cursor cursor = {{0}};
        const struct ifl_request *r;
        while (step->n_requests < most && (r = ifl_next(step, IFL_IN_RUNNING, &cursor)))
            decode(p, step, r);
        return;
    }
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = 0; i < running.n && step->n_requests < most; i++)
        decode(p, step, running.of[i]);
}

static void decode_all(const struct prefill_first *p, const struct ifl_view *view,
                       struct ifl_step *step)
{
    const int32_t most = most_in_step(view, p->split_seqs, p->max_seqs);
    if (view->n_running > (size_t)most || !ifl_schedule_ready(step, spare_blocks(p, step)))
        decode_one_by_one(p, step, most);
}

/* ---- several steps at once ---- */

static int32_t tokens_of_all(const struct prefill_first *p, const struct ifl_request *r)
{
    return ifl_n_computed(r) + p->num_scheduler_steps;
}

/* Plans the first of the steps: each decode takes the blocks for all of them, or others are
 * preempted. */
IFL_APART static void decode_ahead(const struct prefill_first *p, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = 0; i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        while (r->state == IFL_RUNNING && ifl_todo(r) > 0 &&
               ifl_schedule(step, r, 1, tokens_of_all(p, r)) != IFL_YES)
            if (!ifl_make_room(step, r))
                break;
    }
}

/* Plans a further one of the steps. Returns false if there is none, or if no request is left to
 * decode. */
IFL_APART static bool decode_on(const struct prefill_first *p, const struct ifl_view *view,
                                struct ifl_step *step)
{
    const struct together *together = ifl_state(p);
    if (together->n_left == 0 || view->n_running == 0)
        return false;
    if (!ifl_schedule_ready(step, 0))
        decode_one_by_one(p, step, INT32_MAX);
    ifl_pad(step, (struct ifl_padding){.n_decode_seqs = together->n_ended_seqs,
                                       .decode_context = together->ended_context});
    return true;
}

IFL_HOT static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct prefill_first *p = self;
    struct together *together = ifl_state(self);
    (void)view;
    if (p->num_scheduler_steps == 1)
        return;
    if (step->note == 0) {
        *together = (struct together){
            .n_left = step->n_prefill_tokens > 0 ? 0 : p->num_scheduler_steps - 1};
        return;
    }
    together->n_left--;
    together->ended_context += together->n_ended_seqs;
}

IFL_HOT static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                             enum ifl_leave why)
{
    struct together *together = ifl_state(self);
    (void)view;
    if (why != IFL_LEAVE_FINISHED || together->n_left == 0)
        return;
    together->n_ended_seqs += r->n_seqs;
    together->ended_context += (int64_t)r->n_seqs * ifl_n_tokens(r);
}

/* A swapped request takes fewer blocks now than it needs until the last of the steps: `ahead` keeps
 * the difference free. */
static bool fits_ahead(const struct prefill_first *p, struct ifl_step *step,
                       const struct ifl_request *r, int32_t ahead)
{
    if (p->num_scheduler_steps == 1 ||
        ifl_need(step, r, tokens_of_all(p, r)) + ahead <= step->n_free_blocks)
        return true;
    ifl_refuse(step, r, "too few blocks are free for num_scheduler_steps tokens");
    return false;
}

IFL_APART static void swap_in(const struct prefill_first *p, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    int32_t ahead = 0;
    while ((r = ifl_next(step, IFL_IN_SWAPPED, &cursor))) {
        if (step->n_running_seqs + r->n_seqs > p->max_seqs || !fits_ahead(p, step, r, ahead))
            return;
        if (!ifl_settled(step, r, ifl_start(step, r, 1)))
            return;
        if (p->num_scheduler_steps > 1 && r->state == IFL_RUNNING)
            ahead += ifl_need(step, r, ifl_n_computed(r) + p->num_scheduler_steps);
    }
}

/* Promises to repeat a decode step as long as the first request of the queue cannot start.
 *   - Lack of blocks or seats lasts while the same batch decodes.
 *   - The delay factor ends at a known time.
 *   - If the head may preempt, and is held back by the delay or by swapped requests, it may lose
 *     its room meanwhile and would then preempt: no promise. */
static void promise_repeat(const struct prefill_first *p, const struct ifl_view *view,
                           struct ifl_step *step)
{
    int64_t until_ns = IFL_NEVER;
    if (p->blocked_head == HEAD_PREEMPTS && (step->n_swapped > 0 || p->delay_factor > 0) &&
        step->n_waiting > 0)
        return;
    if (IFL_RARE(p->delay_factor > 0) && step->n_waiting > 0)
        until_ns = ifl_oldest_waiting_ns(step) +
                   (int64_t)(p->delay_factor * (double)view->last_prefill_ns);
    if (until_ns >= view->now_ns)
        ifl_promise_to_the_last(step, INT32_MAX, until_ns, spare_blocks(p, step));
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct prefill_first *p = self;
    const bool together = p->num_scheduler_steps > 1;
    step->note = IFL_RARE(together) && decode_on(p, view, step);
    if (step->note)
        return;
    continue_prompt(p, view, step);
    if (view->n_swapped == 0)
        admit_prompts(p, view, step);
    if (IFL_RARE(p->max_paddings >= 0) && step->n_requests > 1)
        ifl_pad_prompts(step);
    if (step->n_requests > 0)
        return;
    if (IFL_RARE(p->blocked_head == HEAD_PREEMPTS))
        push_out(p, view, step);
    const int32_t n_pushed_out = step->n_preempted;
    if (IFL_RARE(together))
        decode_ahead(p, step);
    else
        decode_all(p, view, step);
    if (step->n_preempted > n_pushed_out)
        return;
    if (IFL_RARE(step->n_swapped > 0))
        swap_in(p, step);
    if (step->n_swapped_in == 0 && !together)
        promise_repeat(p, view, step);
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct prefill_first *p = self;
    if (p->num_scheduler_steps > 1 && limits->max_in_flight > 0)
        return ifl_fail(error, IFL_E_INPUT,
                        "serving.batching.num_scheduler_steps is %d with several steps of a "
                        "pipeline in flight, expected 1 or serving.in_flight.batches engines: "
                        "steps at once are of one engine (vLLM v0)",
                        p->num_scheduler_steps);
    if (p->max_paddings >= 0 && p->first_chunked)
        return ifl_fail(error, IFL_E_INPUT,
                        "serving.batching.max_paddings is %d and first_chunked true, expected one "
                        "of the two: chunks lie behind one another",
                        p->max_paddings);
    return p->num_scheduler_steps == 1 || p->append_rule == APPEND_TOUCHED
               ? 0
               : ifl_fail(error, IFL_E_INPUT,
                          "serving.batching.num_scheduler_steps is %d with append_rule one-free, "
                          "expected append_rule touched: steps at once need block manager v2",
                          p->num_scheduler_steps);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_prefill_first = {
    .kind = IFL_BATCHING,
    .name = "prefill-first",
    .doc = "each step is all prefill or all decode; waiting prompts go first (vLLM v0)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct prefill_first),
    .state_bytes = sizeof(struct together),
    .init = init,
    .on_step_start = on_step_start,
    .on_leave = on_leave,
    .steady = ifl_always_steady,
    .ops.batching = &ops,
};
