/* Taking requests off the device, by recompute or to host memory, and off all lists for good. */
#include "replica/step_builder.h"

#include "replica/step_limits.h"
#include "replica/step_lists.h"

void step_remove_swapped(struct replica *replica, struct live_request *r)
{
    ifl_assert(r->pub.state == IFL_SWAPPED);
    here_remove_swapped(&replica->here, r);
    replica_note_rank(replica, RANKED_SWAPPED, r);
}

void step_leave_host(struct replica *replica, struct live_request *r)
{
    step_remove_swapped(replica, r);
    kv_release(&replica->kv.host, r->pub.n_host_blocks, r->blocks);
    r->pub.n_host_blocks = 0;
}

/* ---- preemption ---- */

/* True if this plan has started r: preempting r takes the start back. */
static bool starts_now(const struct replica *replica, const struct live_request *r)
{
    return r->pub.start_serial >= replica->plan.first_start;
}

static void leave_running(struct replica *replica, struct live_request *r)
{
    here_stop(&replica->here, r);
    replica_note_rank(replica, RANKED_RUNNING, r);
    replica_stir_keys(replica);
    plan_count_preempted(&replica->plan, r);
    r->pub.n_preempted++;
    if (starts_now(replica, r) && r->first_scheduled_ns == replica->view.now_ns)
        r->first_scheduled_ns = IFL_NEVER; /* the start is taken back: it has not been scheduled */
    /* One that has come back and computed nothing since is stalled all the while. */
    if (r->first_scheduled_ns != IFL_NEVER && r->stalled_since_ns == IFL_NEVER)
        r->stalled_since_ns = ifl_max(replica->view.now_ns, r->first_scheduled_ns);
}

/* Comes after the request's change of state and before its rank is asked for. */
static void tell_preempt(struct replica *replica, const struct live_request *r)
{
    const bool undone = starts_now(replica, r);
    FOR_EACH_LISTENER (module, &replica->on, undone ? &replica->on.undo : &replica->on.preempt) {
        const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
        (undone ? module->policy->on_undo : module->policy->on_preempt)(module->self,
                                                                        &replica->view, &r->pub);
        plan_return(&replica->plan, before);
        replica_stir_keys_of(replica, module);
    }
}

static void send_to_host_apart(struct replica *replica, struct live_request *r)
{
    plan_count_leaving(&replica->plan);
    r->stalled_on_host = true;
    live_own(r)->n_swap_outs++;
    tell_preempt(replica, r);
}

static void send_to_host(struct replica *replica, struct live_request *r)
{
    const int32_t n = r->pub.stale.n_blocks;
    const bool numbered = !replica->kv.device.tallied;
    if (numbered)
        plan_swap_out_from(&replica->plan, r, n);
    replica_drop_blocks(replica, r, false);
    kv_take(&replica->kv.host, n, r->blocks);
    plan_swap_out_to(&replica->plan, r, n, numbered);
    r->pub.n_host_blocks = n;
    r->pub.state = IFL_SWAPPED;
    r->stalled_on_host = true;
    live_own(r)->n_swap_outs++;
    tell_preempt(replica, r);
    here_add_swapped(&replica->here, r);
    replica_note_rank(replica, RANKED_SWAPPED, r);
    plan_count_swapped_out(&replica->plan);
}

/* Makes queued_serial of a request that goes to the back larger than any serial. Of several in one
 * plan the first to be preempted stands first. */
static const uint64_t BEHIND_ALL = UINT64_C(1) << 63;

static void forget_computed(struct replica *replica, struct live_request *r)
{
    replica_drop_blocks(replica, r, false);
    r->parted = false;
    if (IFL_RARE(r->rare->beams.n_seqs > 0))
        kv_beams_end(&live_own(r)->beams);
    r->pub.stale.n_computed = 0;
    r->pub.stale.n_pending = 0;
    r->pub.n_prefill = 0;
    replica_keep_nothing(r);
}

