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
 * Adapters that lie in the pool make it smaller: those on the device, and that of the newcomer. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

struct peak_estimate {
    double busy_frac;
    int32_t likely_tokens;
    bool first_counts;
};

struct standing {                     /* this module's part of a request */
    struct standing *before, *behind; /* neighbours in the ring of requests on the device */
    const struct ifl_request *request;
    int64_t left_tokens, now_tokens; /* l and h */
    uint64_t started_in;             /* step of its last start */
    bool on_device;
};

struct estimate {
    struct standing all; /* sentinel of the ring: before the first, behind the last */
    int64_t most_tokens; /* tokens that all these requests hold together at their declared limits */
};

static const struct ifl_param params[] = {
    {"busy_frac", IFL_REAL, offsetof(struct peak_estimate, busy_frac), 0, 0, 1, NULL, "",
     "from this use of the pool on, an answer counts with its declared limit (router_token_ratio)"},
    {"likely_tokens", IFL_INT, offsetof(struct peak_estimate, likely_tokens), 1024, 1, 1 << 30,
     NULL, "tokens",
     "below busy_frac: least length assumed for an answer (router_max_new_token_len)"},
    {"first_counts", IFL_BOOL, offsetof(struct peak_estimate, first_counts), 0, 0, 1, NULL, "",
     "the first token of a starting request is not one of those to come (LightLLM)"},
};

/* ---- the estimate ---- */

static int64_t limit_tokens(const struct peak_estimate *p, const struct ifl_request *r, bool busy)
{
    const int64_t limit = ifl_max(11 * (int64_t)ifl_n_out(r) / 10, p->likely_tokens);
    return busy ? r->n_max_new : ifl_min(limit, r->n_max_new);
}

/* A request that starts holds its first new token at the end of the step, too. */
static void foresee(const struct peak_estimate *p, struct standing *one, bool starts, bool busy)
{
    const struct ifl_request *r = one->request;
    const bool first_counts = starts && p->first_counts;
    const int64_t left = limit_tokens(p, r, busy) - ifl_n_out(r) - 1 - first_counts;
    one->left_tokens = ifl_max(left, 0);
    one->now_tokens = ifl_n_tokens(r) - ifl_counts(r)->n_dropped + starts;
}

static int64_t most_tokens(const struct ifl_request *r)
{
    return (int64_t)r->n_prompt + r->n_max_new;
}

/* Decided by the use of the pool before the plan; starts within the plan do not change it. */
static bool is_busy(const struct peak_estimate *p, const struct ifl_view *view)
{
    const int32_t n_blocks = view->limits->n_blocks;
    return (double)(n_blocks - view->n_free_blocks) / n_blocks >= p->busy_frac;
}

static void take_out(struct standing *one)
{
    one->before->behind = one->behind;
    one->behind->before = one->before;
}

static void put_behind(struct standing *before, struct standing *one)
{
    one->before = before;
    one->behind = before->behind;
    one->behind->before = one;
    before->behind = one;
}

/* Insertion sort, most tokens left first: requests that decode together keep their order, so few
 * move. */
static void sort(const struct peak_estimate *p, struct estimate *e, uint64_t step, bool busy)
{
    for (struct standing *one = e->all.behind, *next; one != &e->all; one = next) {
        struct standing *before = one->before;
        next = one->behind;
        foresee(p, one, one->started_in == step, busy);
        while (before != &e->all && before->left_tokens < one->left_tokens)
            before = before->before;
        if (before == one->before)
            continue;
        take_out(one);
        put_behind(before, one);
    }
}

static bool peak_stays_below(const struct estimate *e, int64_t pool)
{
    int64_t held = 0, n = 0;
    for (const struct standing *one = e->all.behind; one != &e->all; one = one->behind) {
        held += one->now_tokens;
        if (one->left_tokens * ++n + held >= pool)
            return false;
    }
    return true;
}

/* O(1) sufficient test from the declared limits. Requests past their limit hold more, bounded by
 * the blocks in use. */
static bool surely_fits_with(const struct estimate *e, const struct ifl_view *view,
                             const struct ifl_step *step, const struct ifl_request *newcomer,
                             int64_t pool)
{
    const int64_t n_used = view->limits->n_blocks - step->n_free_blocks - step->n_adapter_blocks;
    const int64_t in_use = n_used * view->limits->block_tokens + step->n_running_requests;
    return in_use + e->most_tokens + most_tokens(newcomer) < pool;
}

/* The estimate over all requests on the device and the newcomer. */
static bool fits_with(const struct peak_estimate *p, const struct ifl_view *view,
                      struct standing *newcomer, int64_t pool)
{
    struct estimate *e = ifl_state(p);
    put_behind(e->all.before, newcomer);
    newcomer->started_in = view->step;
    sort(p, e, view->step, is_busy(p, view));
    const bool fits = peak_stays_below(e, pool);
    take_out(newcomer);
    return fits;
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct peak_estimate *p = self;
    struct standing *own = ifl_mine(self, r);
    const struct ifl_limits *limits = view->limits;
    const int32_t n_own = limits->adapter_blocks ? limits->adapter_blocks[r->adapter] : 0;
    const int32_t n_others = step->n_adapter_blocks + ifl_adapter_lack(step, limits, r) - n_own;
    const int64_t alone = (int64_t)(limits->n_blocks - n_own) * limits->block_tokens;
    const int64_t pool = alone - (int64_t)n_others * limits->block_tokens;
    (void)n; /* a chunk needs room for the whole prompt */
    own->request = r;
    foresee(p, own, true, true); /* the estimate for the request alone, as if the pool were busy */
    if (own->now_tokens + own->left_tokens >= alone)
        return ifl_admission(IFL_NEVER_FITS, 0);
    if (!surely_fits_with(ifl_state(self), view, step, r, pool) && !fits_with(p, view, own, pool))
        return ifl_admission(IFL_NO_BLOCKS, 0);
    const bool fits = ifl_need(step, r, ifl_n_tokens(r)) <= step->n_free_blocks;
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, ifl_n_tokens(r));
}

/* ---- requests on the device ---- */

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    struct estimate *e = ifl_state(self);
    (void)limits;
    (void)error;
    e->all.before = e->all.behind = &e->all;
    return 0;
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct estimate *e = ifl_state(self);
    struct standing *standing = ifl_mine(self, r);
    put_behind(e->all.before, standing);
    standing->request = r; /* a request that comes from another replica was not asked about here */
    standing->started_in = view->step;
    standing->on_device = true;
    e->most_tokens += most_tokens(r);
}

static void on_preempt(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct estimate *e = ifl_state(self);
    struct standing *standing = ifl_mine(self, r);
    (void)view;
    if (!standing->on_device)
        return;
    take_out(standing);
    standing->on_device = false;
    e->most_tokens -= most_tokens(r);
}

static void on_leave(void *self, const struct ifl_view *view, const struct ifl_request *r,
                     enum ifl_leave why)
{
    (void)why;
    on_preempt(self, view, r);
}

static const struct ifl_admit_ops ops = {ask};

const struct ifl_policy policy_admit_peak_estimate = {
    .kind = IFL_ADMIT,
    .name = "peak-estimate",
    .doc = "the estimated peak of the pool must stay below its size (LightLLM, S-LoRA, VTC)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct peak_estimate),
    .state_bytes = sizeof(struct estimate),
    .request_bytes = sizeof(struct standing),
    .init = init,
    .on_start = on_start,
    .on_undo = on_preempt,
    .on_preempt = on_preempt,
    .on_leave = on_leave,
    .ops.admit = &ops,
};
