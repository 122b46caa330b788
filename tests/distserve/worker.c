/* The worker of DistServe's simulator (simdistserve/base/worker.py at 82831f1) as two modules.
 *
 * order `rotating`: the queue of a worker. The requests of a step stand behind all others when it
 * has ended.
 * batching `worker`: a step computes the prompts that wait, up to max_prompt_tokens, or else one
 * token of each request in the order of the queue, while their tokens add up to at most
 * max_context_tokens, which is 50,000 in its code. */
#include <inflight/policy.h>

#include "inflight/minmax.h"

/* ---- order ---- */

static int64_t *number_of(const void *self, const struct ifl_request *r)
{
    return ifl_mine(self, r);
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = *number_of(self, of[i]);
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    int64_t *next_number = ifl_state(self);
    (void)view;
    *number_of(self, r) = (*next_number)++;
}

/* The requests of the step keep their order among each other. */
static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct ifl_results results = ifl_results(end);
    int64_t *next_number = ifl_state(self), first = INT64_MAX, last = *next_number;
    (void)view;
    for (size_t i = 0; i < results.n; i++)
        first = ifl_min(first, *number_of(self, results.of[i].request));
    for (size_t i = 0; i < results.n; i++) {
        int64_t *number = number_of(self, results.of[i].request);
        *number += *next_number - first;
        last = ifl_max(last, *number + 1);
    }
    *next_number = last;
}

static const struct ifl_order_ops order_ops = {.rank = rank};

static const struct ifl_policy rotating = {
    .kind = IFL_ORDER,
    .name = "rotating",
    .doc = "a queue whose requests go to its end after each step",
    .state_bytes = sizeof(int64_t),
    .request_bytes = sizeof(int64_t),
    .on_join = on_join,
    .on_step_end = on_step_end,
    .ops.order = &order_ops,
};

/* ---- batching ---- */

struct worker {
    int32_t max_prompt_tokens, max_context_tokens;
};

static const struct ifl_param params[] = {
    {"max_prompt_tokens", IFL_INT, offsetof(struct worker, max_prompt_tokens), 1 << 30, 1, 1 << 30,
     NULL, "tokens", "most tokens of a step of prompts"},
    {"max_context_tokens", IFL_INT, offsetof(struct worker, max_context_tokens), 50000, 1, 1 << 30,
     NULL, "tokens", "most tokens of the requests of a step of decodes"},
};

/* K/V that another replica has computed comes at once, before the step. */
static bool load_what_has_come(struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    bool loads = false;
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (r->state != IFL_LOADED && ifl_hit(step, r).n_below > 0)
            loads |= ifl_load(step, r, ifl_hit(step, r).n_below, IFL_LOAD_BEFORE) == IFL_YES;
    return loads;
}

static void start_prompts(const struct worker *p, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor))) {
        if (r->state == IFL_LOADED || ifl_hit(step, r).n_below > 0)
            continue;
        if (step->n_tokens + ifl_todo(r) > p->max_prompt_tokens ||
            !ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            return;
    }
}

/* When a request came to its place in the queue: as its last step or its prompt ended. */
static int64_t queued_ns(const struct ifl_request *r)
{
    return r->state == IFL_LOADED ? r->first_token_ns : ifl_last_end_ns(r);
}

static void decode(const struct worker *p, struct ifl_step *step)
{
    struct ifl_cursor old = {{0}}, new = {{0}};
    const struct ifl_request *running = ifl_next(step, IFL_IN_RUNNING, &old),
                             *loaded = ifl_next(step, IFL_IN_LOADED, &new);
    int64_t n_left = p->max_context_tokens;
    while (running || loaded) {
        const bool starts = loaded && (!running || queued_ns(loaded) < queued_ns(running));
        const struct ifl_request *r = starts ? loaded : running;
        n_left -= ifl_n_tokens(r);
        if (n_left < 0)
            return;
        if (starts)
            ifl_settled(step, r, ifl_start(step, r, 1));
        else
            ifl_give(step, r, 1, 0);
        if (starts)
            loaded = ifl_next(step, IFL_IN_LOADED, &new);
        else
            running = ifl_next(step, IFL_IN_RUNNING, &old);
    }
}

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct worker *p = self;
    (void)view;
    if (load_what_has_come(step))
        return;
    start_prompts(p, step);
    if (step->n_tokens == 0)
        decode(p, step);
}

static const struct ifl_batching_ops batching_ops = {.plan = plan};

static const struct ifl_policy worker = {
    .kind = IFL_BATCHING,
    .name = "worker",
    .doc = "all prompts, or else a token each while the contexts fit",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct worker),
    .ops.batching = &batching_ops,
};

IFL_POLICIES(&rotating, &worker);
