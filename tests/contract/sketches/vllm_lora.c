/* vLLM's max_loras: while all slots are taken, requests of adapters without a slot are skipped. */
#include "inflight/policy.h"

struct vllm_lora {
    int32_t max_loras;
};

static void count(void *self, const struct ifl_view *view, const struct ifl_request *r, int32_t by)
{
    int32_t *n_adapters = ifl_state(self);
    if (r->adapter && ifl_adapter_users(ifl_plan(view), r->adapter) == (by > 0 ? 1 : 0))
        *n_adapters += by;
}
static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    count(self, view, r, 1);
}
static void on_undo(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    count(self, view, r, -1);
}
static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct vllm_lora *p = self;
    const int32_t *n_adapters = ifl_state(self);
    (void)view;
    return r->adapter && ifl_adapter_users(step, r->adapter) == 0 && *n_adapters >= p->max_loras
               ? ifl_admission(IFL_SKIP, 0)
               : ifl_admission(IFL_YES, ifl_n_computed(r) + n);
}
static const struct ifl_admit_ops ops = {.ask = ask};
const struct ifl_policy vllm_lora = {.kind = IFL_ADMIT,
                                     .name = "vllm-lora",
                                     .params_bytes = sizeof(struct vllm_lora),
                                     .state_bytes = sizeof(int32_t),
                                     .on_start = on_start,
                                     .on_undo = on_undo,
                                     .on_preempt = on_undo,
                                     .ops.admit = &ops};
