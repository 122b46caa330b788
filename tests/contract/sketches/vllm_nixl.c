/* vLLM v1 with NIXL, pull: the decode side takes blocks for the whole prompt and reads them while
 * steps go on; what has come is started with one token, the prompt's last, computed again. */
#include "inflight/policy.h"

static bool pull(struct ifl_step *step, const struct ifl_request *r)
{
    const int32_t n = ifl_hit(step, r).n_below;
    return n == 0 ? ifl_settled(step, r, ifl_start(step, r, ifl_todo(r)))
                  : ifl_load(step, r, n, IFL_LOAD_APART) == IFL_YES;
}
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor loaded = {{0}}, waiting = {{0}};
    const struct ifl_request *r;
    (void)self;
    (void)view;
    ifl_decode_one_by_one(step, 0);
    while ((r = ifl_next(step, IFL_IN_LOADED, &loaded)))
        if (!ifl_settled(step, r, ifl_start(step, r, 1)))
            return;
    while ((r = ifl_next(step, IFL_IN_WAITING, &waiting)) && pull(step, r))
        ;
}
/* Blocks of loads in flight are not free for a prompt; a load takes no seat. */
static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const int32_t hold = ifl_n_computed(r) + n;
    (void)self;
    return ifl_need(step, r, hold) + view->n_moving_blocks <= step->n_free_blocks
               ? ifl_admission(IFL_YES, hold)
               : ifl_admission(IFL_NO_BLOCKS, 0);
}
const struct ifl_batching_ops nixl_decode = {plan};
const struct ifl_admit_ops nixl_admit = {.ask = ask};
