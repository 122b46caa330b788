/* Earliest deadline first, with keys that are asked for whenever they may be read and with keys
 * that stand; and a batching module that wakes seven times at once before it plans. */
#include <inflight/policy.h>

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = of[i]->arrival_ns + of[i]->ttft_slo_ns;
}

static const struct ifl_order_ops plain_ops = {.rank = rank};
static const struct ifl_order_ops kept_ops = {.rank = rank, .keys = ifl_own_keys};

static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    enum { N_NAPS = 7 };
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)self;
    if (view->n_tries < N_NAPS && step->n_running_requests == 0) {
        ifl_wake(step, view->now_ns);
        return;
    }
    ifl_decode_one_by_one(step, 0);
    while ((r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (!ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            break;
}

static const struct ifl_batching_ops naps_ops = {.plan = plan};

static const struct ifl_policy plain = {
    .kind = IFL_ORDER, .name = "plain-edf", .doc = "earliest deadline", .ops.order = &plain_ops};
static const struct ifl_policy kept = {
    .kind = IFL_ORDER, .name = "kept-edf", .doc = "earliest deadline", .ops.order = &kept_ops};
static const struct ifl_policy naps = {
    .kind = IFL_BATCHING, .name = "naps", .doc = "wakes at once", .ops.batching = &naps_ops};

IFL_POLICIES(&plain, &kept, &naps);
