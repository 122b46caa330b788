/* Admit against a discounted future, as SGLang's PrefillAdder does (2026-08,
 * python/sglang/srt/managers/schedule_policy.py).
 *
 * For running requests a fraction of their remaining declared output is set aside: the new-token
 * ratio.
 *   - It starts high and falls with every decode step to a floor.
 *   - When requests are retracted it is estimated anew from the tokens produced so far.
 *   - When the engine was idle it starts anew.
 * A new request needs room for its prompt, its whole declared output (at most `most_new_tokens`)
 * and a page. Requests that start in the same step count in full, too.
 *
 * A request that ends with a decode counts as running until the next decode is made, if others
 * still run. With overlap the tokens of the last step are not known yet, and a request that ends
 * with it counts until the decode after the next plan. */
#include <math.h>

#include "inflight/minmax.h"
#include "inflight/policy.h"

enum { RETRACT_STEPS = 20 };

struct discounted {
    double conservativeness;
    double first_ratio, floor_frac;
    int32_t decay_steps;
    int32_t most_new_tokens;
    bool mixed;
};

/* Requests that ended with the last step, unknown to a plan made ahead. */
struct unknown {
    int64_t tokens;             /* tokens still to produce, as the plan made ahead counts them */
    int64_t ended_tokens, n;    /* tokens still to produce, as later plans count them; number of
                                   sequences */
    int64_t produced, declared; /* tokens, for the ratio */
};

struct future {
    double first_ratio, floor, fall; /* first and lowest value of the ratio; fall: its decrease per
                                        decode step */
    double ratio;                    /* the ratio before step number `step` */
    uint64_t step;  /* steps from this one on had no on_step_start: they only decoded */
    int64_t n_live; /* requests at the replica */
    int64_t last_left_ns;
    int64_t most_tokens;           /* most that may be set aside for all started requests */
    bool decodes;                  /* the last step that had an on_step_start only decoded */
    uint64_t ended_step;           /* ended requests count until this step, if it decodes: */
    int64_t ended_tokens, n_ended; /* tokens they might have produced; their sequences */
    struct unknown unknown;
};

static const struct ifl_param params[] = {
    {"conservativeness", IFL_REAL, offsetof(struct discounted, conservativeness), 1, 0, 100, NULL,
     "", "factor of first_ratio (schedule_conservativeness)"},
    {"first_ratio", IFL_REAL, offsetof(struct discounted, first_ratio), 0.7, 0, 1, NULL, "",
     "share of the remaining declared output that is reserved at first"},
    {"floor_frac", IFL_REAL, offsetof(struct discounted, floor_frac), 0.14, 0, 1, NULL, "",
     "lower limit of this share, as a fraction of the first ratio"},
    {"decay_steps", IFL_INT, offsetof(struct discounted, decay_steps), 600, 1, 1 << 30, NULL,
     "steps", "decode steps in which the share falls from the first ratio to the limit"},
    {"most_new_tokens", IFL_INT, offsetof(struct discounted, most_new_tokens), 4096, 0, 1 << 30,
     NULL, "tokens", "limit of the declared output that counts (CLIP_MAX_NEW_TOKENS)"},
    {"mixed", IFL_BOOL, offsetof(struct discounted, mixed), 0, 0, 1, NULL, "",
     "each decode beside the prompt takes a token in the same step (enable_mixed_chunk)"},
};

static struct future *future_of(const void *self)
{
    return ifl_state(self);
}

/* The declared limit, cut to what the pool can hold (max_req_len). */
static int64_t declared(const struct ifl_view *view, const struct ifl_request *r)
{
    const int64_t page = view->limits->block_tokens, pool = view->limits->n_blocks * page;
    const int64_t room = pool - 1 - page - r->n_prompt;
    return ifl_min(r->n_max_new, ifl_max(room, 0));
}

static int64_t clipped(const struct discounted *p, int64_t n_tokens)
{
    const int64_t n = ifl_max(n_tokens, 0);
    return ifl_min(n, p->most_new_tokens);
}

static int64_t new_tokens(const struct discounted *p, const struct ifl_view *view,
                          const struct ifl_request *r)
{
    return clipped(p, declared(view, r) - ifl_known_out(view, r));
}

/* ---- the ratio ---- */

static void begin_ratio(const struct discounted *p, struct future *future)
{
    const double ratio = p->first_ratio * p->conservativeness, first = fmin(ratio, 1);
    future->ratio = future->first_ratio = first;
    future->floor = first * p->floor_frac;
    future->fall = (first - future->floor) / p->decay_steps;
}

static double fallen(const struct future *future, double ratio)
{
    return fmax(ratio - future->fall, future->floor);
}

