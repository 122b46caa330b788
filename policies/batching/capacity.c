/* Capacity first, tokens second: TensorRT-LLM's in-flight batching (2024-09, cpp/include/
 * tensorrt_llm/batch_manager/capacityScheduler.h and microBatchScheduler.h).
 *
 * Which requests may run is a question of blocks, answered by the admit module: GUARANTEED_NO_EVICT
 * reserves blocks to the end of the answer (admit reserve, for: declared); MAX_UTILIZATION only for
 * the next step, which for a new request is its whole prompt (admit prompt-fits). With STATIC_BATCH
 * requests start only on an idle engine. Tokens of the step go to decodes, the rest to prompts:
 * whole, or in chunks of whole units, the earliest first or all growing by a unit in turn.
 *
 * The walk: when blocks run short, running and waiting requests are visited in one rank order. A
 * request that lacks blocks pauses the last running request not visited yet. Behind the first
 * paused request no request starts. The walk is also used when another request may rank before a
 * decode: a paused request that is first in the queue, or a prompt that has begun.
 *
 * In 1.2 (tensorrt_llm/_torch/pyexecutor/py_executor.py) the walk is made one step ahead, and a
 * pause keeps the first max_input_len tokens of a request, 2048. The request decodes again, a token
 * a step, what it had computed beyond them (LlmRequest::pause in
 * cpp/include/tensorrt_llm/batch_manager/llmRequest.h). */
#include "inflight/minmax.h"
#include "inflight/policy.h"

#include "make_room.h"

enum chunking { CHUNKING_NONE, CHUNKING_FIRST_COME, CHUNKING_EQUAL };
enum join { JOIN_ALWAYS, JOIN_WHEN_IDLE };

struct capacity {
    int32_t max_seqs;
    int32_t max_batched_tokens;
    int32_t chunking;
    int32_t chunk_unit_tokens; /* 0: a block */
    int32_t join;
    int32_t paused_prompt_tokens; /* 0: no limit */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct capacity, max_seqs), 2048, 1, 1 << 20, NULL, "sequences",
     "most sequences on the device (max_batch_size)"},
    {"max_batched_tokens", IFL_INT, offsetof(struct capacity, max_batched_tokens), 8192, 1, 1 << 30,
     NULL, "tokens", "token budget of a step, decodes included (max_num_tokens)"},
    {"chunking", IFL_CHOICE, offsetof(struct capacity, chunking), CHUNKING_NONE, 0, 0,
     "none|first-come|equal-progress", "",
     "prompts beyond the budget wait; are cut, the earliest gets most; are cut to equal progress"},
    {"chunk_unit_tokens", IFL_INT, offsetof(struct capacity, chunk_unit_tokens), 0, 0, 1 << 20,
     NULL, "tokens",
     "chunks, except the last of a prompt, are multiples of this; 0: a block's tokens"},
    {"join", IFL_CHOICE, offsetof(struct capacity, join), JOIN_ALWAYS, 0, 0, "always|when-idle", "",
     "when-idle: no request starts while another runs (STATIC_BATCH)"},
    {"paused_prompt_tokens", IFL_INT, offsetof(struct capacity, paused_prompt_tokens), 0, 0,
     1 << 30, NULL, "tokens",
     "most tokens that a paused request recomputes as a prompt (max_input_len); it decodes the "
     "tokens after them again, one per step; 0: no limit"},
};

/* True if a seat is free in a plan made one step ahead, in which requests that may not go on
 * (ifl_may_go_on) have given their seats back. */
static bool seats_are_free_ahead(const struct capacity *p, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    int32_t n = step->n_running_seqs;
    for (size_t i = 0; i < running.n; i++)
        n -= ifl_may_go_on(view, running.of[i]) ? 0 : running.of[i]->n_seqs;
    return n < p->max_seqs;
}

static inline bool seats_are_taken(const struct capacity *p, const struct ifl_view *view,
                                   struct ifl_step *step)
{
    return step->n_running_seqs >= p->max_seqs &&
           !(view->limits->plans_ahead && seats_are_free_ahead(p, view, step));
}

/* True if a paused request has its prompt again and decodes what it had decoded before. */
static bool decodes_again(const struct capacity *p, const struct ifl_request *r)
{
    return p->paused_prompt_tokens > 0 && r->n_preempted > 0 && !ifl_decodes(r) &&
           ifl_n_computed(r) >= p->paused_prompt_tokens;
}

