/* Prompts first, whole; decodes get what is left of the step. A decode without room in the step
 * pauses: it keeps its K/V and misses the step (splitwise-sim 8f99e7d, instance.py,
 * SplitwiseInstance).
 *
 *   1. decodes that have missed max_missed steps, in order of start
 *   2. waiting prompts, in rank order, until one does not fit
 *   3. decodes that missed the last step, then the others, in order of start
 *   4. requests with K/V that has come from another replica
 *
 * The first request of a step always fits, whatever its length. Two things differ in splitwise-sim:
 * there a prompt also counts the steps that it misses, and consecutive steps of an unchanged decode
 * batch count as one. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct pausing {
    int32_t max_reqs;
    int32_t max_batched_tokens;
    int32_t max_missed;
};

struct mine {
    int32_t n_missed; /* steps in a row that the running request has missed */
};

static const struct ifl_param params[] = {
    {"max_reqs", IFL_INT, offsetof(struct pausing, max_reqs), 512, 1, 1 << 20, NULL, "requests",
     "most requests of a step (max_batch_size)"},
    {"max_batched_tokens", IFL_INT, offsetof(struct pausing, max_batched_tokens), 2048, 1, 1 << 30,
     NULL, "tokens", "most tokens of a step with several requests (max_batch_tokens)"},
    {"max_missed", IFL_INT, offsetof(struct pausing, max_missed), 4, 1, 1 << 20, NULL, "steps",
     "after this many missed steps a decode goes before prompts (max_preemptions)"},
};

static bool has_room(const struct pausing *p, const struct ifl_step *step, int32_t n)
{
    if (step->n_requests == 0)
        return true;
    return step->n_tokens + n <= p->max_batched_tokens && step->n_requests < p->max_reqs;
}

/* Gives a token to each decode that has missed from `least` to `most` steps, in order of start. */
static void give_decodes(const struct pausing *p, struct ifl_step *step, int32_t least,
                         int32_t most)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_RUNNING, &cursor))) {
        const struct mine *mine = ifl_mine(p, r);
        if (!ifl_decodes(r) || ifl_n_now(r) > 0 || mine->n_missed < least || mine->n_missed > most)
            continue;
        if (!has_room(p, step, 1))
            return;
        ifl_give(step, r, 1 + ifl_drafts(step, r), 0);
    }
}

/* Starts waiting requests. loaded: those with K/V that has come from another replica; otherwise the
 * others. */
static void start(const struct pausing *p, struct ifl_step *step, enum ifl_list list, bool loaded)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, list, &cursor))) {
        if ((r->state == IFL_LOADED) != loaded)
            continue;
        if (!has_room(p, step, ifl_todo(r)) ||
            !ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            return;
    }
}

/* Continues prompts of which a swap or a preemption left a part. */
static void go_on_with_prompts(const struct pausing *p, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_PREFILL, &cursor)))
        if (ifl_n_now(r) == 0 && has_room(p, step, ifl_todo(r)))
            ifl_give(step, r, ifl_todo(r), 0);
}

IFL_HOT static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct pausing *p = self;
    const size_t n_running = view->n_running;
    give_decodes(p, step, p->max_missed, INT32_MAX);
    go_on_with_prompts(p, step);
    if (view->n_swapped == 0)
        start(p, step, IFL_IN_WAITING, false);
    give_decodes(p, step, 1, p->max_missed - 1);
    give_decodes(p, step, 0, 0);
    if (step->n_preempted > 0)
        return;
    ifl_return_swapped(step, INT32_MAX);
    start(p, step, IFL_IN_WAITING, true);
    /* Only within the budget do all have room in any order, which the missed steps decide. */
    if (step->n_waiting == 0 && step->n_swapped_in == 0 && (size_t)step->n_requests == n_running &&
        step->n_tokens <= p->max_batched_tokens)
        ifl_promise_to_the_last(step, INT32_MAX, IFL_NEVER, 0);
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)view;
    ((struct mine *)ifl_mine(self, r))->n_missed = 0;
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    (void)view;
    for (size_t i = 0; i < running.n; i++) {
        struct mine *mine = ifl_mine(self, running.of[i]);
        mine->n_missed = ifl_took_part(step, running.of[i]) ? 0 : mine->n_missed + 1;
    }
}

static const struct ifl_batching_ops ops = {plan};

const struct ifl_policy policy_batching_pausing = {
    .kind = IFL_BATCHING,
    .name = "pausing",
    .doc = "prompts first, decodes in the rest of the budget; other decodes miss the step "
           "(splitwise-sim)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct pausing),
    .request_bytes = sizeof(struct mine),
    .on_start = on_start,
    .on_step_start = on_step_start,
    .steady = ifl_always_steady,
    .ops.batching = &ops,
};
