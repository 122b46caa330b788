/* S-LoRA (MLSys 2024): adapters live in the K/V pool, so that the blocks a request needs include
 * those of an adapter that is not there; a request that can no longer meet its SLO is dropped. */
#include "inflight/policy.h"

static bool is_too_late(const struct ifl_view *view, const struct ifl_request *r)
{
    return r->ttft_slo_ns != IFL_NEVER && view->now_ns - r->arrival_ns > r->ttft_slo_ns;
}
static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const int32_t peak = r->n_prompt + r->n_max_new;
    (void)self;
    (void)n;
    if (is_too_late(view, r))
        return ifl_admission(IFL_NEVER_FITS, 0);
    return ifl_need(step, r, peak) <= step->n_free_blocks ? ifl_admission(IFL_YES, peak)
                                                          : ifl_admission(IFL_NO_BLOCKS, 0);
}
/* Requests of an adapter that is in use go first: its weights are there already. */
static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    struct ifl_step *step = ifl_plan(view);
    (void)self;
    for (size_t i = 0; i < n; i++)
        key[i] = step && ifl_adapter_users(step, of[i]->adapter) > 0 ? 0 : 1;
}
const struct ifl_admit_ops s_lora_admit = {.ask = ask};
const struct ifl_order_ops s_lora_order = {.rank = rank};
