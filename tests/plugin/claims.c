/* An order and an admission with answers that change with time, each in a plain form and in one
 * with a wrong claim that allows faster planning; an order whose keys change with the request
 * itself, without a claim and with a right one; and a batching module that promises to go on and
 * does not, where several steps may be in flight. */
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

static const struct ifl_batching_ops wrong_rest = {.plan = plan};
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

IFL_POLICIES(&turns, &wrong_keys, &wrong_steady, &attained, &attained_own, &halves, &wrong_halves,
             &restless);
