/* SGLang with disaggregation, bootstrap `early`: a prompt is computed only once the decode side has
 * taken blocks for it, which it does in order while a reserve of 512 tokens a request stays free.
 */
#include "inflight/policy.h"

enum { RESERVED_TOKENS = 512 };

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    (void)self;
    (void)view;
    (void)step;
    return r->is_reserved ? ifl_admission(IFL_YES, ifl_n_computed(r) + n)
                          : ifl_admission(IFL_SKIP, 0);
}
/* On the decode side: the load begins when the prompt is there to be read. */
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    struct ifl_cursor loaded = {{0}}, waiting = {{0}};
    const struct ifl_request *r;
    const int64_t n_others = step->n_running_requests + (int64_t)view->n_moving + view->n_loaded;
    const int64_t reserve = RESERVED_TOKENS * n_others / view->limits->block_tokens;
    (void)self;
    ifl_decode_one_by_one(step, 0);
    while ((r = ifl_next(step, IFL_IN_LOADED, &loaded)))
        (void)ifl_start(step, r, 0);
    while ((r = ifl_next(step, IFL_IN_WAITING, &waiting)))
        if (step->n_swapped > 0 || ifl_need(step, r, r->n_prompt) + reserve > step->n_free_blocks ||
            ifl_load(step, r, r->n_prompt, IFL_LOAD_APART) != IFL_YES)
            return;
}
const struct ifl_admit_ops sglang_prefill = {.ask = ask};
const struct ifl_batching_ops sglang_decode = {plan};
