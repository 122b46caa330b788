/* vLLM's offloading connector: behind its hit on the device, a request's K/V is read from host
 * memory while steps go on; if a part of it is lost, it waits again with the part that was read. */
#include "inflight/policy.h"

struct vllm_offload {
    int32_t max_seqs;
};

static bool bring(struct ifl_step *step, const struct ifl_request *r)
{
    const int32_t n = ifl_hit(step, r).n_below;
    if (n > 0)
        return ifl_load(step, r, n, IFL_LOAD_APART) == IFL_YES;
    return ifl_settled(step, r, ifl_start(step, r, ifl_todo(r)));
}
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct vllm_offload *p = self;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)view;
    ifl_decode_one_by_one(step, 0);
    while (step->n_running_seqs < p->max_seqs && step->n_loaded > 0 &&
           (r = ifl_next(step, IFL_IN_LOADED, &cursor)))
        if (!ifl_settled(step, r, ifl_start(step, r, ifl_todo(r))))
            return;
    while (step->n_running_seqs < p->max_seqs && (r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (!bring(step, r))
            return;
}
const struct ifl_batching_ops vllm_offload = {plan};
