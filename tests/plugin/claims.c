/* An order and an admission with answers that change with time, each in a plain form and in one
 * with a wrong claim that allows faster planning; an order with keys that change with the request
 * itself, without a claim and with a right one; a batching module that promises to go on and does
 * not, where several steps may be in flight; and claims that are wrong about the same step:
 * guesses, padding, a preemption behind the plan, and a hook that counts its calls in place of
 * steps. */
#include <inflight/policy.h>

/* Requests take turns at being first; the turn changes every tenth of a second. */
static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        key[i] = (int64_t)((of[i]->serial + (uint64_t)(view->now_ns / 100000000)) % 7);
}

/* The request with the fewest tokens so far is first. */
static void rank_attained(const void *self, const struct ifl_view *view,
                          const struct ifl_request *const *of, size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = ifl_n_out(of[i]);
}

/* No request is admitted in the second half of every second. */
static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const int64_t in_second_ns = view->now_ns % 1000000000;
    (void)self;
    (void)n;
    if (in_second_ns >= 500000000)
        return ifl_not_before(view->now_ns + 1000000000 - in_second_ns);
    const bool fits = ifl_need(step, r, ifl_n_tokens(r)) <= step->n_free_blocks;
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, ifl_n_tokens(r));
}

/* As `ask`, but a refusal does not name the end of the closed half second. */
static struct ifl_admission ask_silently(const void *self, const struct ifl_view *view,
                                         struct ifl_step *step, const struct ifl_request *r,
                                         int32_t n)
{
    struct ifl_admission answer = ask(self, view, step, r, n);
    answer.until_ns = 0;
    return answer;
}

/* Beside the step of a request that decodes alone it has the request give way. */
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r = ifl_next(step, IFL_IN_WAITING, &cursor);
    (void)self;
    if (r)
        ifl_start(step, r, ifl_todo(r));
    ifl_decode_one_by_one(step, 0);
    if (view->step % 20 == 19 && running.n == 1 && !r && ifl_n_now(running.of[0]) == 0)
        ifl_preempt(step, running.of[0], IFL_RECOMPUTE, IFL_FRONT);
    ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
}

/* Guesses that begin with the 20th token. */
static int32_t guess_late(const void *self, const struct ifl_view *view,
                          const struct ifl_request *r)
{
    (void)self;
    (void)view;
    return ifl_n_out(r) < 20 ? 0 : 3;
}

static int32_t most_guesses(const void *params)
{
    (void)params;
    return 3;
}

static void start_what_fits(struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (!ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            return;
}

/* Rows of padding that go by the number of the step. */
static void plan_padded(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)self;
    ifl_decode_one_by_one(step, 0);
    start_what_fits(step);
    ifl_pad(step, (struct ifl_padding){.n_decode_seqs = (int32_t)(view->step % 7)});
    ifl_promise(step, INT32_MAX, IFL_NEVER, 0);
}

/* Requests start in each tenth step, counted by calls of the hook. */
static void count_calls(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    (void)view;
    (void)end;
    *(int64_t *)ifl_state(self) += 1;
}

static void count_steps(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    (void)view;
    *(int64_t *)ifl_state(self) += end->n_steps;
}

static int32_t steps_to_tenth(const void *self)
{
    return (int32_t)(9 - *(const int64_t *)ifl_state(self) % 10);
}

static void plan_tenth(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    ifl_decode_one_by_one(step, 0);
    if (steps_to_tenth(self) == 9 || view->n_running == 0)
        start_what_fits(step);
    ifl_promise(step, steps_to_tenth(self), IFL_NEVER, 0);
}

static struct ifl_promise until_tenth(const void *self, const struct ifl_view *view,
                                      struct ifl_step *step)
{
    (void)view;
    (void)step;
    return (struct ifl_promise){steps_to_tenth(self), IFL_NEVER, 0, false};
}

static struct ifl_victim pick_last(const void *self, const struct ifl_view *view,
                                   struct ifl_step *step, const struct ifl_request *needy)
{
    const struct ifl_requests running = ifl_running(step);
    (void)self;
    (void)view;
    (void)needy;
    return (struct ifl_victim){running.n > 0 ? running.of[running.n - 1] : NULL, IFL_RECOMPUTE,
                               IFL_FRONT};
}

/* The first of several gives way in each 20th step. */
static void preempt_ahead(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    (void)self;
    if (running.n > 1 && view->step % 20 == 19 && running.of[0]->state == IFL_RUNNING)
        ifl_preempt(step, running.of[0], IFL_RECOMPUTE, IFL_BACK);
}

