/* Earliest deadline first, alone or blended with shortest remaining prompt first as QoServe does
 * (Niyama/QoServe, microsoft/sarathi-serve, branch niyama_asplos2026).
 *
 * The deadline is that of the first token, arrival + ttft_slo_s of the request's class; a request
 * without one comes after all that have. The key is deadline + alpha x tokens still to prefill: at
 * alpha 0 EDF, at a large alpha SRPF. Relegated is a request that has not begun and cannot meet its
 * deadline any more at the given rate of prefill: those that can go first. */
#include "inflight/policy.h"

struct deadline {
    double alpha_s_per_token;
    bool relegate;
    double prefill_token_s;
};

struct judgement { /* scratch of a plan */
    int64_t made_ns, holds_until_ns;
};

static const struct ifl_param params[] = {
    {"alpha_s_per_token", IFL_REAL, offsetof(struct deadline, alpha_s_per_token), 0, 0, 1e6, NULL,
     "s/token", "a deadline counts as so much later for each token still to prefill"},
    {"relegate", IFL_BOOL, offsetof(struct deadline, relegate), 0, 0, 1, NULL, "",
     "who has not begun and is bound to miss its deadline stands behind everyone else"},
    {"prefill_token_s", IFL_REAL, offsetof(struct deadline, prefill_token_s), 0.0001, 0, 3600, NULL,
     "s", "measured time of a prompt token, for that judgement"},
};

static struct judgement *judgement_of(const void *self)
{
    return (struct judgement *)((uintptr_t)self + ifl_state_offset(sizeof(struct deadline)));
}

/* A deadline and what is blended in fill half of the keys; the other half is for the relegated. */
static int64_t clamp(int64_t ns)
{
    const int64_t latest_ns = IFL_LAST_NS / 4;
    return ns < latest_ns ? ns : latest_ns;
}

static int64_t deadline_ns(const struct ifl_request *r)
{
    return r->ttft_slo_ns == IFL_NEVER ? clamp(IFL_LAST_NS)
                                       : clamp(r->arrival_ns + clamp(r->ttft_slo_ns));
}

/* IFL_NEVER: it is not relegated. */
static int64_t last_chance_ns(const struct deadline *p, const struct ifl_request *r)
{
    if (!p->relegate || r->state != IFL_WAITING || r->n_out > 0 || r->ttft_slo_ns == IFL_NEVER)
        return IFL_NEVER;
    return deadline_ns(r) - ifl_ns_from_s(p->prefill_token_s * (double)ifl_todo(r));
}

static bool bound_to_miss(const struct deadline *p, const struct ifl_view *view,
                          const struct ifl_request *r)
{
    struct judgement *judgement = judgement_of(p);
    const int64_t last_ns = last_chance_ns(p, r);
    if (last_ns < view->now_ns)
        return true;
    if (judgement->made_ns != view->now_ns)
        *judgement = (struct judgement){view->now_ns, IFL_NEVER};
    if (last_ns < judgement->holds_until_ns)
        judgement->holds_until_ns = last_ns;
    return false;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct deadline *p = self;
    for (size_t i = 0; i < n; i++) {
        const double blend_s = p->alpha_s_per_token * (double)ifl_todo(of[i]);
        key[i] = deadline_ns(of[i]) + clamp(ifl_ns_from_s(blend_s));
        if (bound_to_miss(p, view, of[i]))
            key[i] += IFL_LAST_NS / 2 + 1;
    }
}

/* Time alone relegates. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct judgement *judgement = judgement_of(self);
    const bool stands = judgement->made_ns != view->now_ns;
    (void)step;
    return (struct ifl_promise){INT32_MAX, stands ? IFL_NEVER : judgement->holds_until_ns, 0};
}

static const struct ifl_order_ops ops = {.rank = rank, .rerank = IFL_RANK_EACH_PLAN};

const struct ifl_policy policy_order_deadline = {
    .kind = IFL_ORDER,
    .name = "deadline",
    .doc = "earliest deadline of the first token first, or blended with the prompt left (QoServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct deadline),
    .state_bytes = sizeof(struct judgement),
    .steady = steady,
    .ops.order = &ops,
};