static void send_to_waiting(struct replica *replica, struct live_request *r, enum ifl_place place)
{
    forget_computed(replica, r);
    r->pub.state = IFL_WAITING;
    r->pub.queued_ns = replica->view.now_ns;
    r->stalled_on_host = false;
    tell_preempt(replica, r);
    plan_count_waiting(&replica->plan);
    r->pub.queued_serial =
        place == IFL_BACK ? BEHIND_ALL + here_next_back(&replica->here) : r->pub.serial;
    if (place == IFL_FRONT)
        waiting_push_front(&replica->here.waiting, r);
    else
        waiting_push(&replica->here.waiting, r, replica_rank(replica, r),
                     ifl_queued_since_ns(&r->pub));
}

/* The run fails, if serving.kv.swap_full asks for that; vLLM v0 aborts, too. */
static enum ifl_verdict swap_is_full(struct replica *replica, const struct ifl_request *victim)
{
    struct ifl_error error;
    ifl_fail(&error, IFL_E_POLICY,
             "the swap pool is full in step %llu at %.9f s: batching %s with preempt %s swaps out "
             "%d blocks, %d are free (serving.kv.swap_gib; swap_full: recompute falls back "
             "instead)",
             (unsigned long long)replica->view.step, ifl_s_from_ns(replica->view.now_ns),
             replica->fixed.modules[IFL_BATCHING].policy->name,
             replica->fixed.modules[IFL_PREEMPT].policy->name, victim->stale.n_blocks,
             replica->kv.host.n_free);
    plan_break(&replica->plan, &error);
    return IFL_NO_HOST_BLOCKS;
}

/* A plan made ahead of the end of a step does not know the token that this step computes. A block
 * that the token fills has no hash yet, and gets none (vLLM, async_scheduler.py), unless the plan
 * has scheduled the request before. */
static void forget_token_in_flight(struct replica *replica, struct live_request *r)
{
    if (r->pub.n_seqs > 1 || r->pub.stale.n_computed <= r->pub.n_prefill ||
        r->last_token_ns != replica->view.now_ns)
        return;
    r->pub.stale.n_computed--;
    accounts_add_tokens(&replica->kv, -1);
}

/* r has had its last token: it leaves instead of waiting again. */
static void leave_for_good(struct replica *replica, struct live_request *r)
{
    replica_drop_blocks(replica, r, true);
    r->pub.state = IFL_DONE;
}

static bool swapped_in_now(const struct replica *replica, const struct live_request *r)
{
    return starts_now(replica, r) && r->swapped_in;
}

/* True if a request started in this plan on K/V that the plan has r compute. */
static bool others_stand_on(const struct replica *replica, const struct live_request *r)
{
    size_t i = 0;
    while (i < replica->plan.started.n &&
           !replica_stands_on(replica, live(replica->plan.started.of[i]), r))
        i++;
    return i < replica->plan.started.n;
}

/* What the contract says against preempting r; NULL: nothing. */
static const char *may_not_preempt(const struct replica *replica, const struct live_request *r)
{
    if (r->pub.state != IFL_RUNNING)
        return "it preempted a request that is not on the device";
    if (swapped_in_now(replica, r))
        return "it preempted a request that it swapped in in the same plan";
    if (others_stand_on(replica, r))
        return "it preempted a request on whose tokens of this plan it started another";
    return NULL;
}

static void check_victim(struct replica *replica, const struct ifl_policy *by,
                         const struct ifl_victim *victim)
{
    if (IFL_RARE((unsigned)victim->fate > IFL_KEEP))
        step_breach_answer(replica, by, (int)victim->fate,
                           "to what becomes of a victim, expected one of enum ifl_fate");
    if (IFL_RARE((unsigned)victim->place > IFL_BACK))
        step_breach_answer(replica, by, (int)victim->place,
                           "to where a victim waits, expected one of enum ifl_place");
}

