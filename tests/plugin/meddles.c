/* Modules of each kind that change the step in each function of theirs that may not: `in` is the
 * function, `does` the change. A step that is borrowed for a plan is kept, for functions that are
 * given none. (A router is given none at all.) */
#include <inflight/policy.h>

enum { N_TABLE = 32 };

struct meddles {
    char in[N_TABLE];
    char does[N_TABLE];
};

static const struct ifl_param params[] = {
    {"in", IFL_TEXT, offsetof(struct meddles, in), 0, 0, N_TABLE, "", "", "function"},
    {"does", IFL_TEXT, offsetof(struct meddles, does), 0, 0, N_TABLE, "", "", "change"},
};

/* One request that is here, and the step of the last plan. */
static const struct ifl_request *one;
static struct ifl_step *borrowed;

static void rejects(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_reject(step, r);
}

static void starts(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_start(step, r, 1);
}

static void starts_padded(struct ifl_step *step, const struct ifl_request *r)
{
    step->ops->start_padded(step, r, 1, 1);
}

static void schedules(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_schedule(step, r, 1, 0);
}

static void schedules_drafts(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_schedule_drafts(step, r, 1, 1, 0);
}

static void schedules_ready(struct ifl_step *step, const struct ifl_request *r)
{
    (void)r;
    ifl_schedule_ready(step, 0);
}

static void makes_room(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_make_room(step, r);
}

static void preempts(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_preempt(step, r, IFL_RECOMPUTE, IFL_FRONT);
}

static void refuses(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_refuse(step, r, "it does not like it");
}

static void promises(struct ifl_step *step, const struct ifl_request *r)
{
    (void)r;
    ifl_promise(step, 9, IFL_NEVER, 0);
}

static void wakes(struct ifl_step *step, const struct ifl_request *r)
{
    (void)r;
    ifl_wake(step, IFL_NEVER - 1);
}

static void pads(struct ifl_step *step, const struct ifl_request *r)
{
    (void)r;
    ifl_pad(step, (struct ifl_padding){0});
}

static void keeps(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_keep(step, r, INT32_MAX);
}

static void loads(struct ifl_step *step, const struct ifl_request *r)
{
    ifl_load(step, r, 0, IFL_LOAD_APART);
}

struct change {
    const char *name;
    void (*act)(struct ifl_step *step, const struct ifl_request *r);
};

static const struct change changes[] = {
    {"reject", rejects},
    {"start", starts},
    {"start_padded", starts_padded},
    {"schedule", schedules},
    {"schedule_drafts", schedules_drafts},
    {"schedule_ready", schedules_ready},
    {"make_room", makes_room},
    {"preempt", preempts},
    {"refuse", refuses},
    {"promise", promises},
    {"wake", wakes},
    {"pad", pads},
    {"keep", keeps},
    {"load", loads},
};

static bool is(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* What `does` says, if this is the function that `in` says. */
static void meddle(const void *self, const char *in, struct ifl_step *step)
{
    const struct meddles *p = self;
    for (size_t i = 0; step && one && is(p->in, in) && i < sizeof changes / sizeof *changes; i++)
        if (is(p->does, changes[i].name))
            changes[i].act(step, one);
}

static struct ifl_step *plan_of(const struct ifl_view *view)
{
    struct ifl_step *step = ifl_plan(view);
    return step ? step : borrowed;
}

/* ---- hooks ---- */

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    one = r;
    meddle(self, "on_join", plan_of(view));
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    one = r;
    meddle(self, "on_start", plan_of(view));
}

static void on_undo(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)r;
    meddle(self, "on_undo", plan_of(view));
}

static void on_preempt(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)r;
    meddle(self, "on_preempt", plan_of(view));
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)view;
    borrowed = step;
    meddle(self, "on_step_start", step);
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    (void)end;
    meddle(self, "on_step_end", plan_of(view));
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    meddle(self, "on_leave", plan_of(view));
    one = one == r ? NULL : one;
}

static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    meddle(self, "steady", step);
    return ifl_always_steady(self, view, step);
}

/* ---- answers ---- */

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->arrival_ns;
    meddle(self, "rank", plan_of(view));
}

static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    meddle(self, "keys", plan_of(view));
    return IFL_KEYS_MOVE;
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    (void)view;
    (void)n;
    meddle(self, "ask", step);
    return ifl_admission(ifl_need(step, r, ifl_n_tokens(r)) <= step->n_free_blocks ? IFL_YES
                                                                                   : IFL_NO_BLOCKS,
                         ifl_n_tokens(r));
}

static double room(const void *self, const struct ifl_view *view, struct ifl_step *step,
                   double enough)
{
    (void)view;
    meddle(self, "room", step);
    return enough;
}

/* The request on the device that started last. */
static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    const struct ifl_requests running = ifl_running(step);
    (void)view;
    (void)needy;
    meddle(self, "pick", step);
    for (size_t i = running.n; i-- > 0;)
        if (running.of[i]->state == IFL_RUNNING)
            return (struct ifl_victim){running.of[i], IFL_RECOMPUTE, IFL_FRONT};
    return (struct ifl_victim){0};
}

