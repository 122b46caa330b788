/* Preempt the tail: the victim is the running request that started last, or that ranks last. If
 * there is none it is the request that needs the blocks. No request that the plan has started is a
 * victim, unless it is that request itself.
 *   - vLLM v0 takes the last of the requests that it has not scheduled yet, Sarathi-Serve the
 *     latest arrival among them.
 *   - vLLM v1 takes the last of all, or with priorities the least urgent, and undoes what the step
 *     has scheduled for it (vllm/v1/core/sched/scheduler.py).
 * All of them drop the victim's K/V unless the configuration asks for swaps; vLLM v0 and the vLLM
 * of the paper swap only groups of several sequences. */
#include "inflight/policy.h"

enum tail_of { TAIL_OF_STARTED, TAIL_OF_RANKED };
enum tail_fate { FATE_RECOMPUTE, FATE_SWAP, FATE_NEVER, FATE_SWAP_GROUPS };
enum tail_scheduled { SCHEDULED_KEEP, SCHEDULED_UNDO };

struct tail {
    int32_t tail_of;
    int32_t fate;
    int32_t place;
    int32_t scheduled;
    bool spares_ended;
};

static const struct ifl_param params[] = {
    {"fate", IFL_CHOICE, offsetof(struct tail, fate), FATE_RECOMPUTE, 0, 0,
     "recompute|swap|never|swap-groups", "",
     "how the victim is preempted; never: no request is; swap-groups: a single sequence is "
     "recomputed, a group of several is swapped"},
    {"of", IFL_CHOICE, offsetof(struct tail, tail_of), TAIL_OF_STARTED, 0, 0, "started|ranked", "",
     "the victim is the last running request by start, or by rank among those that ran before the "
     "plan; requests that the plan starts are spared"},
    {"place", IFL_CHOICE, offsetof(struct tail, place), IFL_FRONT, 0, 0, "front|in-order|back", "",
     "where a recomputed victim waits: at the front, by its rank, or at the back"},
    {"scheduled", IFL_CHOICE, offsetof(struct tail, scheduled), SCHEDULED_KEEP, 0, 0, "keep|undo",
     "", "requests already scheduled in the step: never victims, or victims that are unscheduled"},
    {"spares_ended", IFL_BOOL, offsetof(struct tail, spares_ended), 0, 0, 1, NULL, "",
     "with plans made ahead: a request that has all its tokens keeps its blocks until it leaves "
     "(TensorRT-LLM)"},
};

static bool is_at_limit(const struct ifl_view *view, const struct ifl_request *r)
{
    return ifl_n_out(r) >= r->n_max_new || ifl_n_tokens(r) >= view->limits->max_model_tokens;
}

static bool eligible(const struct tail *p, const struct ifl_view *view, const struct ifl_request *r)
{
    return r->state == IFL_RUNNING && (ifl_n_now(r) == 0 || p->scheduled == SCHEDULED_UNDO) &&
           !(p->spares_ended && is_at_limit(view, r));
}

static const struct ifl_request *last_started(const struct tail *p, const struct ifl_view *view,
                                              struct ifl_step *step)
{
    const struct ifl_requests running = ifl_running(step);
    for (size_t i = running.n; i-- > 0;)
        if (eligible(p, view, running.of[i]))
            return running.of[i];
    return NULL;
}

/* If scheduled requests are spared, the search ends at the needy request: the batching module has
 * visited the requests that rank before it. These are spared, too, even if they got no tokens, as
 * prompts do while decodes are served. */
static const struct ifl_request *last_ranked(const struct tail *p, const struct ifl_view *view,
                                             struct ifl_step *step, const struct ifl_request *needy)
{
    const struct ifl_request *last;
    for (size_t i = 0; (last = ifl_last_ranked(step, i)); i++) {
        if (eligible(p, view, last))
            return last;
        if (last == needy && p->scheduled == SCHEDULED_KEEP)
            return NULL;
    }
    return NULL;
}

static enum ifl_fate fate_of(const struct tail *p, const struct ifl_request *victim)
{
    static const enum ifl_fate fates[] = {IFL_RECOMPUTE, IFL_SWAP, IFL_KEEP};
    if (p->fate == FATE_SWAP_GROUPS)
        return victim->n_seqs > 1 ? IFL_SWAP : IFL_RECOMPUTE;
    return fates[p->fate];
}

static struct ifl_victim pick(const void *self, const struct ifl_view *view, struct ifl_step *step,
                              const struct ifl_request *needy)
{
    const struct tail *p = self;
    if (p->fate == FATE_NEVER)
        return (struct ifl_victim){NULL, IFL_KEEP, IFL_FRONT};
    const struct ifl_request *last = p->tail_of == TAIL_OF_RANKED
                                         ? last_ranked(p, view, step, needy)
                                         : last_started(p, view, step);
    const struct ifl_request *victim = last ? last : needy;
    if (victim->state != IFL_RUNNING)
        return (struct ifl_victim){NULL, IFL_KEEP, IFL_FRONT};
    return (struct ifl_victim){victim, fate_of(p, victim), (enum ifl_place)p->place};
}

static const struct ifl_preempt_ops ops = {pick};

const struct ifl_policy policy_preempt_tail = {
    .kind = IFL_PREEMPT,
    .name = "tail",
    .doc = "preempts the last of the running list, by recompute or by swap",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct tail),
    .steady = ifl_always_steady,
    .ops.preempt = &ops,
};