/* The module `by` has named the victim. */
static enum ifl_verdict preempt(struct replica *replica, const struct ifl_policy *by,
                                const struct ifl_victim *victim)
{
    struct live_request *r = live(victim->request);
    enum ifl_fate fate = victim->fate;
    const char *wrong = replica->plan.broken ? NULL : may_not_preempt(replica, r);
    if (wrong)
        step_breach_by(replica, by, wrong);
    check_victim(replica, by, victim);
    if (replica->plan.broken || fate == IFL_KEEP)
        return IFL_WAIT;
    if (r->pub.n_in_flight > 0 &&
        fate == IFL_SWAP) /* a step has yet to write what is to be copied */
        return IFL_WAIT;
    replica_settle_keys(replica);
    step_sync(replica, r);
    if (fate == IFL_SWAP && r->pub.stale.n_blocks > replica->kv.host.n_free) {
        if (replica->fixed.swap_full == SWAP_FULL_FAIL)
            return swap_is_full(replica, victim->request);
        fate = IFL_RECOMPUTE;
    }
    step_show(replica, r);
    if (IFL_RARE(starts_now(replica, r)))
        plan_note_undone(&replica->plan, by);
    const bool forgets = replica->plan.plans_ahead && replica->view.n_tries == 0 &&
                         r->pub.stale.n_now == 0 && fate == IFL_RECOMPUTE;
    step_undo_schedule(replica, r);
    leave_running(replica, r);
    if (forgets)
        forget_token_in_flight(replica, r);
    if (r->ended)
        leave_for_good(replica, r);
    else if (fate == IFL_SWAP && r->pub.stale.n_computed > 0 && !replica->fixed.swaps_apart)
        send_to_host(replica, r);
    else if (fate == IFL_SWAP && r->pub.stale.n_computed > 0 && r->left == IFL_FINISHED &&
             replica_swap_out(replica, r)) /* one that leaves would be gone before it has come */
        send_to_host_apart(replica, r);
    else
        send_to_waiting(replica, r, victim->place);
    step_count_blocks(replica);
    return IFL_YES;
}

enum ifl_verdict step_preempt(struct ifl_step *step, const struct ifl_request *request,
                              enum ifl_fate fate, enum ifl_place place)
{
    struct replica *replica = replica_of(step);
    if (!step_may_swap(replica) || !step_knows(replica, request))
        return IFL_WAIT;
    return preempt(replica, step_actor(replica), &(struct ifl_victim){request, fate, place});
}

/* It has come back and not computed since, or would go as another one comes: it would change places
 * with others for ever. */
static bool would_go_in_vain(const struct replica *replica, const struct live_request *victim,
                             const struct ifl_request *needy)
{
    return victim->stalled_since_ns != IFL_NEVER ||
           (&victim->pub == needy && moving_swaps(&replica->moving));
}

/* Such a request runs, and stands in the lists that preempt modules are shown: that it may not give
 * way in this plan is said to the batching module, as that none does. */
static bool is_spared(const struct replica *replica, const struct live_request *r)
{
    return !replica->plan.broken && r->pub.state == IFL_RUNNING && may_not_preempt(replica, r);
}

/* The preempt module names a victim, which gives way. False: it was `needy`, or none. */
static bool take_victim(struct replica *replica, const struct ifl_request *needy)
{
    const struct module *module = &replica->fixed.modules[IFL_PREEMPT];
    plan_ask(&replica->plan, IFL_PREEMPT);
    const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
    plan_set_answering(&replica->plan, true);
    const uint64_t print = replica_print(replica, &needy, 1);
    const struct ifl_victim victim =
        module->policy->ops.preempt->pick(module->self, &replica->view, &replica->plan.step, needy);
    replica_compare(replica, module, print, &needy, 1);
    plan_set_answering(&replica->plan, false);
    plan_return(&replica->plan, before);
    replica_note_said(replica, module, needy->serial,
                      victim.request ? (int64_t)victim.request->serial : -1);
    if (!victim.request || victim.fate == IFL_KEEP) {
        step_note_refusal(replica, needy, module->policy,
                          "it lacks K/V blocks, and no request gives way", true);
        return false;
    }
    if (IFL_RARE(!live_is_of(&replica->here.pool, victim.request))) {
        step_breach_by(replica, module->policy, step_stranger);
        return false;
    }
    if (replica->fixed.swaps_apart && victim.fate == IFL_SWAP &&
        would_go_in_vain(replica, live(victim.request), needy)) {
        step_note_refusal(replica, needy, module->policy,
                          "others are on their way to host memory, or it has just come back", true);
        return false;
    }
    if (is_spared(replica, live(victim.request))) {
        step_note_refusal(replica, needy, module->policy,
                          "the victim came back in this plan, or another stands on its tokens",
                          false);
        return false;
    }
    return preempt(replica, module->policy, &victim) == IFL_YES && victim.request != needy;
}

