/* Admit a prompt only once the replica that will decode it has taken blocks for it, as SGLang's
 * prefill side does by default (0.5.23, disaggregation/prefill.py: bootstrap). A request that
 * decodes here waits for no other replica. */
#include "inflight/policy.h"

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    (void)self;
    (void)view;
    (void)step;
    return ifl_admission(r->is_reserved ? IFL_YES : IFL_SKIP,
                         r->is_reserved ? ifl_n_computed(r) + n : 0);
}

static const struct ifl_admit_ops ops = {.ask = ask};

const struct ifl_policy policy_admit_reserved = {
    .kind = IFL_ADMIT,
    .name = "reserved",
    .doc = "a prompt starts once its decode replica has taken blocks (SGLang's bootstrap)",
    .steady = ifl_always_steady,
    .ops.admit = &ops,
};
