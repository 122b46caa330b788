/* A random order as it is written first, with and without `keys`, and an admission with a hook that
 * reads the queue. Both are asked outside of plans, too. */
#include <inflight/policy.h>

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)self;
    for (size_t i = 0; i < n; i++)
        key[i] = (int64_t)(ifl_policy_draw(ifl_plan(view), of[i], 7) >> 1);
}

static enum ifl_keys stand(const void *self, const struct ifl_view *view)
{
    (void)self;
    (void)view;
    return IFL_KEYS_NAMED;
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const bool fits = ifl_need(step, r, ifl_n_tokens(r)) <= step->n_free_blocks;
    (void)self;
    (void)view;
    (void)n;
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, ifl_n_tokens(r));
}

static void read_queue(void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)view;
    while ((r = ifl_next(step, IFL_IN_WAITING | IFL_IN_RUNNING, &cursor)))
        *(uint64_t *)ifl_state(self) += r->serial;
}

static const struct ifl_order_ops ops = {.rank = rank}, standing = {.rank = rank, .keys = stand};
static const struct ifl_admit_ops answers = {.ask = ask};
static const struct ifl_policy drawn = {
    .kind = IFL_ORDER, .name = "drawn", .doc = "a random order", .ops.order = &ops};
static const struct ifl_policy drawn_once = {.kind = IFL_ORDER,
                                             .name = "drawn-once",
                                             .doc = "a random order",
                                             .steady = ifl_always_steady,
                                             .ops.order = &standing};
static const struct ifl_policy plain = {
    .kind = IFL_ADMIT, .name = "plain", .doc = "fits", .ops.admit = &answers};
static const struct ifl_policy reads = {.kind = IFL_ADMIT,
                                        .name = "reads",
                                        .doc = "fits, and reads the queue",
                                        .state_bytes = sizeof(uint64_t),
                                        .on_step_start = read_queue,
                                        .ops.admit = &answers};

IFL_POLICIES(&drawn, &drawn_once, &plain, &reads);
