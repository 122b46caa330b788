/* Admit while the estimated peak of the pool stays below its size, as LightLLM does (ModelTC
 * lightllm/server/router/req_queue/continues_batch/impl.py), and S-LoRA, and the VTC artifact on it
 * (slora/server/router/req_queue.py).
 *
 * Every request holds h tokens now and has at most l still to come. It grows by one token a step
 * until it leaves. With l in descending order the pool is fullest at the end of some request i,
 * when the first i have grown by l_i each:
 *
 *     peak = max over i of (l_i x i + h_1 + ... + h_i)
 *
 * If the pool is busy when a batch begins to form, l counts to the declared limit; else to 1.1
 * times the tokens produced, at least likely_tokens and at most the limit. A request that starts
 * holds one more token at the end of the step. LightLLM subtracts it from l
 * (NormalReq.get_tuple_tokens in lightllm/server/io_struct.py), S-LoRA does not.
 *
 * Optionally a client's requests beyond a number per minute are rejected (the artifact's RPM
 * baseline, lshare_req_queue.py). */
#include <stdlib.h>
#include <string.h>

#include "inflight/policy.h"

#include "shares.h"

enum { MINUTE_S = 60, MOST_SEATS = 1 << 20 };

struct peak_estimate {
    double busy_frac;
    int32_t likely_tokens;
    bool first_counts;
    int32_t max_rpm; /* 0: no limit */
};

struct forecast { /* of one request: l and h */
    struct standing *of;
    int64_t left_tokens, now_tokens;
};

struct stamps { /* of a client's last accepted requests, a ring */
    int64_t *arrival_ns;
    uint64_t n;
};

struct estimate {
    struct forecast *forecasts; /* [2 cap], scratch */
    size_t cap;
    size_t n_sorted;   /* entries of the last sort */
    uint64_t n_sorts;  /* number of the last sort */
    int32_t n_used;    /* blocks in use when the last batch began to form */
    struct stamps *of; /* [n_clients] */
    int64_t *rings;
    struct shares at_ends; /* tokens that all started requests hold at their declared limits */
};

struct standing { /* of a request */
    bool over_rate;
    struct share at_end;
    uint64_t sorted_in; /* number of the last sort with this request */
    size_t sorted_at;   /* its place in that sort */
};

static const struct ifl_param params[] = {
    {"busy_frac", IFL_REAL, offsetof(struct peak_estimate, busy_frac), 0, 0, 1, NULL, "",
     "from this share of the pool on declared limits count (router_token_ratio)"},
    {"likely_tokens", IFL_INT, offsetof(struct peak_estimate, likely_tokens), 1024, 1, 1 << 30,
     NULL, "tokens", "an answer at least, below that share (router_max_new_token_len)"},
    {"first_counts", IFL_BOOL, offsetof(struct peak_estimate, first_counts), 0, 0, 1, NULL, "",
     "the first token of who starts is none of those to come (LightLLM)"},
    {"max_rpm", IFL_INT, offsetof(struct peak_estimate, max_rpm), 0, 0, 1 << 20, NULL, "requests",
     "a client's requests accepted within 60 s, more are rejected; 0: no limit"},
};

static struct estimate *estimate_of(const void *self)
{
    return ifl_state(self);
}

/* ---- the estimate ---- */

static int64_t limit_tokens(const struct peak_estimate *p, const struct ifl_request *r, bool busy)
{
    int64_t limit = 11 * (int64_t)ifl_n_out(r) / 10;
    if (limit < p->likely_tokens)
        limit = p->likely_tokens;
    return busy || limit > r->n_max_new ? r->n_max_new : limit;
}

/* A request that starts holds its first new token at the end of the step, too. */
static struct forecast forecast_of(const struct peak_estimate *p, const struct ifl_request *r,
                                   bool starts, bool busy)
{
    const bool first_counts = starts && p->first_counts;
    const int64_t left = limit_tokens(p, r, busy) - ifl_n_out(r) - 1 - first_counts;
    return (struct forecast){ifl_mine(p, r), left > 0 ? left : 0, ifl_n_tokens(r) + starts};
}

static int64_t most_tokens(const struct ifl_request *r)
{
    return (int64_t)r->n_prompt + r->n_max_new;
}

/* Decided before the first start of a batch; the starts do not change it. */
static bool is_busy(const struct peak_estimate *p, const struct ifl_view *view,
                    const struct ifl_step *step)
{
    const int32_t n_blocks = view->limits->n_blocks;
    struct estimate *e = estimate_of(p);
    if (step->n_started == 0)
        e->n_used = n_blocks - step->n_free_blocks;
    return (double)e->n_used / n_blocks >= p->busy_frac;
}

/* Puts a request at its place in the last sort; one that was not in it goes to the end, *n. */
static void add_forecast(struct estimate *e, size_t *n, struct forecast one)
{
    const bool known = one.of->sorted_in == e->n_sorts;
    if (known || *n < 2 * e->cap)
        e->forecasts[known ? one.of->sorted_at : (*n)++] = one;
}

/* Insertion sort, most tokens left first: requests that decode together keep their order, so few
 * entries move. */
static size_t sort_forecasts(struct estimate *e, size_t n_places)
{
    size_t n = 0;
    e->n_sorts++;
    for (size_t i = 0; i < n_places; i++) {
        const struct forecast one = e->forecasts[i];
        size_t at = n;
        if (!one.of)
            continue;
        for (; at > 0 && e->forecasts[at - 1].left_tokens < one.left_tokens; at--)
            e->forecasts[at] = e->forecasts[at - 1];
        e->forecasts[at] = one;
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        e->forecasts[i].of->sorted_in = e->n_sorts;
        e->forecasts[i].of->sorted_at = i;
    }
    e->n_sorted = n;
    return n;
}

