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

static const struct ifl_param params[] = {
    {"alpha_s_per_token", IFL_REAL, offsetof(struct deadline, alpha_s_per_token), 0, 0, 1e6, NULL,
     "s/token", "a deadline counts as so much later for each token still to prefill"},
    {"relegate", IFL_BOOL, offsetof(struct deadline, relegate), 0, 0, 1, NULL, "",
     "who has not begun and is bound to miss its deadline stands behind everyone else"},
    {"prefill_token_s", IFL_REAL, offsetof(struct deadline, prefill_token_s), 0.0001, 0, 3600, NULL,
     "s", "measured time of a prompt token, for that judgement"},
};

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

static bool bound_to_miss(const struct deadline *p, const struct ifl_view *view,
                          const struct ifl_request *r)
{
    const double prefill_s = p->prefill_token_s * (double)ifl_todo(r);
    return p->relegate && r->state == IFL_WAITING && r->n_out == 0 && r->ttft_slo_ns != IFL_NEVER &&
           view->now_ns + ifl_ns_from_s(prefill_s) > deadline_ns(r);
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
    const struct deadline *p = self;
    (void)view;
    (void)step;
    return (struct ifl_promise){p->relegate ? 0 : INT32_MAX, IFL_NEVER, 0};
}

static const struct ifl_order_ops ops = {.rank = rank, .rerank = IFL_RANK_EACH_PLAN};

const struct ifl_policy policy_order_deadline = {
    .kind = IFL_ORDER,
    .name = "deadline",
    .doc = "earliest deadline of the first token first, or blended with the prompt left (QoServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct deadline),
    .steady = steady,
    .ops.order = &ops,
};
