/* Prefill first with one chunked prompt at a time, and retraction before a decode, as SGLang
 * schedules (2026-08, python/sglang/srt/managers/scheduler.py and schedule_policy.py).
 *
 * A step takes the chunk of the prompt that has begun, then new prompts in rank order until the
 * budget of input tokens or of the chunk is used up; the one that does not fit into the chunk is
 * cut to whole pages. The first prompt of a step may exceed the input budget. If there is nothing
 * to prefill, everyone decodes a token; before that, requests are retracted until each has room
 * for it. Once the admit module has refused somebody, nobody is asked again before a request has
 * finished or was retracted (batch_is_full). Mixed, the decodes join the prefill. */
#include "inflight/policy.h"

struct retracting {
    int32_t max_seqs;
    int32_t max_prefill_tokens;
    int32_t chunk_tokens; /* 0: prompts run whole */
    bool mixed;
};

struct batch {
    bool full;
    bool refused; /* somebody, by the plan that was made last; on_step_start reads it */
};

static const struct ifl_param params[] = {
    {"max_seqs", IFL_INT, offsetof(struct retracting, max_seqs), 4096, 1, 1 << 20, NULL,
     "sequences", "most sequences on the device (max_running_requests)"},
    {"max_prefill_tokens", IFL_INT, offsetof(struct retracting, max_prefill_tokens), 16384, 1,
     1 << 30, NULL, "tokens", "input tokens of a prefill step"},
    {"chunk_tokens", IFL_INT, offsetof(struct retracting, chunk_tokens), 8192, 0, 1 << 30, NULL,
     "tokens",
     "most tokens of a prefill step, longer prompts are cut (chunked_prefill_size); 0: none"},
    {"mixed", IFL_BOOL, offsetof(struct retracting, mixed), 0, 0, 1, NULL, "",
     "decodes join a prefill step and count in its chunk (enable_mixed_chunk)"},
};

static struct batch *batch_of(const void *self)
{
    return (struct batch *)((uintptr_t)self + ifl_state_offset(sizeof(struct retracting)));
}

/* ---- budgets ---- */

/* Decodes that will join. */
static int32_t n_mixed(const struct retracting *p, const struct ifl_view *view,
                       struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    int32_t n = p->mixed ? (int32_t)view->n_running : 0;
    while (p->mixed && ifl_next(step, IFL_IN_PREFILL, &cursor))
        n--;
    return n;
}

static int32_t input_left(const struct retracting *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    return p->max_prefill_tokens - n_mixed(p, view, step) - step->n_prefill_tokens;
}

static int32_t chunk_left(const struct retracting *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    if (p->chunk_tokens == 0)
        return INT32_MAX;
    return p->chunk_tokens - n_mixed(p, view, step) - step->n_prefill_tokens;
}

/* All of a prompt, or what is left of the chunk in whole pages. */
static int32_t share_of(const struct retracting *p, const struct ifl_view *view,
                        struct ifl_step *step, const struct ifl_request *r)
{
    const int32_t page = view->limits->block_tokens, left = chunk_left(p, view, step);
    if (ifl_todo(r) <= left)
        return ifl_todo(r);
    return left >= page ? left / page * page : 0;
}

static bool over_input(const struct retracting *p, const struct ifl_view *view,
                       struct ifl_step *step, const struct ifl_request *r)
{
    return step->n_prefill_requests > 0 && ifl_todo(r) >= input_left(p, view, step);
}

/* ---- prefill ---- */

static void continue_chunk(const struct retracting *p, const struct ifl_view *view,
                           struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_PREFILL, &cursor)))
        ifl_give(step, r, share_of(p, view, step, r), 0);
}

/* Memory is asked for before the other budgets: whoever lacks both makes the batch full, too. */
static enum ifl_verdict start_one(const struct retracting *p, const struct ifl_view *view,
                                  struct ifl_step *step, const struct ifl_request *r)
{
    const int32_t n = share_of(p, view, step, r);
    const enum ifl_verdict memory = ifl_ask(step, r, n);
    if (memory != IFL_YES)
        return memory;
    return n == 0 || over_input(p, view, step, r) ? IFL_WAIT : ifl_start(step, r, n);
}

/* Nobody is looked at behind whoever was cut or took the last of a budget. */
static bool used_up(const struct retracting *p, const struct ifl_view *view, struct ifl_step *step,
                    const struct ifl_request *last)
{
    return ifl_todo(last) > 0 || input_left(p, view, step) <= 0 || chunk_left(p, view, step) <= 0;
}

static void start_prompts(const struct retracting *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    struct batch *batch = batch_of(p);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (step->n_running_seqs < p->max_seqs && (r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        const enum ifl_verdict verdict = start_one(p, view, step, r);
        batch->refused = verdict == IFL_NO_BLOCKS;
        if (!ifl_settled(step, r, verdict) || (verdict == IFL_YES && used_up(p, view, step, r)))
            return;
    }
}

/* ---- decode ---- */

static const struct ifl_request *anyone_running(struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING && running.of[i]->n_now == 0)
            return running.of[i];
    return NULL;
}

/* The last one left decodes alone where the others' chunk leaves it room. */
static void decode_everyone(struct ifl_step *step)
{
    while (!ifl_schedule_ready(step, 0)) {
        const int32_t n_before = step->n_preempted;
        const struct ifl_request *r = anyone_running(step);
        if (r)
            ifl_make_room(step, r);
        if (step->n_preempted == n_before)
            return;
    }
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct retracting *p = self;
    batch_of(p)->refused = false;
    continue_chunk(p, view, step);
    if (!batch_of(p)->full && view->n_swapped == 0 && step->n_preempted == 0)
        start_prompts(p, view, step);
    if (step->n_prefill_requests > 0 && !p->mixed)
        return;
    decode_everyone(step);
    if (step->n_preempted > 0)
        return;
    if (view->n_swapped > 0)
        ifl_return_swapped(step, p->max_seqs);
    ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
}

/* ---- is the batch full? ---- */

static void on_step_start(void *self, const struct ifl_view *view, const struct ifl_step_desc *desc,
                          struct ifl_step *step)
{
    struct batch *batch = batch_of(self);
    (void)view;
    (void)desc;
    batch->full = step->n_preempted == 0 && (batch->full || batch->refused);
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
    if (r->n_prefill > 0) /* it ran, and was not turned away */
        batch_of(self)->full = false;
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_retracting = {
    .kind = IFL_BATCHING,
    .name = "retracting",
    .doc = "prefill first, one prompt in chunks; retracts before a decode lacks room (SGLang)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct retracting),
    .state_bytes = sizeof(struct batch),
    .on_step_start = on_step_start,
    .on_leave = on_leave,
    .ops.batching = &ops,
};
