/* Preempt the tail: the running request that started last (or ranks last) and is not scheduled in
 * this step gives way; if there is none, the needy one itself. vLLM v0 pops the end of its running
 * queue, Sarathi-Serve the latest arrival; both recompute unless told to swap. */
#include "inflight/policy.h"

enum tail_of { TAIL_OF_STARTED, TAIL_OF_RANKED };
enum tail_fate { FATE_RECOMPUTE, FATE_SWAP, FATE_NEVER };

struct tail {
    int32_t tail_of;
    int32_t fate;
};

static const struct ifl_param params[] = {
    {"fate", IFL_CHOICE, offsetof(struct tail, fate), FATE_RECOMPUTE, 0, 0, "recompute|swap|never",
     "", "what becomes of the victim's K/V; never: nobody gives way"},
    {"of", IFL_CHOICE, offsetof(struct tail, tail_of), TAIL_OF_STARTED, 0, 0, "started|ranked", "",
     "the tail of the running list in order of start, or in order of rank"},
};

static bool eligible(const struct ifl_request *r)
{
    return r->state == IFL_RUNNING && r->n_now == 0;
}

static const struct ifl_request *last_started(struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = running.n; i-- > 0;)
        if (eligible(running.of[i]))
            return running.of[i];
    return NULL;
}

static const struct ifl_request *last_ranked(struct ifl_step *step)
{
    const struct ifl_request *r, *last = NULL;
    struct ifl_cursor cursor = {{0}};
    while ((r = ifl_next(step, IFL_IN_RUNNING, &cursor)))
        if (eligible(r))
            last = r;
    return last;
}

static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    static const enum ifl_fate fates[] = {IFL_RECOMPUTE, IFL_SWAP, IFL_KEEP};
    const struct tail *p = self;
    (void)view;
    if (p->fate == FATE_NEVER)
        return (struct ifl_victim){NULL, IFL_KEEP, IFL_FRONT};
    const struct ifl_request *last =
        p->tail_of == TAIL_OF_RANKED ? last_ranked(step) : last_started(step);
    return (struct ifl_victim){last ? last : needy, fates[p->fate], IFL_FRONT};
}

static const struct ifl_preempt_ops ops = {pick};

const struct ifl_policy policy_preempt_tail = {
    .kind = IFL_PREEMPT,
    .name = "tail",
    .doc = "the last of the running list gives way, by recompute or by swap",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct tail),
    .ops.preempt = &ops,
};