/* Tokens that r has to compute before its next token, or before it decodes again. */
static int32_t todo_of(const struct capacity *p, const struct ifl_request *r)
{
    const int32_t todo = ifl_todo(r);
    if (p->paused_prompt_tokens == 0 || r->n_preempted == 0)
        return todo;
    return ifl_min(todo, ifl_max(p->paused_prompt_tokens - ifl_n_computed(r), 1));
}

static int32_t unit_tokens(const struct capacity *p, const struct ifl_view *view)
{
    return p->chunk_unit_tokens ? p->chunk_unit_tokens : view->limits->block_tokens;
}

/* Tokens of a prompt in this step if `left` are available; 0: it waits. */
static int32_t share_of(const struct capacity *p, const struct ifl_view *view,
                        const struct ifl_request *r, int32_t left)
{
    const int32_t todo = todo_of(p, r), unit = unit_tokens(p, view);
    if (todo <= left)
        return todo;
    return p->chunking == CHUNKING_NONE || left < unit ? 0 : left / unit * unit;
}

static const char too_long[] = "the prompt, or a unit of it, is longer than max_batched_tokens";

static bool never_fits(const struct capacity *p, const struct ifl_view *view,
                       const struct ifl_request *r)
{
    const int32_t most = p->max_batched_tokens;
    return todo_of(p, r) > most && (p->chunking == CHUNKING_NONE || unit_tokens(p, view) > most);
}

static bool may_join(const struct capacity *p, const struct ifl_view *view)
{
    return p->join == JOIN_ALWAYS || view->n_running + view->n_swapped == 0;
}

/* ---- blocks suffice: decodes are scheduled already ---- */

static void continue_some(const struct capacity *p, const struct ifl_view *view,
                          struct ifl_step *step, bool decode_again)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_PREFILL, &cursor)))
        if (decodes_again(p, r) == decode_again)
            ifl_give(step, r, share_of(p, view, r, p->max_batched_tokens - step->n_tokens), 0);
}

static void continue_prompts(const struct capacity *p, const struct ifl_view *view,
                             struct ifl_step *step)
{
    if (p->paused_prompt_tokens > 0)
        continue_some(p, view, step, true);
    if (p->chunking != CHUNKING_EQUAL)
        continue_some(p, view, step, false);
}

/* ---- equal progress ---- */

struct contexts { /* walk over prompts on the device: begun before this plan, then started by it */
    struct ifl_step *step;
    struct ifl_cursor cursor;
    size_t i_started;
};

static const struct ifl_request *next_context(const struct capacity *p, struct contexts *of)
{
    const struct ifl_requests started = ifl_started(of->step);
    const struct ifl_request *r = ifl_next(of->step, IFL_IN_PREFILL, &of->cursor);
    while (r && decodes_again(p, r))
        r = ifl_next(of->step, IFL_IN_PREFILL, &of->cursor);
    while (!r && of->i_started < started.n) {
        const struct ifl_request *s = started.of[of->i_started++];
        r = s->state == IFL_RUNNING && !ifl_decodes(s) ? s : NULL;
    }
    return r;
}

static int64_t tokens_at_level(const struct capacity *p, struct ifl_step *step, int32_t level)
{
    struct contexts contexts = {.step = step};
    const struct ifl_request *r;
    int64_t n = 0;
    while ((r = next_context(p, &contexts)))
        n += ifl_min(todo_of(p, r), level);
    return n;
}

/* n and one more unit, or the rest of the prompt; n if less than that is spare. */
static int32_t grown(int32_t n, int32_t todo, int32_t unit, int64_t *spare)
{
    const int32_t more = ifl_min(todo - n, unit);
    if (more > *spare)
        return n;
    *spare -= more;
    return n + more;
}

/* Water filling: all prompts grow by a unit per round. `level` is the number of tokens after the
 * last round that the budget covers in full. In the next round some prompts grow once more. After
 * it less than a unit is spare, so that in a last round only ends of prompts can fit. */
