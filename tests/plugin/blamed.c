/* Modules that break the contract in ways that hide which of them does. */
#include <inflight/policy.h>
#include <string.h>

/* ---- an order that asks for the results of a step that ended before ---- */

struct kept {
    const struct ifl_step_end *end;
    size_t n;
};

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->n_prompt;
}

static void on_step_start(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct kept *kept = ifl_state(self);
    (void)view;
    (void)step;
    if (kept->end)
        kept->n += ifl_results(kept->end).n;
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    struct kept *kept = ifl_state(self);
    (void)view;
    kept->end = end;
}

/* ---- an order whose keys are its own calls ---- */

static void rank_by_calls(const void *self, const struct ifl_view *view,
                          const struct ifl_request *const *of, size_t n, int64_t *key)
{
    static int64_t n_calls;
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = n_calls++ * (int64_t)of[i]->serial % 17;
}

/* ---- a preemption that takes back each start ---- */

static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    (void)self;
    (void)view;
    (void)step;
    return (struct ifl_victim){needy, IFL_RECOMPUTE, IFL_FRONT};
}

static void ahead(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct ifl_requests started = ifl_started(step);
    (void)self;
    (void)view;
    for (size_t i = 0; i < started.n; i++)
        if (started.of[i]->state == IFL_RUNNING)
            ifl_preempt(step, started.of[i], IFL_RECOMPUTE, IFL_FRONT);
}

/* ---- a batching module that overwrites its own name, then crashes, or hands over a NULL ---- */

static const struct ifl_request *volatile no_request;
static int *volatile nowhere;

static void overwrite(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    char *policy;
    (void)view;
    (void)step;
    memcpy(&policy, (const char *)self - 64, sizeof policy);
    memset(policy + sizeof(struct ifl_policy) + sizeof(void *), 0x41, 400);
    *nowhere = 1;
}

static void start_none(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)self;
    (void)view;
    ifl_start(step, no_request, 1);
}

/* ---- answers of -1, and a part of replicas that is not declared ---- */

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    (void)self;
    (void)view;
    (void)step;
    (void)r;
    (void)n;
    return ifl_admission((enum ifl_verdict) - 1, 0);
}

static struct ifl_route send_to_none(const void *self, const struct ifl_fleet *fleet)
{
    (void)self;
    (void)fleet;
    return ifl_send((size_t)-1);
}

static struct ifl_route send_by_part(const void *self, const struct ifl_fleet *fleet)
{
    (void)fleet;
    return ifl_send(*(const size_t *)ifl_at(self, 0));
}

static const struct ifl_order_ops orders = {.rank = rank}, calls = {.rank = rank_by_calls};
static const struct ifl_preempt_ops takes_back = {.pick = pick, .ahead = ahead};
static const struct ifl_batching_ops overwrites = {overwrite}, starts_none = {start_none};
static const struct ifl_admit_ops answers = {.ask = ask};
static const struct ifl_route_ops to_none = {.pick = send_to_none},
                                  by_part = {.pick = send_by_part};

static const struct ifl_policy late = {.kind = IFL_ORDER,
                                       .name = "late",
                                       .doc = "asks late",
                                       .state_bytes = sizeof(struct kept),
                                       .on_step_start = on_step_start,
                                       .on_step_end = on_step_end,
                                       .ops.order = &orders};
static const struct ifl_policy by_calls = {
    .kind = IFL_ORDER, .name = "by-calls", .doc = "has a static variable", .ops.order = &calls};
static const struct ifl_policy undoes = {
    .kind = IFL_PREEMPT, .name = "undoes", .doc = "takes back starts", .ops.preempt = &takes_back};
static const struct ifl_policy nameless = {
    .kind = IFL_BATCHING, .name = "nameless", .doc = "crashes", .ops.batching = &overwrites};
static const struct ifl_policy null = {
    .kind = IFL_BATCHING, .name = "no-request", .doc = "starts NULL", .ops.batching = &starts_none};
static const struct ifl_policy minus = {
    .kind = IFL_ADMIT, .name = "minus", .doc = "answers -1", .ops.admit = &answers};
static const struct ifl_policy none = {
    .kind = IFL_ROUTE, .name = "none", .doc = "answers -1", .ops.route = &to_none};
static const struct ifl_policy part = {
    .kind = IFL_ROUTE, .name = "part", .doc = "declares nothing", .ops.route = &by_part};

IFL_POLICIES(&late, &by_calls, &undoes, &nameless, &null, &minus, &none, &part);
