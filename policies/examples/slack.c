/* An order: the request with the least slack goes first. Slack is the time left until the first
 * token is due. A request without a deadline has a slack of `patience_s`; the slack of all requests
 * falls by `ageing` seconds per second. */
#include <inflight/policy.h>

struct slack {
    int64_t patience_ns;
    double ageing;
};

static const struct ifl_param params[] = {
    {"patience_s", IFL_TIME, offsetof(struct slack, patience_ns), 10, 0, 3600, NULL, "s",
     "slack at arrival of a request without a deadline"},
    {"ageing", IFL_REAL, offsetof(struct slack, ageing), 0.5, 0, 100, NULL, "",
     "seconds subtracted from the slack in addition, per second since arrival"},
};

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    const struct slack *p = self;
    for (size_t i = 0; i < n; i++) {
        const int64_t waited_ns = view->now_ns - of[i]->arrival_ns, due_ns = of[i]->ttft_slo_ns;
        const int64_t slack_ns = due_ns == IFL_NEVER ? p->patience_ns : due_ns - waited_ns;
        key[i] = slack_ns - (int64_t)(p->ageing * (double)waited_ns);
    }
}

static const struct ifl_order_ops ops = {.rank = rank};

static const struct ifl_policy slack = {
    .kind = IFL_ORDER,
    .name = "slack",
    .doc = "the least time to the deadline goes first, with ageing",
    .params = params,
    .n_params = 2,
    .params_bytes = sizeof(struct slack),
    .ops.order = &ops,
};

IFL_POLICIES(&slack);
