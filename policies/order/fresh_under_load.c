/* First come, first served; but the newest first while more requests arrive than start. Requests
 * that are too late go before all others, so that an admission module behind this order can drop
 * them (S-LoRA, slora/server/router/abort_req_queue.py, AbortReqQueue; MLSys 2024, section 4.2).
 *
 * Each plan that reads the queue sets rate = int(0.7 (waiting - left) + 0.3 rate), where `left` is
 * the number of requests that still waited when the last batch had formed. Each batch of n new
 * requests sets size = max(int(0.7 n + 0.3 size), 1). The newest go first while rate >= size. Both
 * begin with 1. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct fresh {
    int64_t margin_ns;
};

struct load {
    int64_t rate, size, left;
    bool newest_first;
};

static const struct ifl_param params[] = {
    {"margin_s", IFL_TIME, offsetof(struct fresh, margin_ns), 0.5, 0, 3600, NULL, "s",
     "a request counts as too late this long before its ttft_slo_s has passed"},
};

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    struct load *load = ifl_state(self);
    (void)limits;
    (void)error;
    load->rate = load->size = 1;
    return 0;
}

/* Called before a plan reads the queue. */
static enum ifl_keys keys(const void *self, const struct ifl_view *view)
{
    struct load *load = ifl_state(self);
    const double come = 0.7 * (double)((int64_t)view->n_waiting - load->left);
    load->rate = (int64_t)(come + 0.3 * (double)load->rate);
    load->newest_first = load->rate >= load->size;
    return IFL_KEYS_PLAN;
}

static bool is_late(const struct fresh *p, const struct ifl_view *view, const struct ifl_request *r)
{
    return r->ttft_slo_ns != IFL_NEVER && r->first_token_ns == IFL_NEVER &&
           view->now_ns - r->arrival_ns >= r->ttft_slo_ns - p->margin_ns;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct load *load = ifl_state(self);
    for (size_t i = 0; i < n; i++)
        key[i] = is_late(self, view, of[i])                          ? INT64_MIN
                 : load->newest_first && of[i]->state == IFL_WAITING ? -of[i]->arrival_ns
                                                                     : of[i]->arrival_ns;
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct load *load = ifl_state(self);
    (void)view;
    if (step->n_started == 0)
        return;
    const int64_t size = (int64_t)(0.7 * step->n_started + 0.3 * (double)load->size);
    load->size = ifl_max(size, 1);
    load->left = step->n_waiting;
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = keys};

const struct ifl_policy policy_order_fresh_under_load = {
    .kind = IFL_ORDER,
    .name = "fresh-under-load",
    .doc = "first come, first served; under overload, newest first (S-LoRA's early abort)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct fresh),
    .state_bytes = sizeof(struct load),
    .init = init,
    .on_step_start = on_step_start,
    .ops.order = &ops,
};