static void progress_equally(const struct capacity *p, const struct ifl_view *view,
                             struct ifl_step *step)
{
    const int32_t unit = unit_tokens(p, view), left = p->max_batched_tokens - step->n_tokens;
    struct contexts again = {.step = step}, contexts = {.step = step};
    const struct ifl_request *r;
    int32_t level = 0;
    while (tokens_at_level(p, step, level + unit) <= left &&
           tokens_at_level(p, step, level + unit) > tokens_at_level(p, step, level))
        level += unit;
    int64_t spare = left - tokens_at_level(p, step, level), spare_after = spare;
    while ((r = next_context(p, &again)))
        (void)grown(ifl_min(todo_of(p, r), level), todo_of(p, r), unit, &spare_after);
    while ((r = next_context(p, &contexts))) {
        const int32_t todo = todo_of(p, r);
        const int32_t n = grown(ifl_min(todo, level), todo, unit, &spare);
        ifl_give(step, r, grown(n, todo, unit, &spare_after), 0);
    }
}

/* ---- starting prompts ---- */

/* Starts prompts in rank order until one must wait. With equal progress a prompt starts here
 * without tokens, if the budget has a first unit for it and for all prompts before it. */
static void start_prompts(const struct capacity *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    const bool equal = p->chunking == CHUNKING_EQUAL;
    const int32_t unit = unit_tokens(p, view);
    int64_t promised = equal ? tokens_at_level(p, step, unit) : 0;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (!seats_are_taken(p, view, step) && (r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
            continue;
        const int32_t left = p->max_batched_tokens - step->n_tokens;
        const int32_t n = equal ? 0 : share_of(p, view, r, left);
        const int32_t first = ifl_min(todo_of(p, r), unit);
        enum ifl_verdict verdict = IFL_WAIT;
        if (never_fits(p, view, r))
            verdict = ifl_never(step, r, too_long);
        else if (equal ? promised + first <= left : n > 0)
            verdict = ifl_start(step, r, n);
        if (!ifl_settled(step, r, verdict))
            return;
        if (equal && verdict == IFL_YES)
            promised += first;
    }
}

/* ---- blocks are short: the walk ---- */

struct walk {
    int32_t n_decodes_ahead, n_running_ahead;
    bool joins; /* requests may still start */
};

static bool takes_one(const struct capacity *p, const struct ifl_request *r)
{
    return ifl_decodes(r) || decodes_again(p, r);
}

static void count_ahead(const struct capacity *p, struct ifl_step *step, struct walk *walk)
{
    const struct ifl_requests running = ifl_running(step);
    walk->n_running_ahead = (int32_t)running.n;
    walk->n_decodes_ahead = 0;
    for (size_t i = 0; i < running.n; i++)
        walk->n_decodes_ahead += takes_one(p, running.of[i]);
}

/* Returns the tokens for a prompt; tokens of decodes not visited yet are set aside. With equal
 * progress the result is 0: prompts share the rest after the walk. */
static int32_t tokens_in_walk(const struct capacity *p, const struct ifl_view *view,
                              const struct ifl_step *step, const struct ifl_request *r,
                              const struct walk *walk)
{
    const int32_t left = p->max_batched_tokens - step->n_tokens - walk->n_decodes_ahead;
    return p->chunking == CHUNKING_EQUAL ? 0 : share_of(p, view, r, left);
}

static bool finds_tokens(const struct capacity *p, const struct ifl_view *view,
                         struct ifl_step *step, const struct ifl_request *r, int32_t n,
                         const struct walk *walk)
{
    const int32_t unit = unit_tokens(p, view), first = ifl_min(todo_of(p, r), unit);
    const int32_t left = p->max_batched_tokens - step->n_tokens - walk->n_decodes_ahead;
    return p->chunking == CHUNKING_EQUAL ? tokens_at_level(p, step, unit) + first <= left : n > 0;
}

/* Returns false to stop the walk. With chunking, a request without tokens is skipped so that
 * started requests behind it may run (the micro batch skips it); without, it blocks the queue. */
static bool pass_waiting(const struct capacity *p, const struct ifl_view *view,
                         struct ifl_step *step, const struct ifl_request *r, struct walk *walk)
{
    const int32_t n = tokens_in_walk(p, view, step, r, walk);
    if (seats_are_taken(p, view, step))
        return false;
    if (ifl_dropped_as_too_wide(step, r, p->max_seqs))
        return true;
    if (never_fits(p, view, r))
        return ifl_settled(step, r, ifl_never(step, r, too_long));
    if (finds_tokens(p, view, step, r, n, walk))
        return ifl_settled(step, r, start_making_room(step, r, n, walk->n_running_ahead));
    walk->joins = false;
    return p->chunking != CHUNKING_NONE;
}

/* True if r was paused in this plan, or cannot start: then no request behind it may start. A plan
 * made ahead may have paused a request that had ended and is in no list any more. As the last
 * running request it stood, first come, first served, before all that wait. */
static bool must_wait(const struct capacity *p, const struct ifl_view *view, struct ifl_step *step,
                      const struct ifl_request *r, struct walk *walk)
{
    if (ifl_gave_way_now(view, step, r) || (view->limits->plans_ahead && step->n_preempted > 0))
        return true;
    return walk->joins && !pass_waiting(p, view, step, r, walk);
}

/* Returns true if the walk goes on, although no further request starts: running requests are left
 * that still get their tokens. Otherwise a request that waits for their blocks would wait for ever.
 */
static bool goes_on(const struct ifl_step *step, struct walk *walk)
{
    walk->joins = false;
    return walk->n_running_ahead > step->n_preempted;
}

static void walk_all(const struct capacity *p, const struct ifl_view *view, struct ifl_step *step)
{
    struct walk walk = {.joins = may_join(p, view)};
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    count_ahead(p, step, &walk);
    while ((r = ifl_next(step, IFL_IN_RUNNING | IFL_IN_WAITING, &cursor))) {
        const bool runs = r->state == IFL_RUNNING, decodes = runs && takes_one(p, r);
        walk.n_decodes_ahead -= decodes;
        walk.n_running_ahead -= runs;
        if (runs && !ifl_may_go_on(view, r))
            continue;
        if (runs)
            ifl_give(step, r, decodes ? 1 : tokens_in_walk(p, view, step, r, &walk), 0);
        else if (must_wait(p, view, step, r, &walk) && !goes_on(step, &walk))
            break;
    }
    if (p->chunking == CHUNKING_EQUAL)
        progress_equally(p, view, step);
}

/* ---- the plan ---- */

/* True if a paused request is first in the queue. False if the device is empty and requests are
 * swapped out: these return first, and the walk does not visit them. */
static bool paused_one_is_next(const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *head = ifl_next(step, IFL_IN_WAITING, &cursor);
    return head && head->n_preempted > 0 && (view->n_running > 0 || view->n_swapped == 0);
}

/* A prompt that has begun may rank before a decode and then takes blocks before it. */
static bool prompt_has_begun(const struct capacity *p, const struct ifl_view *view,
                             const struct ifl_step *step)
{
    return p->chunking == CHUNKING_FIRST_COME && view->n_swapped == 0 && step->n_in_prefill > 0;
}

/* Largest number of blocks that requests take to decode again. These requests rank among the
 * decodes, so that the walk is used if fewer blocks are free. */
static int32_t n_blocks_to_decode_again(const struct capacity *p, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    int32_t n = 0;
    while (p->paused_prompt_tokens > 0 && (r = ifl_next(step, IFL_IN_PREFILL, &cursor)))
        n += decodes_again(p, r) ? ifl_need(step, r, ifl_n_slots(r) + 1) : 0;
    return n;
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct capacity *p = self;
    if (paused_one_is_next(view, step) || prompt_has_begun(p, view, step) ||
        !ifl_schedule_ready(step, n_blocks_to_decode_again(p, step))) {
        walk_all(p, view, step);
        return;
    }
    if ((size_t)step->n_requests < view->n_running)
        continue_prompts(p, view, step);
    if (view->n_swapped > 0 && step->n_preempted == 0)
        ifl_return_swapped(step, p->max_seqs);
    if (may_join(p, view) && step->n_preempted == 0 && step->n_swapped == 0)
        start_prompts(p, view, step);
    if (p->chunking == CHUNKING_EQUAL)
        progress_equally(p, view, step);
    ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_capacity = {
    .kind = IFL_BATCHING,
    .name = "capacity",
    .doc = "blocks decide which requests run (the last ones pause); tokens go to decodes first "
           "(TensorRT-LLM)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct capacity),
    .steady = ifl_always_steady,
    .ops.batching = &ops,
};
