/* Earliest deadline first, alone or blended with shortest remaining prompt first as QoServe does
 * (Niyama/QoServe, microsoft/sarathi-serve, branch niyama_asplos2026).
 *
 * The deadline is that of the first token, arrival + ttft_slo_s of the request's class; a request
 * without one goes after all requests with one. The key is deadline + alpha x tokens still to
 * prefill: at alpha 0 EDF, at a large alpha SRPF.
 *
 * A request that has not begun and can no longer meet its deadline at the prefill rate is
 * relegated: it goes behind all others. The rate is an exponential moving average over steps with
 * prompt tokens (deadline_scheduler.py, expected_prefill_throughput).
 *
 * A request is judged when its turn comes. If found too late, it stays relegated for good, also
 * while its prompt is computed. If the plan is full before its turn, the judgement does not count
 * and the next plan judges it anew. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct deadline {
    double alpha_s_per_token;
    bool relegate;
    double prefill_tok_per_s, rate_memory;
};

struct judgement {
    int64_t made_ns, holds_until_ns; /* scratch of a plan */
    int64_t found_from_ns;           /* scratch: least key of the requests newly found too late */
    double tok_per_s;
    int32_t n_prefill_tokens; /* prompt tokens of the current step */
};

struct standing { /* this module's part of a request */
    bool relegated;
    uint64_t found_in; /* scratch: 1 + number of the step when a plan found it too late */
};

static const struct ifl_param params[] = {
    {"alpha_s_per_token", IFL_REAL, offsetof(struct deadline, alpha_s_per_token), 0, 0, 1e6, NULL,
     "s/token", "added to a deadline for each token still to prefill"},
    {"relegate", IFL_BOOL, offsetof(struct deadline, relegate), 0, 0, 1, NULL, "",
     "a request that has not begun and will miss its deadline goes behind all others"},
    {"prefill_tok_per_s", IFL_REAL, offsetof(struct deadline, prefill_tok_per_s), 8500, 1e-6, 1e12,
     NULL, "tok/s", "initial prefill rate by which such requests are found"},
    {"rate_memory", IFL_REAL, offsetof(struct deadline, rate_memory), 0.995, 0, 1, NULL, "",
     "weight of the old rate after each step with prompt tokens; 1: it never changes"},
};

static struct judgement *judgement_of(const void *self)
{
    return ifl_state(self);
}

/* Deadline plus blended part stay in the lower half of the keys; relegated requests have the upper
 * half. */
static int64_t clamp(int64_t ns)
{
    return ifl_min(ns, IFL_LAST_NS / 4);
}

static int64_t deadline_ns(const struct ifl_request *r)
{
    return r->ttft_slo_ns == IFL_NEVER ? clamp(IFL_LAST_NS)
                                       : clamp(r->arrival_ns + clamp(r->ttft_slo_ns));
}

static int64_t blended_ns(const struct deadline *p, const struct ifl_request *r)
{
    const double blend_s = p->alpha_s_per_token * (double)ifl_todo(r);
    return deadline_ns(r) + clamp(ifl_ns_from_s(blend_s));
}

/* Latest time at which the prompt can begin and meet its deadline; IFL_NEVER if the request cannot
 * be relegated. */
static int64_t last_chance_ns(const struct deadline *p, const struct ifl_request *r)
{
    if (!p->relegate || r->state != IFL_WAITING || r->n_preempted > 0 ||
        r->ttft_slo_ns == IFL_NEVER)
        return IFL_NEVER;
    return deadline_ns(r) - ifl_ns_from_s((double)ifl_todo(r) / judgement_of(p)->tok_per_s);
}

static bool find_too_late(const struct deadline *p, const struct ifl_view *view,
                          const struct ifl_request *r)
{
    struct judgement *judgement = judgement_of(p);
    const int64_t last_ns = last_chance_ns(p, r);
    const bool too_late = last_ns < view->now_ns;
    if (judgement->made_ns != view->now_ns) {
        judgement->made_ns = view->now_ns;
        judgement->holds_until_ns = IFL_NEVER;
        judgement->found_from_ns = IFL_NEVER;
    }
    if (!too_late && last_ns < judgement->holds_until_ns)
        judgement->holds_until_ns = last_ns;
    return too_late;
}

