/* Separate phases in turns: a prefill interrupts the decodes only when its turn has come.
 *
 * Waiting prompts start in a step of their own:
 *   - at once, while no request runs;
 *   - after `decodes_between` decode steps (LightLLM's router_max_wait_tokens, S-LoRA's
 *     max_wait_tokens, TGI's max_waiting_tokens);
 *   - as soon as enough of them wait (TGI's waiting_served_ratio), if that many find room.
 * If no prompt finds room at a turn, the next step tries again, until a prefill has run; LightLLM
 * tries again at the next turn. In TGI, prompts that join running requests are followed by one
 * decode of all.
 *
 * LightLLM lightllm/server/router/manager.py of 2024; S-LoRA slora/server/router/manager.py;
 * text-generation-inference backends/v3/src/backend.rs without chunking. */
#include "inflight/policy.h"

struct prefill_turns {
    int32_t max_seqs;
    int32_t max_batched_tokens; /* 0: max(pool / 6, max_model_len) */
    int32_t decodes_between;
    double waiting_ratio; /* 0: the number of waiting requests does not matter */
    bool joined_decode;
    bool every_turn;
};

struct turns {
    uint64_t since; /* 1 + step of the last prefill; with every_turn, of the last prefill or
                       preempting step, whichever is later */
    bool joined;    /* the last prefill found other requests on the device */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct prefill_turns, max_seqs), 1000, 1, 1 << 20, NULL,
     "sequences", "most sequences on the device"},
    {"max_batched_tokens", IFL_INT, offsetof(struct prefill_turns, max_batched_tokens), 0, 0,
     1 << 30, NULL, "tokens",
     "token budget of a prefill step; 0: max(a sixth of the pool, max_model_len)"},
    {"decodes_between", IFL_INT, offsetof(struct prefill_turns, decodes_between), 0, 0, 1 << 20,
     NULL, "steps", "decode steps after a prefill until the next one may interrupt"},
    {"waiting_ratio", IFL_REAL, offsetof(struct prefill_turns, waiting_ratio), 0, 0, 1e6, NULL, "",
     "waiting requests per running request that start a prefill earlier; 0: never"},
    {"joined_decode", IFL_BOOL, offsetof(struct prefill_turns, joined_decode), 0, 0, 1, NULL, "",
     "after a prefill beside running requests, all decode once before the next (TGI)"},
    {"every_turn", IFL_BOOL, offsetof(struct prefill_turns, every_turn), 0, 0, 1, NULL, "",
     "if a turn finds no room, or no request, the next turn tries again; false: the next step"},
};

static struct turns *turns_of(const void *self)
{
    return ifl_state(self);
}

static int32_t token_budget(const struct prefill_turns *p, const struct ifl_limits *limits)
{
    const int64_t sixth = (int64_t)limits->n_blocks * limits->block_tokens / 6;
    if (p->max_batched_tokens)
        return p->max_batched_tokens;
    return sixth > limits->max_model_tokens ? (int32_t)sixth : limits->max_model_tokens;
}

/* Steps since the last prefill; with every_turn since the last turn. */
static int32_t steps_since(const struct prefill_turns *p, const struct ifl_view *view)
{
    const uint64_t n = view->step - turns_of(p)->since;
    if (p->every_turn && p->decodes_between > 0 && n > 0)
        return 1 + (int32_t)((n - 1) % (uint64_t)p->decodes_between);
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

/* The state of a plan. */
struct turn {
    int32_t since; /* steps_since */
    bool decode_is_due;
    bool has_come;
};

static struct turn turn_of(const struct prefill_turns *p, const struct ifl_view *view)
{
    const int32_t since = steps_since(p, view);
    const bool decode_is_due = p->joined_decode && turns_of(p)->joined && since == 0;
    return (struct turn){
        .since = since,
        .decode_is_due = decode_is_due,
        .has_come = view->n_running == 0 || (!decode_is_due && since >= p->decodes_between),
    };
}

/* next_batch of TGI's queue. True if enough requests wait, and as many find room together. */
static bool enough_would_join(const struct prefill_turns *p, const struct ifl_view *view,
                              struct ifl_step *step, const struct turn *turn)
{
    const int64_t enough = (int64_t)(p->waiting_ratio * (double)view->n_running);
    if (p->waiting_ratio == 0 || turn->decode_is_due || (int64_t)view->n_waiting < enough)
        return false;
    const int32_t budget = token_budget(p, view->limits);
    int32_t n_seqs = step->n_running_seqs, n_tokens = 0, n_blocks = 0;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    int64_t n = 0;
    while (n < enough && n_seqs < p->max_seqs && (r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        const int32_t n_todo = ifl_todo(r);
        const bool never = n_todo > budget || r->n_seqs > p->max_seqs;
        const enum ifl_verdict verdict = never ? IFL_NEVER_FITS
                                         : n_todo > budget - n_tokens
                                             ? IFL_WAIT
                                             : ifl_ask_in_turn(step, r, n_todo, &n_blocks);
        if (verdict == IFL_NEVER_FITS)
            continue;
        if (verdict != IFL_YES)
            break;
        n_tokens += n_todo;
        n_seqs += r->n_seqs;
        n++;
    }
    return n >= enough;
}

/* Starts prompts in rank order, until one must wait. */
static void start_prompts(const struct prefill_turns *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    const int32_t budget = token_budget(p, view->limits);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_running_seqs < p->max_seqs && (r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        const int32_t n = ifl_todo(r);
        const enum ifl_verdict verdict =
            n > budget ? ifl_never(step, r, "the prompt is longer than max_batched_tokens")
            : n > budget - step->n_tokens ? IFL_WAIT
                                          : ifl_start(step, r, n);
        if (!ifl_settled(step, r, verdict))
            return;
    }
}

/* Promises to repeat the step until the next turn: too few requests would join before, as long as
 * none arrives or ends. */
static void promise_repeat(const struct prefill_turns *p, struct ifl_step *step,
                           const struct turn *turn)
{
    const bool idle = step->n_waiting == 0 || turn->has_come;
    const int32_t before_turn = p->decodes_between - 1 - turn->since;
    if (idle || !turn->decode_is_due)
        ifl_promise_to_the_last(step, idle ? INT32_MAX : before_turn, IFL_NEVER, 0);
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct prefill_turns *p = self;
    const struct turn turn = turn_of(p, view);
    if (view->n_swapped == 0 && view->n_waiting > 0 &&
        (turn.has_come || enough_would_join(p, view, step, &turn)))
        start_prompts(p, view, step);
    if (step->n_requests > 0)
        return;
    if (!ifl_schedule_ready(step, 0))
        ifl_decode_one_by_one(step, 0);
    if (step->n_preempted > 0)
        return;
    ifl_return_swapped(step, p->max_seqs);
    if (step->n_swapped_in == 0)
        promise_repeat(p, step, &turn);
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct prefill_turns *p = self;
    struct turns *turns = turns_of(self);
    if (p->every_turn && step->n_preempted > 0)
        turns->since = view->step;
    if (step->n_prefill_tokens == 0)
        return;
    turns->since = view->step + 1;
    turns->joined = view->n_running > 0;
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_prefill_turns = {
    .kind = IFL_BATCHING,
    .name = "prefill-turns",
    .doc = "each step is all prefill or all decode; prefills interrupt decodes in turns (LightLLM, "
           "TGI)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct prefill_turns),
    .state_bytes = sizeof(struct turns),
    .on_step_start = on_step_start,
    .steady = ifl_always_steady,
    .ops.batching = &ops,
};
