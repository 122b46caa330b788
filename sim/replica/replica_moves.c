/* Requests with two replicas: one replica computes the prompt, the other loads its K/V and decodes.
 * Each has a record of the request (moving.h). */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"
#include "replica/step_builder.h"

/* ---- going ---- */

IFL_APART void replica_hand_over_prompts(struct replica *replica)
{
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        struct live_request *r = replica->plan.planned[i].r;
        if (!replica->plan.planned[i].samples || !r->hands_over || r->pub.state != IFL_RUNNING)
            continue; /* it may have given way while the step was in flight (in_flight.h) */
        if (r->left != IFL_FINISHED) {
            replica_leave_with_prompt(replica, r);
            continue;
        }
        here_stop(&replica->here, r);
        replica_note_rank(replica, RANKED_RUNNING, r);
        r->pub.state = IFL_MOVING;
        moving_hand_over(&replica->moving, r);
    }
    if (replica->moving.n_handed > 0) {
        replica_stir_keys(replica);
        plan_void_promise(&replica->plan);
    }
}

void replica_stir(struct replica *replica, int64_t now_ns)
{
    replica_tell_run(replica);
    view_set_now(&replica->view, now_ns);
    plan_void_promise(&replica->plan);
    wakes_end_vain(&replica->wakes);
    replica_stir_keys(replica);
}

void replica_release(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    ifl_assert(r->pub.state == IFL_MOVING);
    const int32_t n_free_before = replica->kv.device.n_free;
    replica_stir(replica, now_ns);
    moving_forget(&replica->moving, r);
    moving_end(&replica->moving, r);
    replica_drop_blocks(replica, r, true);
    view_free_blocks(&replica->view, replica->kv.device.n_free - n_free_before);
    r->pub.state = IFL_DONE;
    r->silent = true;
    leaving_add(&replica->leaving, r);
}

void replica_reserved(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    replica_stir(replica, now_ns);
    r->pub.is_reserved = true;
}

/* ---- coming ---- */

/* Blocks for what comes, and for the token behind it, so that a plan which starts the request needs
 * no further one. */
static int32_t room_for(const struct replica *replica, const struct live_request *r,
                        int32_t hold_tokens)
{
    const bool answered = r->pub.stale.n_out > 0 || r->answers_on_arrival || r->answered_elsewhere;
    const int32_t least = r->pub.n_prompt + answered;
    return replica_hold_blocks(replica, r, ifl_max(hold_tokens, least));
}

bool replica_load(struct replica *replica, struct live_request *r, int32_t hold_tokens, bool before)
{
    ifl_assert(r->pub.state == IFL_WAITING && r->n_below > 0);
    if (!replica_first_blocks(replica, r, room_for(replica, r, hold_tokens)))
        return false;
    waiting_leave(&replica->here.waiting, r);
    plan_count_off(&replica->plan, IFL_WAITING);
    r->pub.stale.n_computed = replica_cached_tokens(replica, r);
    r->pub.state = IFL_MOVING;
    moving_ask(&replica->moving, r, before);
    step_count_blocks(replica);
    replica_stir_keys(replica);
    return true;
}

void replica_go_on(struct replica *replica, struct live_request *r, const struct live_request *from)
{
    live_go_on(r, from);
    r->prompt_at = NULL;
    if (r->answered_elsewhere)
        here_answer(&replica->here, r);
}

static void answer(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    r->pub.stale.n_tokens++;
    r->pub.stale.n_out++;
    r->pub.first_token_ns = r->last_token_ns = r->pub.stale.last_end_ns = now_ns;
    r->stalled_prefill_ns = r->stalled_ns;
    here_answer(&replica->here, r);
}

static void leave_at_once(struct replica *replica, struct live_request *r)
{
    const int32_t n_free_before = replica->kv.device.n_free;
    replica_drop_blocks(replica, r, true);
    view_free_blocks(&replica->view, replica->kv.device.n_free - n_free_before);
    r->pub.state = IFL_DONE;
    leaving_add(&replica->leaving, r);
}

void replica_loaded(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    replica_stir(replica, now_ns);
    moving_end(&replica->moving, r);
    if (r->answers_on_arrival)
        answer(replica, r, now_ns);
    if (r->answered_elsewhere) {
        r->pub.stale.n_tokens++;
        r->pub.stale.n_out++;
    }
    const int32_t n_computed = r->pub.stale.n_tokens - 1; /* one is left to sample from */
    accounts_add_tokens(&replica->kv, n_computed - r->pub.stale.n_computed);
    r->pub.stale.n_computed = n_computed;
    r->n_below = 0;
    replica_publish_prompt(replica, r, n_computed);
    if (r->pub.stale.n_out == r->n_output) {
        leave_at_once(replica, r);
        return;
    }
    r->pub.state = IFL_LOADED;
    moving_load(&replica->moving, r);
    waiting_push_loaded(&replica->here.waiting, r);
}

void replica_lose(struct replica *replica, struct live_request *r, int64_t now_ns)
{
    replica_stir(replica, now_ns);
    r->n_below = 0;
    r->looked_up = 0;
    if (r->pub.state == IFL_WAITING) {
        r->pub.stale.n_computed = 0;
        return;
    }
    ifl_assert(r->pub.state == IFL_MOVING);
    const int32_t n_free_before = replica->kv.device.n_free;
    moving_forget(&replica->moving, r);
    moving_end(&replica->moving, r);
    replica_drop_blocks(replica, r, false);
    view_free_blocks(&replica->view, replica->kv.device.n_free - n_free_before);
    r->pub.stale.n_computed = 0;
    r->pub.state = IFL_WAITING;
    waiting_push_front(&replica->here.waiting, r);
}

IFL_APART bool replica_start_loaded(struct replica *replica, struct live_request *r, int32_t hold)
{
    const int32_t more = hold - r->pub.stale.n_blocks;
    if (more > 0 && replica->kv.device.contiguous)
        return false;
    moving_unload(&replica->moving, r);
    if (!replica_take_blocks(replica, r, ifl_max(more, 0))) {
        moving_load(&replica->moving, r);
        return false;
    }
    waiting_leave(&replica->here.waiting, r);
    const bool has_all = r->pub.stale.n_out > 0 && !replica->tiers.on &&
                         r->pub.stale.n_computed == r->pub.stale.n_tokens - 1;
    r->pub.n_prefill = has_all ? r->pub.stale.n_computed : r->pub.stale.n_tokens;
    if (replica->tiers.on && r->first_scheduled_ns == IFL_NEVER)
        replica_note_found(replica, r);
    r->pub.started_ns = live_own(r)->resumed_ns = replica->view.now_ns;
    plan_count_loaded_start(&replica->plan, r);
    return true;
}

/* ---- leaving early ---- */

void replica_leave_moving(struct replica *replica, struct live_request *r)
{
    if (r->pub.state == IFL_MOVING) {
        moving_forget(&replica->moving, r);
        moving_end(&replica->moving, r);
    } else {
        moving_unload(&replica->moving, r);
        waiting_leave(&replica->here.waiting, r);
    }
}
