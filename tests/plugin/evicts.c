/* Evictions in their plainest form, none of which says that it ignores depths. */
#include <inflight/policy.h>

/* The time at which a block becomes unused: least recently used, in three ways. */
static int64_t by_clock(const void *self, const struct ifl_view *view,
                        const struct ifl_cached *block)
{
    (void)self;
    (void)block;
    return view->now_ns;
}

static int64_t by_use(const void *self, const struct ifl_view *view, const struct ifl_cached *block)
{
    (void)self;
    (void)view;
    return block->last_used_ns;
}

static int64_t by_steps(const void *self, const struct ifl_view *view,
                        const struct ifl_cached *block)
{
    (void)view;
    (void)block;
    return *(const int64_t *)ifl_state(self);
}

static void on_step_end(void *self, const struct ifl_view *view, const struct ifl_step_end *end)
{
    (void)view;
    *(int64_t *)ifl_state(self) += end->n_steps;
}

/* The beginnings of all prompts go before the rest of any. */
static int64_t by_depth(const void *self, const struct ifl_view *view,
                        const struct ifl_cached *block)
{
    (void)self;
    (void)view;
    return block->depth_tokens;
}

#define EVICTION(FUNCTION, NAME)                                                                   \
    static const struct ifl_evict_ops FUNCTION##_ops = {.key = FUNCTION};                          \
    static const struct ifl_policy FUNCTION##_policy = {                                           \
        .kind = IFL_EVICT,                                                                         \
        .name = NAME,                                                                              \
        .doc = "plain",                                                                            \
        .state_bytes = sizeof(int64_t),                                                            \
        .on_step_end = on_step_end,                                                                \
        .ops.evict = &FUNCTION##_ops,                                                              \
    };

EVICTION(by_clock, "by-clock")
EVICTION(by_use, "by-use")
EVICTION(by_steps, "by-steps")
EVICTION(by_depth, "by-depth")

IFL_POLICIES(&by_clock_policy, &by_use_policy, &by_steps_policy, &by_depth_policy);
