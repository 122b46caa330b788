/* Requests that leave before they are answered: the client has gone, or a deadline has passed.
 *
 *   waits, or is in host memory       leaves at once
 *   on the device, no step in flight  leaves at once, or (serving.leave: next_step) when its next
 *                                     step ends
 *   on the device, a step in flight   leaves when that step ends, or when its next one does
 *
 * The step with which a request leaves computes for the request, but the token is not counted. vLLM
 * (v1/engine/core.py, v0.33) handles aborts before it processes the outputs of a step: step_end.
 * SGLang (managers/scheduler.py, abort_request, v0.5) marks a running request, which leaves after
 * its next forward pass: next_step. Steps without it, of the chunks of another prompt, pass by. */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"
#include "replica/step_builder.h"

/* What was found in a cache was not computed for it. */
void replica_note_lost(const struct replica *replica, struct live_request *r)
{
    r->n_lost = (int32_t)ifl_max(replica_slots(replica, r) - r->cached_tokens, 0);
}

static void leave_host(struct replica *replica, struct live_request *r)
{
    replica_note_lost(replica, r);
    step_leave_host(replica, r);
}

/* Tokens of an answer from the step that ends, where several are in flight: they have counted as
 * computed since it was planned. */
static int32_t uncounted_tokens(const struct replica *replica, const struct live_request *r)
{
    const struct plan *plan = &replica->plan;
    for (size_t i = 0; i < plan->n_planned && r->pub.state == IFL_RUNNING; i++)
        if (plan->planned[i].r == r && plan->planned[i].decodes)
            return plan->planned[i].n_tokens;
    return 0;
}

/* The tokens of a step in flight are computed: those of a prompt are counted, and its whole blocks
 * stay in the cache; the one of a tick is not. */
static void leave_step(struct replica *replica, struct live_request *r)
{
    if (replica_overlaps(replica)) {
        plan_forget_prompt(&replica->plan, r);
        return;
    }
    if (r->in_cohort && replica->in_flight.ticks) {
        accounts_add_tokens(&replica->kv, -r->pub.n_seqs);
        r->n_steps++;
    }
    if (plan_forget_prompt(&replica->plan, r))
        replica_publish_prompt(replica, r, r->pub.stale.n_computed);
}

static void leave_device(struct replica *replica, struct live_request *r)
{
    const int32_t n_free_before = replica->kv.device.n_free;
    if (r->pub.state == IFL_RUNNING) {
        here_stop(&replica->here, r); /* settles how many tokens it has */
        replica_note_lost(replica, r);
        replica_note_rank(replica, RANKED_RUNNING, r);
    } else {
        replica_note_lost(replica, r);
        /* the last prompt token, which would have been computed here once more, has no slot */
        r->n_lost += r->pub.state == IFL_LOADED && r->handover > 0 && r->pub.stale.n_out == 0;
        replica_leave_moving(replica, r);
    }
    replica_drop_blocks(replica, r, true);
    view_free_blocks(&replica->view, replica->kv.device.n_free - n_free_before);
}

static void detach(struct replica *replica, struct live_request *r)
{
    if (r->pub.n_in_flight > 0)
        in_flight_drop(replica, r);
    if (r->pub.state == IFL_WAITING)
        waiting_leave(&replica->here.waiting, r);
    else if (r->pub.state == IFL_SWAPPED)
        leave_host(replica, r);
    else
        leave_device(replica, r);
    r->pub.state = IFL_DONE;
    replica_stir_keys(replica);
}

static bool awaits_its_step(const struct replica *replica, const struct live_request *r)
{
    return replica->fixed.leave == LEAVE_NEXT_STEP && r->pub.state == IFL_RUNNING &&
           !replica_computes(replica, r);
}

IFL_APART void replica_detach_early(struct replica *replica)
{
    const struct leaving *leaving = &replica->leaving;
    for (size_t i = 0; i < leaving->n_early; i++) {
        struct live_request *r = leaving->early[i];
        if (r->stays_steps > 1)
            continue;
        if (awaits_its_step(replica, r)) {
            r->stays_steps++; /* this step does not count */
            continue;
        }
        const int32_t n_uncounted = replica_overlaps(replica) ? uncounted_tokens(replica, r) : 0;
        leave_step(replica, r);
        detach(replica, r);
        r->n_lost -= n_uncounted;
    }
}

void replica_leave_with_prompt(struct replica *replica, struct live_request *r)
{
    leaving_forget_early(&replica->leaving, r);
    replica_note_lost(replica, r);
    leaving_add(&replica->leaving, r);
}

/* Steps that end before a request on the device leaves. */
static int32_t steps_to_stay(const struct replica *replica)
{
    return (replica->view.n_in_flight > 0) + (replica->fixed.leave == LEAVE_NEXT_STEP);
}

void replica_leave(struct replica *replica, struct live_request *r, enum ifl_status status,
                   int64_t now_ns)
{
    ifl_assert(status != IFL_FINISHED && status != IFL_REJECTED);
    ifl_assert(r->pub.state != IFL_DONE && r->left == IFL_FINISHED);
    const int32_t n_steps = r->pub.state == IFL_RUNNING ? steps_to_stay(replica) : 0;
    replica_tell_run(replica);
    view_set_now(&replica->view, now_ns);
    r->left = status;
    if (n_steps > 0) {
        leaving_note_early(&replica->leaving, r, n_steps);
    } else {
        detach(replica, r);
        leaving_add(&replica->leaving, r);
    }
    plan_void_promise(&replica->plan);
    wakes_end_vain(&replica->wakes);
}

/* True if a is shed before b. */
static bool is_worse(const struct ifl_request *a, const struct ifl_request *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->queued_ns != b->queued_ns ? a->queued_ns > b->queued_ns : a->serial > b->serial;
}

/* A request that gave way after its client had left is not shed: it leaves as the step ends. */
struct live_request *replica_worst_waiting(struct replica *replica, struct live_request *arrived)
{
    struct live_request *worst = arrived, *r;
    uint64_t at[2] = {0, 0};
    while ((r = waiting_next(&replica->here.waiting, at)))
        if (r->left == IFL_FINISHED && r->pub.priority > arrived->pub.priority &&
            (worst == arrived || is_worse(&r->pub, &worst->pub)))
            worst = r;
    return worst;
}