bool step_make_room(struct ifl_step *step, const struct ifl_request *needy)
{
    struct replica *replica = replica_of(step);
    if (!step_may_change(replica) || !step_knows(replica, needy))
        return false;
    if (!replica->fixed.swaps_apart)
        return take_victim(replica, needy);
    if (replica_room_comes(replica, live(needy)))
        step_note_refusal(replica, needy, replica->fixed.modules[IFL_PREEMPT].policy,
                          "the blocks that it lacks are on their way to host memory", false);
    else if (take_victim(replica, needy))
        return true;
    moving_await_room(&replica->moving);
    return false;
}

/* ---- dropping a request for good ---- */

void step_refuse(struct ifl_step *step, const struct ifl_request *request, const char *why)
{
    struct replica *replica = replica_of(step);
    if (!step_may_change(replica) || !step_knows(replica, request))
        return;
    if (why)
        step_note_refusal(replica, request, step_planner(replica), why, true);
    else
        step_breach(replica, "it refused a request and gave no reason");
}

/* Takes r off its list, and gives back its blocks. */
static void take_off(struct replica *replica, struct live_request *r)
{
    plan_count_off(&replica->plan, r->pub.state);
    if (r->pub.state == IFL_WAITING) {
        waiting_leave(&replica->here.waiting, r);
    } else if (r->pub.state == IFL_SWAPPED) {
        step_leave_host(replica, r);
    } else if (r->pub.state == IFL_LOADED) {
        replica_leave_moving(replica, r);
        replica_drop_blocks(replica, r, true);
    } else {
        replica_settle_keys(replica);
        step_sync(replica, r);
        here_stop(&replica->here, r);
        replica_note_rank(replica, RANKED_RUNNING, r);
        forget_computed(replica, r);
    }
    step_count_blocks(replica);
}

static void drop(struct replica *replica, struct live_request *r, bool beside)
{
    const struct refusal *last = &replica->plan.refused[r->pub.state];
    const bool ran = live_ran(r);
    const bool told = last->r == r;
    const struct refusal_count one = {.by = told ? last->by : step_planner(replica),
                                      .why = told ? last->why : "it drops it",
                                      .n_rejected = !ran,
                                      .n_failed = ran,
                                      .n_beside = beside};
    refusals_add(&replica->refusals, &one);
    take_off(replica, r);
    r->pub.state = IFL_DONE;
    replica_stir_keys(replica);
    plan_count_rejected(&replica->plan);
    leaving_add(&replica->leaving, r);
}

void step_reject(struct ifl_step *step, const struct ifl_request *request)
{
    struct replica *replica = replica_of(step);
    if (!step_may_change(replica) || !step_knows(replica, request))
        return;
    if (request->state == IFL_WAITING || request->state == IFL_SWAPPED ||
        request->state == IFL_LOADED)
        drop(replica, live(request), false);
    else
        step_breach(replica, "it rejected a request that neither waits nor is swapped");
}

/* The request to drop first, of those that this plan refused. */
static struct live_request *refused_first(const struct replica *replica, bool at_end)
{
    static const enum ifl_state order[] = {IFL_RUNNING, IFL_SWAPPED, IFL_LOADED, IFL_WAITING};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const struct refusal *last = &replica->plan.refused[order[i]];
        if (last->r && last->r->pub.state == order[i] && (last->lasts || at_end))
            return last->r;
    }
    return NULL;
}

IFL_APART bool replica_give_up(struct replica *replica, bool at_end)
{
    ifl_assert(!replica->in_flight.busy);
    struct live_request *r = refused_first(replica, at_end);
    if (r)
        drop(replica, r, r->pub.state == IFL_WAITING && replica->here.running.n > 0);
    return r != NULL;
}
