/* Swap ahead of need (FastServe, Wu et al., arXiv 2305.05920, section 4.2; LLMServe/FastServe).
 *
 * After each plan requests without tokens in this step are swapped out, the last ranked first,
 * until `keep_free_blocks` blocks are free. If none goes out, swapped requests among the
 * `look_ahead` best ranked requests without tokens come back, as long as that many blocks stay
 * free. If a plan lacks blocks, it swaps out the last ranked request without tokens at once. */
#include "inflight/policy.h"

struct proactive {
    int32_t keep_free_blocks;
    int32_t look_ahead;
};

static const struct ifl_param params[] = {
    {"keep_free_blocks", IFL_INT, offsetof(struct proactive, keep_free_blocks), 16, 0, 1 << 30,
     NULL, "blocks", "blocks kept free after every plan; FastServe: the largest batch"},
    {"look_ahead", IFL_INT, offsetof(struct proactive, look_ahead), 16, 0, 1 << 30, NULL,
     "requests",
     "number of best ranked requests without tokens in a plan; swapped ones among them come back"},
};

static const struct ifl_request *last_paused(struct ifl_step *step)
{
    const struct ifl_request *last;
    for (size_t i = 0; (last = ifl_last_ranked(step, i)); i++)
        if (last->state == IFL_RUNNING && ifl_n_now(last) == 0)
            return last;
    return NULL;
}

static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    const struct ifl_request *last = last_paused(step);
    (void)self;
    (void)view;
    if (!last && needy->state != IFL_RUNNING)
        return (struct ifl_victim){NULL, IFL_KEEP, IFL_IN_ORDER};
    return (struct ifl_victim){last ? last : needy, IFL_SWAP, IFL_IN_ORDER};
}

static bool would_fit(const struct proactive *p, const struct ifl_step *step,
                      const struct ifl_request *r)
{
    return r->state == IFL_SWAPPED && step->n_free_blocks - r->n_host_blocks >= p->keep_free_blocks;
}

/* Looks only at swapped requests, not at waiting ones: ranking a long queue takes time, and waiting
 * requests only push others back. If this is false, bring_back finds no request either. */
static bool one_may_return(const struct proactive *p, struct ifl_step *step)
{
    int32_t n_seen = 0;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (n_seen < p->look_ahead && step->n_free_blocks > p->keep_free_blocks &&
           (r = ifl_next(step, IFL_IN_RUNNING | IFL_IN_SWAPPED, &cursor))) {
        n_seen += ifl_n_now(r) == 0;
        if (would_fit(p, step, r))
            return true;
    }
    return false;
}

/* Brings back the swapped requests that fit, among the best ranked requests that the plan left out.
 */
static void bring_back(const struct proactive *p, struct ifl_step *step)
{
    const unsigned all = IFL_IN_WAITING | IFL_IN_RUNNING | IFL_IN_SWAPPED;
    int32_t n_seen = 0;
    struct ifl_cursor cursor = {{0}};
    const struct ifl_request *r;
    while (n_seen < p->look_ahead && step->n_free_blocks > p->keep_free_blocks &&
           (r = ifl_next(step, all, &cursor))) {
        n_seen += ifl_n_now(r) == 0;
        if (would_fit(p, step, r))
            (void)ifl_start(step, r, 0);
    }
}

static void ahead(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    const struct proactive *p = self;
    const struct ifl_request *r;
    (void)view;
    if (step->n_free_blocks < p->keep_free_blocks && step->n_requests > 0)
        while (step->n_free_blocks < p->keep_free_blocks && (r = last_paused(step)) &&
               step->n_free_host_blocks >= ifl_n_blocks(r))
            if (ifl_preempt(step, r, IFL_SWAP, IFL_IN_ORDER) != IFL_YES)
                return;
    if (step->n_swapped > 0 && step->n_preempted == 0 &&
        (step->n_waiting == 0 || one_may_return(p, step)))
        bring_back(p, step);
}

/* While every request runs there is nothing to swap, also after some have finished. */
static struct ifl_promise steady(const void *self, const struct ifl_view *view,
                                 struct ifl_step *step)
{
    const struct proactive *p = self;
    (void)view;
    (void)step;
    return (struct ifl_promise){INT32_MAX, IFL_NEVER, p->keep_free_blocks, true};
}

static const struct ifl_preempt_ops ops = {pick, ahead};

const struct ifl_policy policy_preempt_proactive = {
    .kind = IFL_PREEMPT,
    .name = "proactive",
    .doc = "swaps out the last ranked before blocks run short, and swaps them in again (FastServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct proactive),
    .steady = steady,
    .ops.preempt = &ops,
};
