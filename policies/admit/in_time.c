/* Drop late: a request is rejected when its turn comes, if its first token would be later than its
 * deadline (ttft_slo_s of its row, or slo.ttft_s). The estimate of the first token is now +
 * margin_s + the time of the missing prompt tokens at prefill_tokens_s. At rate 0 a prompt takes no
 * time, and without a margin a request is late once its deadline has passed. Another module decides
 * about blocks: `admit: [{policy: in-time}, {policy: prompt-fits}]`. */
#include "inflight/policy.h"

struct in_time {
    double prefill_tokens_s;
    int64_t margin_ns;
};

static const struct ifl_param params[] = {
    {"prefill_tokens_s", IFL_REAL, offsetof(struct in_time, prefill_tokens_s), 0, 0, 1e9, NULL,
     "tokens/s", "rate at which a prompt is assumed to be computed; 0: it takes no time"},
    {"margin_s", IFL_TIME, offsetof(struct in_time, margin_ns), 0, 0, 3600, NULL, "s",
     "margin added to the time of the prompt (S-LoRA: 0.5)"},
};

static int64_t estimate_ns(const struct in_time *p, const struct ifl_request *r)
{
    const int32_t n_left = r->n_prompt - ifl_n_computed(r);
    const double prefill_s =
        p->prefill_tokens_s > 0 && n_left > 0 ? n_left / p->prefill_tokens_s : 0;
    return p->margin_ns + ifl_ns_from_s(prefill_s);
}

/* With a margin, a request with an estimate exactly at the deadline is late: S-LoRA requires less
 * than the objective. */
static bool is_late(const struct in_time *p, int64_t waited_ns, const struct ifl_request *r)
{
    const int64_t spare_ns = r->ttft_slo_ns - estimate_ns(p, r) - waited_ns;
    return p->margin_ns > 0 ? spare_ns <= 0 : spare_ns < 0;
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const bool is_due = r->ttft_slo_ns != IFL_NEVER && r->first_token_ns == IFL_NEVER;
    (void)step;
    (void)n;
    if (is_due && is_late(self, view->now_ns - r->arrival_ns, r))
        return ifl_admission(IFL_NEVER_FITS, 0);
    return ifl_admission(IFL_YES, 0);
}

static const struct ifl_admit_ops ops = {.ask = ask};

const struct ifl_policy policy_admit_in_time = {
    .kind = IFL_ADMIT,
    .name = "in-time",
    .doc = "a request whose first token would be late is rejected when its turn comes",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct in_time),
    .ops.admit = &ops,
};