static void ahead(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)view;
    meddle(self, "ahead", step);
}

static int64_t key(const void *self, const struct ifl_view *view, const struct ifl_cached *cached)
{
    meddle(self, "key", plan_of(view));
    return (int64_t)cached->last_used;
}

static int32_t guess(const void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    (void)r;
    meddle(self, "guess", plan_of(view));
    return 2;
}

static int32_t guess_for_all(const void *self, const struct ifl_view *view)
{
    meddle(self, "for_all", plan_of(view));
    return -1;
}

static int32_t most(const void *params_of)
{
    (void)params_of;
    return 2;
}

/* ---- a plan that does what it may not ---- */

static void rejects_running(struct ifl_step *step, const struct ifl_request *r)
{
    if (r->state == IFL_RUNNING)
        ifl_reject(step, r);
}

static void schedules_twice(struct ifl_step *step, const struct ifl_request *r)
{
    if (r->state == IFL_RUNNING)
        for (int i = 0; i < 2; i++)
            ifl_schedule(step, r, 1, 0);
}

static void schedules_too_much(struct ifl_step *step, const struct ifl_request *r)
{
    if (r->state == IFL_RUNNING)
        ifl_schedule(step, r, ifl_todo(r) + 1, 0);
}

static void schedules_none(struct ifl_step *step, const struct ifl_request *r)
{
    if (r->state == IFL_RUNNING)
        ifl_schedule(step, r, 0, 0);
}

static void starts_running(struct ifl_step *step, const struct ifl_request *r)
{
    if (r->state == IFL_RUNNING)
        ifl_start(step, r, 1);
}

static void starts_with_no_row(struct ifl_step *step, const struct ifl_request *r)
{
    step->ops->start_padded(step, r, 1, 0);
}

static void preempts_waiting(struct ifl_step *step, const struct ifl_request *r)
{
    if (r->state == IFL_WAITING)
        ifl_preempt(step, r, IFL_RECOMPUTE, IFL_FRONT);
}

static void loads_nothing(struct ifl_step *step, const struct ifl_request *r)
{
    if (r->state == IFL_WAITING)
        ifl_load(step, r, 5, IFL_LOAD_APART);
}

static const struct change misuses[] = {
    {"reject running", rejects_running},
    {"schedule twice", schedules_twice},
    {"schedule too much", schedules_too_much},
    {"schedule none", schedules_none},
    {"schedule_drafts", schedules_drafts},
    {"start running", starts_running},
    {"start_padded with no row", starts_with_no_row},
    {"preempt waiting", preempts_waiting},
    {"load nothing", loads_nothing},
};

static void misuse(const void *self, struct ifl_step *step)
{
    const struct meddles *p = self;
    for (size_t i = 0; one && is(p->in, "plan") && i < sizeof misuses / sizeof *misuses; i++)
        if (is(p->does, misuses[i].name))
            misuses[i].act(step, one);
}

/* Takes back the first start of each plan, and makes it again. */
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r = ifl_next(step, IFL_IN_WAITING, &cursor);
    (void)view;
    misuse(self, step);
    ifl_room(step, 1);
    if (!ifl_schedule_ready(step, 0))
        ifl_decode_one_by_one(step, 0);
    ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
    if (!r || step->n_preempted > 0 || ifl_start(step, r, ifl_todo(r)) != IFL_YES)
        return;
    ifl_preempt(step, r, IFL_RECOMPUTE, IFL_FRONT);
    ifl_start(step, r, ifl_todo(r));
}

static const struct ifl_batching_ops batching_ops = {plan};
static const struct ifl_order_ops order_ops = {rank, keys};
static const struct ifl_admit_ops admit_ops = {.ask = ask, .room = room};
static const struct ifl_preempt_ops preempt_ops = {pick, ahead};
static const struct ifl_evict_ops evict_ops = {.key = key};
static const struct ifl_draft_ops draft_ops = {guess, most, guess_for_all};

#define MEDDLES(of_kind, field)                                                                    \
    static const struct ifl_policy field = {                                                       \
        .kind = of_kind,                                                                           \
        .name = "meddles",                                                                         \
        .doc = "changes the step",                                                                 \
        .params = params,                                                                          \
        .n_params = sizeof params / sizeof *params,                                                \
        .params_bytes = sizeof(struct meddles),                                                    \
        .on_join = on_join,                                                                        \
        .on_start = on_start,                                                                      \
        .on_undo = on_undo,                                                                        \
        .on_preempt = on_preempt,                                                                  \
        .on_step_start = on_step_start,                                                            \
        .on_step_end = on_step_end,                                                                \
        .on_leave = on_leave,                                                                      \
        .steady = steady,                                                                          \
        .ops.field = &field##_ops,                                                                 \
    }

MEDDLES(IFL_BATCHING, batching);
MEDDLES(IFL_ORDER, order);
MEDDLES(IFL_ADMIT, admit);
MEDDLES(IFL_PREEMPT, preempt);
MEDDLES(IFL_EVICT, evict);
MEDDLES(IFL_DRAFT, draft);

IFL_POLICIES(&batching, &order, &admit, &preempt, &evict, &draft);
