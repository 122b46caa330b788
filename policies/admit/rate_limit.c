/* A limit of requests a client and minute; further ones are rejected (the request-per-minute
 * baseline of Sheng et al., Fairness in Serving Large Language Models, OSDI 2024, section 5.1;
 * Ying1123/VTC-artifact, slora/server/router/lshare_req_queue.py, check_past_one_minute).
 *
 * A request is over the rate if max_rpm requests of its client were accepted in the 60 s before its
 * arrival, the 60th second included; rejected requests do not count. Another module decides about
 * blocks: `admit: [{policy: rate-limit, max_rpm: 20}, {policy: prompt-fits}]`. */
#include <stdlib.h>

#include "inflight/policy.h"

enum { MINUTE_S = 60 };

struct rate_limit {
    int32_t max_rpm; /* 0: no limit */
};

struct accepted {
    int64_t *arrival_ns; /* [n_clients][max_rpm], of each client a ring */
};

static const struct ifl_param params[] = {
    {"max_rpm", IFL_INT, offsetof(struct rate_limit, max_rpm), 20, 0, 1 << 20, NULL, "requests",
     "most requests of a client accepted within 60 s; others are rejected; 0: no limit"},
};

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    const struct rate_limit *p = self;
    struct accepted *accepted = ifl_state(self);
    const size_t n_stamps = (size_t)limits->n_clients * (size_t)p->max_rpm;
    accepted->arrival_ns = calloc(n_stamps + 1, sizeof *accepted->arrival_ns);
    return accepted->arrival_ns ? 0 : ifl_fail_nomem(error);
}

static void finish(void *self)
{
    struct accepted *accepted = ifl_state(self);
    free(accepted->arrival_ns);
}

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct rate_limit *p = self;
    const struct accepted *accepted = ifl_state(self);
    uint64_t *n_accepted = ifl_client(self, r);
    bool *over_rate = ifl_mine(self, r);
    const uint64_t most = (uint64_t)p->max_rpm;
    (void)view;
    if (most == 0)
        return;
    int64_t *oldest_ns = &accepted->arrival_ns[r->client * most + *n_accepted % most];
    *over_rate = *n_accepted >= most && r->arrival_ns - *oldest_ns <= MINUTE_S * IFL_NS_PER_S;
    if (*over_rate)
        return;
    *oldest_ns = r->arrival_ns;
    ++*n_accepted;
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const bool *over_rate = ifl_mine(self, r);
    (void)view;
    (void)step;
    (void)n;
    return ifl_admission(*over_rate ? IFL_NEVER_FITS : IFL_YES, 0);
}

static const struct ifl_admit_ops ops = {.ask = ask};

const struct ifl_policy policy_admit_rate_limit = {
    .kind = IFL_ADMIT,
    .name = "rate-limit",
    .doc = "rejects requests of a client beyond a limit per minute (VTC's RPM baseline)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct rate_limit),
    .state_bytes = sizeof(struct accepted),
    .request_bytes = sizeof(bool),
    .client_bytes = sizeof(uint64_t),
    .init = init,
    .finish = finish,
    .on_join = on_join,
    .steady = ifl_always_steady,
    .ops.admit = &ops,
};
