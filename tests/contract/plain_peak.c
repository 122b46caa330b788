/* An admission: the estimated peak of the pool stays below its size (ModelTC
 * lightllm/server/router/req_queue/continues_batch; Ying1123/VTC-artifact,
 * slora/server/router/req_queue.py). Every request on the device holds h tokens and has at most l
 * to come. At the end of a request, those with as many or more to come have grown by its l each,
 * and the others have ended. policies/admit/peak_estimate.c gives the same answers faster. */
#include <inflight/policy.h>

struct peak {
    double busy_frac;
    int32_t likely_tokens;
    bool first_counts;
};

struct batch { /* on the device, and a newcomer */
    struct ifl_requests running, started;
    const struct ifl_request *newcomer;
    bool busy;
};

static const struct ifl_param params[] = {
    {"busy_frac", IFL_REAL, offsetof(struct peak, busy_frac), 0, 0, 1, NULL, "",
     "from this use of the pool on, an answer counts with its declared limit"},
    {"likely_tokens", IFL_INT, offsetof(struct peak, likely_tokens), 1024, 1, 1 << 30, NULL,
     "tokens", "below busy_frac: least length assumed for an answer"},
    {"first_counts", IFL_BOOL, offsetof(struct peak, first_counts), 0, 0, 1, NULL, "",
     "the first token of a starting request is not one of those to come (LightLLM)"},
};

static int64_t left_tokens(const struct peak *p, const struct ifl_request *r, bool starts,
                           bool busy)
{
    const int32_t n_out = ifl_n_out(r);
    int64_t limit = 11 * (int64_t)n_out / 10;
    if (limit < p->likely_tokens)
        limit = p->likely_tokens;
    if (busy || limit > r->n_max_new)
        limit = r->n_max_new;
    limit -= n_out + 1 + (starts && p->first_counts);
    return limit > 0 ? limit : 0;
}

static const struct ifl_request *member(const struct batch *batch, size_t i)
{
    const size_t n = batch->running.n;
    return i < n                      ? batch->running.of[i]
           : i < n + batch->started.n ? batch->started.of[i - n]
                                      : batch->newcomer;
}

static size_t n_members(const struct batch *batch)
{
    return batch->running.n + batch->started.n + 1;
}

static bool is_here(const struct batch *batch, size_t i)
{
    return member(batch, i)->state == IFL_RUNNING || i + 1 == n_members(batch);
}

static int64_t left_of(const struct peak *p, const struct batch *batch, size_t i)
{
    return left_tokens(p, member(batch, i), i >= batch->running.n, batch->busy);
}

/* Held by the requests that have so many tokens to come or more, once they have them. */
static int64_t tokens_at(const struct peak *p, const struct batch *batch, int64_t left)
{
    int64_t n_tokens = 0;
    for (size_t i = 0; i < n_members(batch); i++)
        if (is_here(batch, i) && left_of(p, batch, i) >= left)
            n_tokens += ifl_n_tokens(member(batch, i)) + (i >= batch->running.n) + left;
    return n_tokens;
}

static bool fits(const struct peak *p, const struct batch *batch, int64_t pool)
{
    for (size_t i = 0; i < n_members(batch); i++)
        if (is_here(batch, i) && tokens_at(p, batch, left_of(p, batch, i)) >= pool)
            return false;
    return true;
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct peak *p = self;
    const struct ifl_limits *limits = view->limits;
    const int64_t pool = (int64_t)limits->n_blocks * limits->block_tokens;
    const int32_t n_used = limits->n_blocks - view->n_free_blocks;
    const bool busy = (double)n_used / limits->n_blocks >= p->busy_frac;
    const struct batch batch = {ifl_running(step), ifl_started(step), r, busy};
    (void)n;
    if (ifl_n_tokens(r) + 1 + left_tokens(p, r, true, true) >= pool)
        return ifl_admission(IFL_NEVER_FITS, 0);
    if (!fits(p, &batch, pool) || ifl_need(step, r, ifl_n_tokens(r)) > step->n_free_blocks)
        return ifl_admission(IFL_NO_BLOCKS, 0);
    return ifl_admission(IFL_YES, ifl_n_tokens(r));
}

static const struct ifl_admit_ops ops = {.ask = ask};

static const struct ifl_policy plain_peak = {
    .kind = IFL_ADMIT,
    .name = "plain-peak",
    .doc = "the pool's estimated peak stays below its size, in its plainest form",
    .params = params,
    .n_params = 3,
    .params_bytes = sizeof(struct peak),
    .ops.admit = &ops,
};

IFL_POLICIES(&plain_peak);
