/* Admit when the whole prompt fits and enough host memory is free to swap it out again, as
 * FastServe does (Wu et al., arXiv 2305.05920; LLMServe/FastServe: no new context while less than a
 * tenth of the host's blocks is free). Swapped requests return whenever they fit. */
#include "inflight/policy.h"

struct host_room {
    double host_free_frac;
};

static const struct ifl_param params[] = {
    {"host_free_frac", IFL_REAL, offsetof(struct host_room, host_free_frac), 0.1, 0, 1, NULL, "",
     "share of the host's blocks that must be free for a new request"},
};

/* Host blocks before the swaps of this plan. */
static bool host_has_room(const struct host_room *p, const struct ifl_view *view)
{
    return view->n_free_host_blocks >= p->host_free_frac * view->limits->n_host_blocks;
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const int32_t hold = ifl_n_slots(r) + n;
    const bool swapped = r->state == IFL_SWAPPED;
    const int32_t need = ifl_need(step, r, swapped ? hold : ifl_n_tokens(r));
    if (need > view->limits->n_blocks)
        return ifl_admission(IFL_NEVER_FITS, 0);
    if (!swapped && !host_has_room(self, view))
        return ifl_admission(IFL_NO_HOST_BLOCKS, 0);
    return ifl_admission(need <= step->n_free_blocks ? IFL_YES : IFL_NO_BLOCKS,
                         swapped ? hold : ifl_n_tokens(r));
}

/* `ask` never answers that a request can never fit: such a request is rejected on arrival. */
static enum ifl_verdict for_all(const void *self, const struct ifl_view *view,
                                struct ifl_step *step)
{
    (void)step;
    return host_has_room(self, view) ? IFL_YES : IFL_NO_HOST_BLOCKS;
}

static const struct ifl_admit_ops ops = {.ask = ask, .for_all = for_all};

const struct ifl_policy policy_admit_host_room = {
    .kind = IFL_ADMIT,
    .name = "host-room",
    .doc = "the whole prompt must fit, and host memory must have room to swap it out (FastServe)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct host_room),
    .steady = ifl_always_steady,
    .ops.admit = &ops,
};