static const struct ifl_draft_ops late_guesses = {.ask = guess_late, .most = most_guesses};
static const struct ifl_batching_ops padded = {.plan = plan_padded};
static const struct ifl_batching_ops tenth = {.plan = plan_tenth};
static const struct ifl_preempt_ops ahead = {.pick = pick_last, .ahead = preempt_ahead};
static const struct ifl_batching_ops wrong_rest = {.plan = plan};
static void plan_ready(struct ifl_step *step, bool at_once)
{
    struct ifl_cursor cursor = {{0}};
    if (!at_once)
        ifl_decode_one_by_one(step, 0);
    else if (!ifl_schedule_ready(step, 0))
        ifl_decode_one_by_one(step, 0);
    const struct ifl_request *r = ifl_next(step, IFL_IN_WAITING, &cursor);
    if (r)
        ifl_settled(step, r, ifl_start(step, r, ifl_todo(r)));
}

static void plan_at_once(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)self;
    (void)view;
    plan_ready(step, true);
}

static void plan_one_by_one(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)self;
    (void)view;
    plan_ready(step, false);
}

static const struct ifl_batching_ops at_once = {plan_at_once}, one_by_one = {plan_one_by_one};
static const struct ifl_order_ops plain_order = {.rank = rank};
static const struct ifl_order_ops own_order = {.rank = rank, .keys = ifl_own_keys};
static const struct ifl_order_ops plain_attained = {.rank = rank_attained};
static const struct ifl_order_ops own_attained = {.rank = rank_attained, .keys = ifl_own_keys};
static const struct ifl_admit_ops plain_admit = {.ask = ask};
static const struct ifl_admit_ops silent_admit = {.ask = ask_silently};

static const struct ifl_policy turns = {
    .kind = IFL_ORDER, .name = "turns", .doc = "in turn", .ops.order = &plain_order};
static const struct ifl_policy wrong_keys = {
    .kind = IFL_ORDER, .name = "wrong-keys", .doc = "in turn", .ops.order = &own_order};
static const struct ifl_policy wrong_steady = {.kind = IFL_ORDER,
                                               .name = "wrong-steady",
                                               .doc = "in turn",
                                               .steady = ifl_always_steady,
                                               .ops.order = &plain_order};
static const struct ifl_policy attained = {
    .kind = IFL_ORDER, .name = "attained", .doc = "by tokens", .ops.order = &plain_attained};
static const struct ifl_policy attained_own = {
    .kind = IFL_ORDER, .name = "attained-own", .doc = "by tokens", .ops.order = &own_attained};
static const struct ifl_policy halves = {
    .kind = IFL_ADMIT, .name = "halves", .doc = "by the clock", .ops.admit = &plain_admit};
static const struct ifl_policy wrong_halves = {.kind = IFL_ADMIT,
                                               .name = "wrong-halves",
                                               .doc = "by the clock",
                                               .steady = ifl_always_steady,
                                               .ops.admit = &silent_admit};

static const struct ifl_policy restless = {
    .kind = IFL_BATCHING, .name = "restless", .doc = "goes on", .ops.batching = &wrong_rest};

static const struct ifl_policy wrong_guesses = {.kind = IFL_DRAFT,
                                                .name = "wrong-guesses",
                                                .doc = "late guesses",
                                                .steady = ifl_always_steady,
                                                .ops.draft = &late_guesses};
static const struct ifl_policy wrong_padding = {
    .kind = IFL_BATCHING, .name = "wrong-padding", .doc = "pads", .ops.batching = &padded};
static const struct ifl_policy wrong_count = {.kind = IFL_BATCHING,
                                              .name = "wrong-count",
                                              .doc = "each tenth step",
                                              .state_bytes = sizeof(int64_t),
                                              .on_step_end = count_calls,
                                              .steady = until_tenth,
                                              .ops.batching = &tenth};
static const struct ifl_policy right_count = {.kind = IFL_BATCHING,
                                              .name = "right-count",
                                              .doc = "each tenth step",
                                              .state_bytes = sizeof(int64_t),
                                              .on_step_end = count_steps,
                                              .steady = until_tenth,
                                              .ops.batching = &tenth};
static const struct ifl_policy wrong_ahead = {.kind = IFL_PREEMPT,
                                              .name = "wrong-ahead",
                                              .doc = "now and then",
                                              .steady = ifl_always_steady,
                                              .ops.preempt = &ahead};

static const struct ifl_policy ready_at_once = {
    .kind = IFL_BATCHING, .name = "ready-at-once", .doc = "all", .ops.batching = &at_once};
static const struct ifl_policy ready_one_by_one = {
    .kind = IFL_BATCHING, .name = "ready-one-by-one", .doc = "each", .ops.batching = &one_by_one};

IFL_POLICIES(&turns, &wrong_keys, &wrong_steady, &attained, &attained_own, &halves, &wrong_halves,
             &restless, &wrong_guesses, &wrong_padding, &wrong_count, &right_count, &wrong_ahead,
             &ready_at_once, &ready_one_by_one);
