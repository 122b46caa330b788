/* SGLang's HiCache: host K/V is loaded at admission, layer by layer under the same step's forward
 * pass; fewer than ten tokens are computed instead. */
#include "inflight/policy.h"

struct hicache {
    int32_t min_tokens, max_seqs;
};

static enum ifl_verdict load_and_start(const struct hicache *p, struct ifl_step *step,
                                       const struct ifl_request *r)
{
    const int32_t n = ifl_hit(step, r).n_below;
    if (n >= p->min_tokens) {
        const enum ifl_verdict verdict = ifl_load(step, r, n, IFL_LOAD_BY_LAYER);
        if (verdict != IFL_YES)
            return verdict;
    }
    return ifl_start(step, r, ifl_todo(r));
}
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct hicache *p = self;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    (void)view;
    while (step->n_running_seqs < p->max_seqs && (r = ifl_next(step, IFL_IN_WAITING, &cursor)))
        if (!ifl_settled(step, r, load_and_start(p, step, r)))
            break;
    if (step->n_started == 0)
        ifl_decode_one_by_one(step, 0);
}
const struct ifl_batching_ops hicache = {plan};
