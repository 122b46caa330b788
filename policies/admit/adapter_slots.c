/* A request starts only where its adapter has a slot: requests of other adapters are passed over
 * while all slots are in use, and are asked about again at every plan.
 *
 * vLLM v1 (v1/core/sched/scheduler.py, main of 2026-08): if the adapters of the running requests
 * are max_loras and the request's is not among them, the request is skipped and the next one is
 * looked at. Nothing keeps an adapter from starving; a comment of v0's scheduler says so, too. */
#include "inflight/policy.h"

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const int32_t most = view->limits->max_adapters;
    (void)self;
    (void)n;
    return r->adapter && most > 0 && step->n_adapters >= most &&
                   ifl_adapter_users(step, r->adapter) == 0
               ? ifl_admission(IFL_SKIP, 0)
               : ifl_admission(IFL_YES, 0);
}

static const struct ifl_admit_ops ops = {.ask = ask};

const struct ifl_policy policy_admit_adapter_slots = {
    .kind = IFL_ADMIT,
    .name = "adapter-slots",
    .doc = "skips requests of adapters beyond serving.adapters.max_loras (vLLM)",
    .steady = ifl_always_steady,
    .ops.admit = &ops,
};