/* The ratio before step number `number`. */
static double ratio_before(const struct discounted *p, uint64_t number)
{
    const struct future *future = future_of(p);
    double ratio = future->ratio, before = INFINITY;
    for (uint64_t step = future->step; step < number && ratio != before; step++) {
        before = ratio;
        ratio = fallen(future, ratio);
    }
    return ratio;
}

/* ---- what is set aside ---- */

static bool ends_prompt_now(const struct ifl_request *r)
{
    return ifl_n_now(r) > 0 && ifl_todo(r) == 0;
}

/* A request that ends its prompt in this step counts its output in full; after a retraction as if
 * it had produced none. */
static double of_new(const struct discounted *p, const struct ifl_view *view,
                     const struct ifl_request *r)
{
    if (r->state != IFL_RUNNING || !ends_prompt_now(r))
        return 0;
    return (double)(clipped(p, declared(view, r)) + view->limits->block_tokens);
}

/* New tokens count in whole pages, even if a chunk begins within a page that is held: the
 * difference, in tokens. */
static double page_rest(const struct ifl_view *view, const struct ifl_request *r)
{
    const int32_t page = view->limits->block_tokens, in_page = ifl_n_slots(r) % page;
    const int32_t n_pages = (ifl_n_now(r) + page - 1) / page;
    const int32_t n_new = (in_page + ifl_n_now(r) + page - 1) / page - (in_page > 0);
    return r->state == IFL_RUNNING && ifl_n_now(r) > 0 ? (double)((n_pages - n_new) * page) : 0;
}

static bool counts_ended(const struct discounted *p, const struct ifl_view *view)
{
    return future_of(p)->ended_step == view->step && view->n_running > 0;
}

static double of_ended(const struct discounted *p, const struct ifl_view *view, double ratio)
{
    const struct future *future = future_of(p);
    if (view->limits->plans_ahead)
        return view->n_running > 0 ? (double)(future->ended_tokens + future->unknown.tokens) * ratio
                                   : 0;
    return counts_ended(p, view)
               ? (double)future->ended_tokens * ratio + (double)(p->mixed * future->n_ended)
               : 0;
}

/* Prompts that are still in chunks set nothing aside. */
static double set_aside(const struct discounted *p, const struct ifl_view *view,
                        struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step), started = ifl_started(step);
    const double ratio = ratio_before(p, ifl_next_step(view));
    double tokens = of_ended(p, view, ratio);
    for (size_t i = 0; i < running.n; i++) {
        const struct ifl_request *r = running.of[i];
        if (r->state == IFL_RUNNING && ifl_decodes(r))
            tokens += (double)new_tokens(p, view, r) * ratio + p->mixed;
        else
            tokens += of_new(p, view, r) + page_rest(view, r);
    }
    for (size_t i = 0; i < started.n; i++)
        tokens += of_new(p, view, started.of[i]);
    return tokens;
}

/* The largest number of tokens ever set aside for r: its output, and a page each in of_new and
 * page_rest. */
static int64_t at_most(const struct discounted *p, const struct ifl_view *view,
                       const struct ifl_request *r)
{
    return clipped(p, declared(view, r)) + INT64_C(2) * view->limits->block_tokens;
}

/* O(1) lower bound of the room, since no ratio is above one. */
static int64_t least_room(const struct discounted *p, const struct ifl_view *view,
                          struct ifl_step *step)
{
    const int64_t most = future_of(p)->most_tokens + (int64_t)of_ended(p, view, 1);
    return (int64_t)step->n_free_blocks * view->limits->block_tokens - most;
}

static double room(const void *self, const struct ifl_view *view, struct ifl_step *step,
                   double enough)
{
    const int64_t free_tokens = (int64_t)step->n_free_blocks * view->limits->block_tokens;
    if ((double)least_room(self, view, step) > enough)
        return enough;
    return fmin(enough, (double)free_tokens - set_aside(self, view, step));
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct discounted *p = self;
    const int32_t page = view->limits->block_tokens, todo = ifl_todo(r);
    const int64_t pool = (int64_t)view->limits->n_blocks * page;
    const int32_t whole = (todo + page - 1) / page * page;
    const int64_t prompt = (int64_t)ifl_need(step, r, ifl_n_tokens(r)) * page - (whole - todo);
    const int64_t output = new_tokens(p, view, r), n_tokens = prompt + output + page;
    /* A group counts its declared output once, but its answers so far each on its own. */
    if (ifl_n_tokens(r) + page >= pool || n_tokens >= pool)
        return ifl_admission(IFL_NEVER_FITS, 0);
    const bool fits = (double)n_tokens < room(self, view, step, (double)n_tokens + 1);
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, ifl_n_slots(r) + n);
}

