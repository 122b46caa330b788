/* An admission: a token bucket for each client. A request pays one token when it first starts; a
 * bucket holds at most `burst` tokens and gains `rate_rps` tokens a second. Another module decides
 * about blocks. (The state is the time when the bucket is full, as in the generic cell rate
 * algorithm, ITU-T I.371.) */
#include <inflight/policy.h>

#include "inflight/minmax.h"

struct token_bucket {
    double rate_rps;
    int32_t burst;
};

struct bucket { /* the bucket of a client */
    int64_t full_ns;
};

static const struct ifl_param params[] = {
    {"rate_rps", IFL_REAL, offsetof(struct token_bucket, rate_rps), 1, 1e-6, 1e6, NULL, "1/s",
     "requests that a client may start per second"},
    {"burst", IFL_INT, offsetof(struct token_bucket, burst), 1, 1, 1 << 10, NULL, "requests",
     "requests that a client may start at once after a pause"},
};

static int64_t token_ns(const struct token_bucket *p)
{
    return (int64_t)(1e9 / p->rate_rps);
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct token_bucket *p = self;
    const struct bucket *bucket = ifl_client(self, r);
    const bool *paid = ifl_mine(self, r);
    const int64_t has_one_ns = bucket->full_ns - (p->burst - 1) * token_ns(p);
    (void)step;
    (void)n;
    return *paid || has_one_ns <= view->now_ns ? ifl_admission(IFL_YES, 0)
                                               : ifl_not_before(has_one_ns);
}

/* A request with an undone start has paid already: it is not charged again. */
static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct bucket *bucket = ifl_client(self, r);
    bool *paid = ifl_mine(self, r);
    const int64_t from_ns = ifl_max(bucket->full_ns, view->now_ns);
    if (!*paid)
        bucket->full_ns = from_ns + token_ns(self);
    *paid = true;
}

static const struct ifl_admit_ops ops = {.ask = ask};

static const struct ifl_policy token_bucket = {
    .kind = IFL_ADMIT,
    .name = "token-bucket",
    .doc = "a client starts a limited number of requests per second",
    .params = params,
    .n_params = 2,
    .params_bytes = sizeof(struct token_bucket),
    .request_bytes = sizeof(bool),
    .client_bytes = sizeof(struct bucket),
    .on_start = on_start,
    .ops.admit = &ops,
};

IFL_POLICIES(&token_bucket);