static void note_found(const struct deadline *p, const struct ifl_view *view,
                       struct standing *standing, int64_t key)
{
    struct judgement *judgement = judgement_of(p);
    standing->found_in = view->step + 1;
    if (key < judgement->found_from_ns)
        judgement->found_from_ns = key;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct deadline *p = self;
    for (size_t i = 0; i < n; i++) {
        struct standing *standing = ifl_mine(self, of[i]);
        const bool found = !standing->relegated && find_too_late(p, view, of[i]);
        key[i] = blended_ns(p, of[i]);
        if (found)
            note_found(p, view, standing, key[i]);
        if (found || standing->relegated)
            key[i] += IFL_LAST_NS / 2 + 1;
    }
}

/* ---- relegation ---- */

static bool is_behind(const struct deadline *p, const struct ifl_view *view,
                      const struct ifl_request *r)
{
    const struct standing *standing = ifl_mine(p, r);
    return standing->relegated || standing->found_in == view->step + 1;
}

/* The key of the first request that the plan left out and did not find too late: the plan came as
 * far as this key. IFL_NEVER if every request had its turn. */
static int64_t turns_came_until_ns(const struct deadline *p, const struct ifl_view *view,
                                   struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while ((r = ifl_next(step, IFL_IN_PREFILL | IFL_IN_WAITING, &cursor)))
        if (!is_behind(p, view, r) && !ifl_took_part(step, r))
            return blended_ns(p, r);
    return IFL_NEVER;
}

static void relegate(const struct deadline *p, const struct ifl_view *view,
                     const struct ifl_request *r)
{
    struct standing *standing = ifl_mine(p, r);
    standing->relegated = is_behind(p, view, r);
}

/* Relegates requests found too late if their turn came: those that started (behind all others), and
 * those with a key before the first request that was left out. */
static void relegate_found(const struct deadline *p, const struct ifl_view *view,
                           struct ifl_step *step)
{
    const struct ifl_requests started = ifl_started(step);
    const int64_t until_ns = turns_came_until_ns(p, view, step);
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    for (size_t i = 0; i < started.n; i++)
        relegate(p, view, started.of[i]);
    if (judgement_of(p)->found_from_ns >= until_ns)
        return;
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (blended_ns(p, r) < until_ns)
            relegate(p, view, r);
}

/* ---- the rate of prefill ---- */

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct deadline *p = self;
    (void)limits;
    (void)error;
    judgement_of(self)->tok_per_s = p->prefill_tok_per_s;
    return 0;
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct deadline *p = self;
    struct judgement *judgement = judgement_of(self);
    judgement->n_prefill_tokens = step->n_prefill_tokens;
    if (judgement->made_ns == view->now_ns && judgement->found_from_ns < IFL_NEVER &&
        step->n_preempted == 0)
        relegate_found(p, view, step);
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    const struct deadline *p = self;
    struct judgement *judgement = judgement_of(self);
    const double lasted_s = ifl_s_from_ns(end->end_ns - end->start_ns);
    (void)view;
    if (judgement->n_prefill_tokens > 0 && lasted_s > 0)
        judgement->tok_per_s = p->rate_memory * judgement->tok_per_s +
                               (1 - p->rate_memory) * judgement->n_prefill_tokens / lasted_s;
    judgement->n_prefill_tokens = 0;
}

/* In a promised run only time can relegate a request: it has no prompt tokens, so the rate stays.
 */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct judgement *judgement = judgement_of(self);
    const bool stands = judgement->made_ns != view->now_ns;
    (void)step;
    return (struct ifl_promise){INT32_MAX, stands ? IFL_NEVER : judgement->holds_until_ns, 0};
}

/* Deadlines are constant. With relegation keys change with time; with alpha, with the prompt tokens
 * left, which depend on what the cache holds. */
static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    const struct deadline *p = self;
    (void)view;
    return p->relegate || p->alpha_s_per_token > 0 ? IFL_KEYS_PLAN : IFL_KEYS_OWN;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = keys};

const struct ifl_policy policy_order_deadline = {
    .kind = IFL_ORDER,
    .name = "deadline",
    .doc = "earliest deadline of the first token first, or blended with shortest prefill (QoServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct deadline),
    .state_bytes = sizeof(struct judgement),
    .request_bytes = sizeof(struct standing),
    .init = init,
    .on_step_start = on_step_start,
    .on_step_end = on_step_end,
    .steady = steady,
    .ops.order = &ops,
};