/* ---- how it changes ---- */

/* The ratio after a retraction: tokens that all running requests will have produced in
 * RETRACT_STEPS steps, over their declared outputs. */
static double estimated_ratio(const struct discounted *p, const struct ifl_view *view,
                              struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    const struct unknown *unknown = &future_of(p)->unknown;
    double produced = (double)unknown->produced, limit = 1 + (double)unknown->declared;
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING) {
            produced += ifl_known_out(view, running.of[i]) + RETRACT_STEPS;
            limit += (double)declared(view, running.of[i]);
        }
    return produced < limit ? produced / limit : 1;
}

/* A request counts from its first start until it leaves, also while it is preempted. */
static void set_most(struct future *future, int64_t *own_tokens, int64_t tokens)
{
    future->most_tokens += tokens - *own_tokens;
    *own_tokens = tokens;
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    set_most(future_of(self), ifl_mine(self, r), at_most(self, view, r));
}

/* Finished requests stop counting at the next decode, or once no request is running. */
static void learn(struct future *future, const struct ifl_view *view)
{
    if (future->decodes || view->n_running == 0)
        future->ended_tokens = future->n_ended = 0;
    future->ended_tokens += future->unknown.ended_tokens;
    future->n_ended += future->unknown.n;
    future->unknown = (struct unknown){0};
}

static void note_unknown(const struct discounted *p, const struct ifl_view *view,
                         const struct ifl_request *r)
{
    struct unknown *unknown = &future_of(p)->unknown;
    const int64_t limit = declared(view, r);
    unknown->tokens += clipped(p, limit - ifl_n_out(r) + 1);
    unknown->ended_tokens += clipped(p, limit - ifl_n_out(r));
    unknown->n += r->n_seqs;
    unknown->produced += ifl_n_out(r) - 1 + RETRACT_STEPS;
    unknown->declared += limit;
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct discounted *p = self;
    struct future *future = future_of(self);
    future->ratio = ratio_before(p, ifl_next_step(view) - 1); /* this one is in flight */
    future->step = ifl_next_step(view);
    if (step->n_preempted > 0)
        future->ratio = estimated_ratio(p, view, step);
    else if (step->n_prefill_tokens == 0)
        future->ratio = fallen(future, future->ratio);
    future->decodes = step->n_prefill_tokens == 0;
    future->ended_step += counts_ended(p, view) && !future->decodes && !p->mixed;
    if (view->limits->plans_ahead)
        learn(future, view);
}

/* On an engine that was idle the ratio starts anew. */
static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct future *future = future_of(self);
    (void)r;
    if (future->n_live++ > 0 || view->now_ns <= future->last_left_ns)
        return;
    future->ratio = future->first_ratio;
    future->step = ifl_next_step(view);
    future->ended_tokens = future->n_ended = 0;
    future->unknown = (struct unknown){0};
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    struct future *future = future_of(self);
    future->n_live--;
    set_most(future, ifl_mine(self, r), 0);
    if (r->n_prefill == 0) /* it never ran: it was rejected */
        return;
    future->last_left_ns = view->now_ns;
    if (view->limits->plans_ahead)
        note_unknown(self, view, r);
    if (view->limits->plans_ahead || !future->decodes)
        return;
    if (future->ended_step != view->step)
        future->ended_tokens = future->n_ended = 0;
    future->ended_step = view->step;
    future->ended_tokens += new_tokens(self, view, r);
    future->n_ended += r->n_seqs;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    begin_ratio(self, future_of(self));
    if (!limits->contiguous)
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "serving.admit.policy discounted takes blocks as they are needed, expected one "
                    "that takes all at once (reserve) or serving.kv.allocator paged");
}

/* A request that was refused may be admitted when the ratio has fallen. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct ifl_promise stands = ifl_always_steady(self, view, step);
    return step->asked & 1u << IFL_ADMIT ? (struct ifl_promise){0} : stands;
}

static const struct ifl_admit_ops ops = {ask, room};

const struct ifl_policy policy_admit_discounted = {
    .kind = IFL_ADMIT,
    .name = "discounted",
    .doc = "prompt, declared output and a share of the others' remaining output must fit (SGLang)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct discounted),
    .state_bytes = sizeof(struct future),
    .request_bytes = sizeof(int64_t),
    .init = init,
    .on_join = on_join,
    .on_start = on_start,
    .on_step_start = on_step_start,
    .steady = steady,
    .on_leave = on_leave,
    .ops.admit = &ops,
};
