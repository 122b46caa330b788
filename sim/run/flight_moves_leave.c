/* Requests with two replicas that end or leave early, and the fields about moves in their rows. */
#include "inflight/minmax.h"
#include "run/flight_moves_parts.h"

static void give_back(struct moves *moves, uint32_t slot)
{
    struct handover *h = &moves->of[slot];
    if (h->p || h->d || h->n_flying > 0)
        return;
    h->n_uses++;
    slots_give(&moves->slots, slot);
}

/* ---- requests that leave ---- */

bool moves_fails_prompt(const struct moves *moves, const struct live_request *r)
{
    const struct handover *h = handover_of(moves, r);
    return r == h->d && r->prompt_at && live_ran(r);
}

/* The other record of the request goes without a word: it is r that makes the row, unless r is
 * dropped while the prompt is computed. */
static int drop_other(struct moves *moves, struct handover *h, const struct live_request *r,
                      struct ifl_error *error)
{
    struct live_request *other = h->p == r ? h->d : h->p;
    struct replica *replica = replica_at(moves, h->p == r ? h->to : h->from);
    if (!other || other->silent || other->pub.state == IFL_DONE)
        return 0;
    const bool fails = moves_fails_prompt(moves, r);
    other->silent = !fails;
    if (h->n_flying > 0 && other == h->d) { /* its blocks are free when what flies has come */
        h->left = IFL_SHED;
        return 0;
    }
    if (other->left == IFL_FINISHED)
        replica_leave(replica, other, fails ? IFL_FAILED : IFL_SHED, moves->loop->now_ns);
    return loop_note_gone(moves->loop, replica, error);
}

/* Its prompt is in a step that goes on. The decode replica need not wait for the end of it, unless
 * that is when the last layer is sent. */
static int leave_decode(struct moves *moves, struct handover *h, const struct live_request *r,
                        struct ifl_error *error)
{
    if (r != h->p || r->pub.state == IFL_DONE || moves->rules->overlap == MOVE_BY_LAYER)
        return 0;
    h->asked = false; /* nothing is sent any more */
    return drop_other(moves, h, r, error);
}

int moves_leave(struct moves *moves, struct replica *replica, struct live_request *r,
                enum ifl_status status, int64_t now_ns, struct ifl_error *error)
{
    struct handover *h = handover_of(moves, r);
    if (h->n_flying == 0 || !h->computed) {
        replica_leave(replica, r, status, now_ns);
        return leave_decode(moves, h, r, error);
    }
    /* All of its K/V is on its way: it counts as gone, and both sides are free when that has come.
     */
    h->left = status;
    replica_note_gone(replica, r, status);
    const int rc = loop_report_one(moves->loop, replica, r, error);
    h->p->silent = h->d->silent = true;
    return rc;
}

void moves_report(const struct moves *moves, const struct live_request *r,
                  struct ifl_request_record *record)
{
    const struct handover *h = handover_of(moves, r);
    ifl_assert(!r->silent);
    record->has_two_replicas = true;
    record->prefill_replica = (int32_t)h->from;
    record->prefilled_ns = h->prefilled_ns;
    record->move_start_ns = h->begun_ns;
    record->move_end_ns = h->loaded_ns;
    record->moving_ns = h->busy_ns;
    record->moving_hidden_ns = h->hidden_ns;
    record->resumed_ns = r == h->d ? r->rare->resumed_ns : IFL_NEVER;
    if (r == h->d) {
        if (r->answered_elsewhere && h->computed)
            record->output_tokens = ifl_max(record->output_tokens, 1);
        record->preemptions += h->n_preempted;
        record->swap_outs += h->n_swap_outs;
    }
}

int moves_forget(struct moves *moves, const struct replica *replica, const struct live_request *r,
                 struct ifl_error *error)
{
    const uint32_t slot = r->handover;
    struct handover *h = &moves->of[slot];
    (void)replica;
    if (!r->silent && drop_other(moves, h, r, error) < 0)
        return error->code;
    h = &moves->of[slot];
    if (h->p == r) {
        h->p = NULL;
        if (h->d)
            h->d->prompt_at = NULL;
    }
    if (h->d == r)
        h->d = NULL;
    give_back(moves, slot);
    return 0;
}
