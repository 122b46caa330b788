/* Shuffled anew for every plan, SGLang's random (2026-08,
 * python/sglang/srt/managers/schedule_policy.py). A request's draw depends on the step and on the
 * request alone, so it stays the same whatever other requests do. */
#include "inflight/policy.h"

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    struct ifl_step *step = ifl_plan(view);
    (void)self;
    for (size_t i = 0; i < n; i++)
        key[i] = (int64_t)(ifl_policy_draw(step, of[i], (uint32_t)view->step) >> 1);
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = ifl_keys_of_plan};

const struct ifl_policy policy_order_random = {
    .kind = IFL_ORDER,
    .name = "random",
    .doc = "a new random order for every plan (SGLang's random)",
    .ops.order = &ops,
};