static bool peak_stays_below(const struct forecast *of, size_t n, int64_t pool)
{
    int64_t held = 0;
    for (size_t i = 0; i < n; i++) {
        held += of[i].now_tokens;
        if (of[i].left_tokens * (int64_t)(i + 1) + held >= pool)
            return false;
    }
    return true;
}

/* O(1) sufficient test from the declared limits. Requests past their limit hold more, bounded by
 * the blocks in use. */
static bool surely_fits_with(const struct peak_estimate *p, const struct ifl_view *view,
                             struct ifl_step *step, const struct ifl_request *newcomer,
                             int64_t pool)
{
    const int64_t n_used = view->limits->n_blocks - step->n_free_blocks;
    const int64_t in_use = n_used * view->limits->block_tokens + step->n_running_requests;
    return in_use + estimate_of(p)->at_ends.tokens + most_tokens(newcomer) < pool;
}

/* The estimate over all requests on the device and the newcomer. */
static bool fits_with(const struct peak_estimate *p, struct ifl_step *step,
                      const struct ifl_request *newcomer, bool busy, int64_t pool)
{
    struct estimate *e = estimate_of(p);
    const struct ifl_requests running = ifl_running(step), started = ifl_started(step);
    size_t n = e->n_sorted;
    memset(e->forecasts, 0, n * sizeof *e->forecasts);
    for (size_t i = 0; i < running.n; i++)
        if (running.of[i]->state == IFL_RUNNING)
            add_forecast(e, &n, forecast_of(p, running.of[i], false, busy));
    for (size_t i = 0; i < started.n; i++)
        if (started.of[i]->state == IFL_RUNNING)
            add_forecast(e, &n, forecast_of(p, started.of[i], true, busy));
    add_forecast(e, &n, forecast_of(p, newcomer, true, busy));
    return peak_stays_below(e->forecasts, sort_forecasts(e, n), pool);
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct peak_estimate *p = self;
    const struct standing *standing = ifl_mine(self, r);
    const int64_t pool = (int64_t)view->limits->n_blocks * view->limits->block_tokens;
    const bool busy = is_busy(p, view, step);
    const struct forecast alone = forecast_of(p, r, true, true); /* whether busy now or not */
    (void)n; /* a chunk needs room for the whole prompt */
    if (standing->over_rate || alone.now_tokens + alone.left_tokens >= pool)
        return ifl_admission(IFL_NEVER_FITS, 0);
    if (!surely_fits_with(p, view, step, r, pool) && !fits_with(p, step, r, busy, pool))
        return ifl_admission(IFL_NO_BLOCKS, 0);
    const bool fits = ifl_need(step, r, ifl_n_tokens(r)) <= step->n_free_blocks;
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, ifl_n_tokens(r));
}

/* ---- started requests ---- */

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct standing *standing = ifl_mine(self, r);
    (void)view;
    shares_set(&estimate_of(self)->at_ends, &standing->at_end, most_tokens(r));
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    struct standing *standing = ifl_mine(self, r);
    (void)view;
    shares_set(&estimate_of(self)->at_ends, &standing->at_end, 0);
}

/* ---- the rate ---- */

static void on_join(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    const struct peak_estimate *p = self;
    struct standing *standing = ifl_mine(self, r);
    if (p->max_rpm == 0 || r->client >= view->limits->n_clients)
        return;
    struct stamps *stamps = &estimate_of(self)->of[r->client];
    int64_t *oldest_ns = &stamps->arrival_ns[stamps->n % (uint64_t)p->max_rpm];
    standing->over_rate =
        stamps->n >= (uint64_t)p->max_rpm && r->arrival_ns - *oldest_ns <= MINUTE_S * IFL_NS_PER_S;
    if (standing->over_rate)
        return;
    *oldest_ns = r->arrival_ns;
    stamps->n++;
}

static int init_rates(const struct peak_estimate *p, struct estimate *e, uint32_t n_clients)
{
    if (p->max_rpm == 0)
        return 0;
    e->of = calloc(n_clients, sizeof *e->of);
    e->rings = calloc((size_t)n_clients * (size_t)p->max_rpm, sizeof *e->rings);
    for (uint32_t i = 0; e->of && e->rings && i < n_clients; i++)
        e->of[i].arrival_ns = e->rings + (size_t)i * (size_t)p->max_rpm;
    return e->of && e->rings ? 0 : -1;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    struct estimate *e = estimate_of(self);
    const int32_t n_seats = limits->n_blocks < MOST_SEATS ? limits->n_blocks : MOST_SEATS;
    e->cap = (size_t)n_seats + 1; /* each running request holds a block */
    e->forecasts = malloc(2 * e->cap * sizeof *e->forecasts);
    e->n_sorts = 1; /* a request that was in no sort is in none of them */
    if (!e->forecasts || init_rates(self, e, limits->n_clients) < 0)
        return ifl_fail_nomem(error);
    return 0;
}

static void finish(void *self)
{
    struct estimate *e = estimate_of(self);
    free(e->forecasts);
    free(e->of);
    free(e->rings);
}

static const struct ifl_admit_ops ops = {ask};

const struct ifl_policy policy_admit_peak_estimate = {
    .kind = IFL_ADMIT,
    .name = "peak-estimate",
    .doc = "the pool's estimated peak stays below its size (LightLLM, S-LoRA, VTC)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct peak_estimate),
    .state_bytes = sizeof(struct estimate),
    .request_bytes = sizeof(struct standing),
    .init = init,
    .finish = finish,
    .on_join = on_join,
    .on_start = on_start,
    .on_leave = on_leave,
    .ops.admit = &ops,
};
