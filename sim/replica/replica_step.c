/* The life of a planned step: it is committed into a description for the executor, and ended when
 * the executor has run it. */
#include "inflight/minmax.h"
#include "replica/replica_parts.h"
#include "replica/rotation.h"
#include "replica/step_builder.h"

/* ---- committing ---- */

/* r runs on outside of the cohort. Plans ask for the keys of all members, but for the key of a
 * request outside only after a note. With IFL_KEYS_NAMED the order names the requests with changed
 * keys, so that no note is needed. */
static void note_left_cohort(struct replica *replica, struct live_request *r)
{
    if (replica->ranks.order_keys != IFL_KEYS_NAMED)
        replica_note_rank(replica, RANKED_RUNNING, r);
}

/* Members that this step does not schedule leave the cohort. */
IFL_APART static void eject_unscheduled(struct replica *replica)
{
    for (struct live_request *r = replica->here.cohort.members.head, *next; r; r = next) {
        next = r->links[AMONG_PEERS].next;
        if (r->pub.stale.n_now > 0)
            continue;
        here_leave_cohort(&replica->here, r);
        note_left_cohort(replica, r);
    }
}

/* Splits the plan into decodes, which tick with the cohort, and prompts, which stay in `planned`.
 */
static void settle_cohort(struct replica *replica)
{
    size_t n = 0;
    plan_pad_for_ended(&replica->plan, NULL);
    if (IFL_RARE(!replica->plan.ready_all && replica->plan.n_decodes > 0) &&
        replica->plan.n_members < replica->here.cohort.n)
        eject_unscheduled(replica);
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        const struct planned *p = &replica->plan.planned[i];
        if (IFL_RARE(!p->r))
            continue;
        p->r->pub.stale.n_now = 0;
        if (IFL_RARE(p->r->ended)) {
            plan_pad_for_ended(&replica->plan, p);
        } else if (!p->decodes) {
            plan_keep(&replica->plan, n++, p);
        } else {
            if (IFL_RARE(!p->r->in_cohort))
                replica_join_cohort(replica, p->r);
            cohort_set_draft(&replica->here.cohort, p->r, p->n_draft);
        }
    }
    plan_cut(&replica->plan, n);
    const bool decodes = replica->plan.ready_all || replica->plan.n_decodes > 0;
    in_flight_set_ticks(&replica->in_flight, decodes && replica->here.cohort.n > 0);
    if (IFL_RARE(replica->plan.shown))
        FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
            r->pub.stale.n_now = 0;
    plan_note_shown(&replica->plan, false);
}

/* The same beside a step in flight: decodes stay in `planned`, too. */
IFL_APART static void settle_apart(struct replica *replica)
{
    plan_close_gaps(&replica->plan);
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        const struct planned *p = &replica->plan.planned[i];
        p->r->pub.stale.n_now = 0;
    }
    in_flight_set_ticks(&replica->in_flight, false);
}

IFL_APART static void release_swapped_in(struct replica *replica)
{
    if (replica->kv.host.tallied)
        kv_release(&replica->kv.host, (int32_t)replica->plan.n_ins, NULL);
    for (size_t i = 0; i < replica->plan.n_ins && !replica->kv.host.tallied; i++)
        kv_release(&replica->kv.host, 1, &replica->plan.ins[i].from);
}

static inline void tell_step_start(struct replica *replica)
{
    replica_retake_ranking(replica, RANKED_SWAPPED); /* hooks also see what the plan swapped out */
    FOR_EACH_LISTENER (module, &replica->on, &replica->on.step_start) {
        const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
        module->policy->on_step_start(module->self, &replica->view, &replica->plan.step);
        plan_return(&replica->plan, before);
    }
}

/* One of several steps in flight computes for r. */
IFL_APART static void take_off(struct replica *replica, struct live_request *r, bool samples)
{
    r->pub.n_in_flight++;
    if (request_decodes(&r->pub))
        r->slot = replica->view.slot;
    if (!samples)
        return;
    r->last_step = replica->in_flight.desc.step;
    r->pub.stale.n_pending = r->n_late; /* this token is not to be gone on from yet (in_flight.c) */
    r->n_late++;
}

/* The request computes n more tokens in the step that is committed. */
static void advance(struct replica *replica, size_t i)
{
    const struct planned *p = &replica->plan.planned[i];
    struct live_request *r = p->r;
    struct ifl_counts *counts = &r->pub.stale;
    counts->n_computed += p->n;
    r->n_steps++;
    if (!p->decodes)
        here_compute(&replica->here, r);
    const bool samples = counts->n_computed == counts->n_tokens + r->n_late;
    plan_note_computed(&replica->plan, i, counts->n_computed, samples);
    if (replica_overlaps(replica))
        take_off(replica, r, samples);
}

IFL_HOT bool replica_commit(struct replica *replica)
{
    ifl_assert(!replica->in_flight.busy);
    const struct plan *plan = &replica->plan;
    if (replica_overlaps(replica))
        settle_apart(replica);
    else
        settle_cohort(replica);
    if (IFL_RARE(replica->leaving.n_ended > 0))
        replica_let_ended_go(replica);
    if (IFL_RARE(plan->n_ins > 0))
        release_swapped_in(replica);
    view_try(&replica->view);
    if (!replica->in_flight.ticks && plan->n_planned == 0 && plan->n_outs + plan->n_ins == 0 &&
        !plan->pads_for_ended) {
        in_flight_keep_preempted(&replica->in_flight,
                                 plan->step.n_preempted - plan->n_ended_victims);
        if (replica_overlaps(replica))
            rotation_note_empty_plan(replica);
        return false;
    }
    in_flight_describe(replica);
    for (size_t i = 0; i < plan->n_planned; i++)
        advance(replica, i);
    accounts_add_tokens(&replica->kv, replica->in_flight.desc.totals.n_tokens -
                                          replica->in_flight.desc.totals.n_draft_tokens);
    in_flight_submit(replica);
    view_submit(&replica->view);
    if (replica->on.step_start.n > 0)
        tell_step_start(replica);
    if (replica_overlaps(replica)) {
        in_flight_push(replica);
        if (IFL_RARE(replica->said.checks))
            replica_check_push(replica);
    }
    return true;
}

IFL_APART bool replica_tries_on(struct replica *replica)
{
    const bool slots = replica->fixed.overlap.slots;
    if (slots && in_flight_may_give_up(&replica->in_flight, slots) &&
        replica_give_up(replica, false)) {
        in_flight_note_moved(&replica->in_flight);
        return true;
    }
    if (in_flight_try_next_slot(replica))
        return true;
    in_flight_wait(&replica->in_flight, replica->fixed.overlap.waits);
    return false;
}

/* vLLM v0.33, v1/engine/core.py, step_with_batch_queue: without requests, too, it waits for the
 * oldest step of the queue before it looks for arrivals. */
IFL_APART void replica_wait_for_step(struct replica *replica)
{
    in_flight_wait(&replica->in_flight, replica->fixed.overlap.waits);
}

/* ---- the end of a step ---- */

static int record_own_gap(struct live_request *r, int64_t end_ns, struct ifl_recorder *recorder,
                          struct ifl_error *error)
{
    const int64_t gap_ns = end_ns - r->last_token_ns;
    if (gap_ns > r->max_itl_ns)
        r->max_itl_ns = gap_ns;
    return ifl_record_gaps(recorder, gap_ns, 1, error);
}

IFL_HOT int replica_tick(struct replica *replica, int64_t end_ns, struct ifl_recorder *recorder,
                         struct ifl_error *error)
{
    struct cohort *cohort = &replica->here.cohort;
    struct tick_gaps shared;
    int rc = 0;
    for (size_t i = 0; i < cohort->n_fresh && rc == 0; i++)
        rc = record_own_gap(cohort->fresh[i], end_ns, recorder, error);
    if (IFL_RARE(rc < 0))
        return rc;
    if (cohort_is_ragged(cohort))
        replica_emit(replica);
    accounts_add_tokens(&replica->kv, -cohort->n_full_seqs);
    if (cohort_tick(cohort, end_ns, &shared) < 0)
        return ifl_fail_nomem(error);
    return shared.count ? ifl_record_gaps(recorder, shared.gap_ns, (int64_t)shared.count, error)
                        : 0;
}

/* Time preempted until now. A request is preempted as well while a token of it comes late. */
static int64_t stalled_until(const struct live_request *r, int64_t now_ns)
{
    return r->stalled_ns + (r->stalled_since_ns == IFL_NEVER ? 0 : now_ns - r->stalled_since_ns);
}

/* Counts the token that a completed prompt yields. True if it is the request's last one; else the
 * request decodes from now on (join_decoding). */
IFL_HOT static bool first_of_prefill(struct replica *replica, struct live_request *r,
                                     int64_t end_ns, struct ifl_recorder *recorder,
                                     struct ifl_error *error, int *rc)
{
    r->pub.stale.n_tokens++;
    r->pub.stale.n_out++;
    if (!IFL_RARE(r->pub.first_token_ns != IFL_NEVER)) {
        r->pub.first_token_ns = end_ns;
        here_answer(&replica->here, r);
        r->stalled_prefill_ns = stalled_until(r, end_ns);
    } else {
        *rc = record_own_gap(r, end_ns, recorder, error);
    }
    r->last_token_ns = end_ns;
    if (r->pub.stale.n_out == r->n_output)
        return true;
    if (IFL_RARE(r->pub.forks) && *rc == 0) {
        if (replica_beams_begin(replica, r) < 0)
            *rc = ifl_fail_nomem(error);
        else
            replica_beams_fork(replica, r);
    }
    return false;
}

static int end_prompts(struct replica *replica, int64_t end_ns, struct ifl_recorder *recorder,
                       struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < replica->plan.n_planned && rc == 0; i++) {
        struct live_request *r = replica->plan.planned[i].r;
        const bool samples = replica->plan.planned[i].samples;
        r->pub.stale.last_end_ns = end_ns;
        replica_note_rank(replica, RANKED_RUNNING, r);
        replica_publish_prompt(replica, r, r->pub.stale.n_computed);
        if (IFL_RARE(replica->tiers.on))
            replica_offer_prompt(replica, r, r->pub.stale.n_computed);
        if (samples)
            in_flight_note_token(&replica->in_flight);
        if (IFL_RARE(!samples || r->hands_over == HANDS_PROMPT))
            continue;
        if (IFL_RARE(first_of_prefill(replica, r, end_ns, recorder, error, &rc)))
            leaving_add(&replica->leaving, r);
        else if (IFL_RARE(replica->fixed.gives_up))
            replica_keep_prompt(replica, r);
    }
    return rc;
}

/* ---- the end of one of several steps in flight ---- */

/* The step is no longer in flight for r: the token that it samples, if any, is known. */
static void count_landed(struct replica *replica, struct live_request *r, bool samples)
{
    const struct overlap *overlap = &replica->fixed.overlap;
    r->pub.n_in_flight--;
    r->n_late -= samples;
    const bool ripe = overlap->request == OVERLAP_TOKENS &&
                      r->last_step + (uint64_t)overlap->n_stages <= ifl_next_step(&replica->view);
    r->pub.stale.n_pending = r->n_late > 0 && !ripe ? r->n_late - 1 : r->n_late;
}

/* Requests that the step has computed for and that wait again may rank elsewhere now. */
IFL_APART static void rank_late(struct replica *replica)
{
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        const struct live_request *r = replica->plan.planned[i].r;
        if (r->pub.state == IFL_WAITING)
            replica->view.rerank(&replica->view, &r->pub);
    }
}

/* As end_prompts, of decodes and prompts. A request that has given way since waits again; its token
 * comes late. A prompt that would have been handed over has lost its K/V: it is computed again, and
 * its token is that of the step that does so. */
IFL_APART static int end_flown(struct replica *replica, int64_t end_ns,
                               struct ifl_recorder *recorder, struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < replica->plan.n_planned && rc == 0; i++) {
        const struct planned *p = &replica->plan.planned[i];
        struct live_request *r = p->r;
        const bool runs = r->pub.state == IFL_RUNNING;
        count_landed(replica, r, p->samples);
        r->pub.stale.last_end_ns = end_ns;
        if (runs && !p->decodes)
            replica_publish_prompt(replica, r, p->n_computed);
        if (p->samples)
            in_flight_note_token(&replica->in_flight);
        if (!p->samples || r->hands_over == HANDS_PROMPT || (r->hands_over && !runs))
            continue;
        r->looked_up = 0; /* with one token more its hit may be longer */
        if (r->pub.state == IFL_WAITING)
            waiting_add_token(&replica->here.waiting, r);
        if (first_of_prefill(replica, r, end_ns, recorder, error, &rc))
            leaving_add(&replica->leaving, r);
    }
    return rc;
}

/* Requests with a prompt that this step has completed join the cohort. */
static void join_decoding(struct replica *replica)
{
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        struct live_request *r = replica->plan.planned[i].r;
        if (replica->plan.planned[i].samples && !r->hands_over && r->pub.stale.n_out < r->n_output)
            replica_join_cohort(replica, r);
    }
}

static void end_decodes(struct replica *replica)
{
    struct live_request *r;
    while ((r = cohort_finished(&replica->here.cohort))) {
        here_leave_cohort(&replica->here, r);
        leaving_add(&replica->leaving, r);
    }
    leaving_by_tick(&replica->leaving, true);
}

/* ---- calls of on_step_end ---- */

/* A module has kept the pointer that its hook was given. */
static struct ifl_results results_too_late(const struct ifl_step_end *end)
{
    const struct told_end *told = (const struct told_end *)(const void *)end;
    step_breach(told->replica, "it calls ifl_results when on_step_end has returned");
    return (struct ifl_results){0};
}

static struct ifl_results results_of(const struct ifl_step_end *end)
{
    struct told_end *told = (struct told_end *)(uintptr_t)end;
    if (!told->listed)
        ifl_require(in_flight_list_results(told->replica, end->n_steps) == end->n_requests);
    told->listed = true;
    return (struct ifl_results){told->replica->in_flight.results, end->n_requests};
}

/* Tells the modules of n_steps steps with the same requests. The last of them has just ended. */
IFL_APART static void tell_modules(struct replica *replica, uint64_t last_step, int32_t n_steps,
                                   int64_t start_ns, size_t n_requests, int32_t n_preempted)
{
    struct told_end *end = in_flight_told(&replica->in_flight);
    *end = (struct told_end){.replica = replica,
                             .pub = {
                                 .step = last_step,
                                 .n_steps = n_steps,
                                 .start_ns = start_ns,
                                 .end_ns = replica->in_flight.last_end_ns,
                                 .ends_ns = replica->in_flight.ends_ns,
                                 .n_requests = n_requests,
                                 .n_preempted = n_preempted,
                                 .results = results_of,
                             }};
    FOR_EACH_LISTENER (module, &replica->on, &replica->on.step_end) {
        const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
        module->policy->on_step_end(module->self, &replica->view, &end->pub);
        plan_return(&replica->plan, before);
    }
    in_flight_end_told(&replica->in_flight, results_too_late);
}

IFL_APART void replica_tell_steps(struct replica *replica)
{
    leaving_by_tick(&replica->leaving, false);
    tell_modules(replica, replica->view.step - 1, replica->in_flight.n_untold,
                 replica->in_flight.untold_start_ns, replica->here.cohort.n, 0);
}

static void let_go(struct replica *replica)
{
    const int32_t n_free_before = replica->kv.device.n_free;
    for (size_t i = 0; i < replica->leaving.n_gone; i++) {
        struct live_request *r = replica->leaving.gone[i];
        r->ended = replica->plan.plans_ahead && !r->hands_over; /* a plan knows where prompts go */
        if (IFL_RARE(r->ended)) {
            leaving_keep_ended(&replica->leaving, r);
            note_left_cohort(replica, r);
            continue;
        }
        if (IFL_RARE(r->pub.n_in_flight > 0))
            in_flight_drop(replica, r);
        if (IFL_RARE(r->pub.state == IFL_WAITING)) { /* its last token came late */
            r->stalled_ns = stalled_until(r, replica->view.now_ns);
            waiting_leave(&replica->here.waiting, r);
        } else {
            here_stop(&replica->here, r);
            replica_drop_blocks(replica, r, true);
        }
        r->pub.state = IFL_DONE;
    }
    view_free_blocks(&replica->view, replica->kv.device.n_free - n_free_before);
}

/* Each output token is produced once, so a run ends if its barren steps are bounded. */
static int check_progress(const struct replica *replica, struct ifl_error *error)
{
    if (!IFL_RARE(replica->in_flight.n_barren_steps > 0))
        return 0;
    const int64_t n_blocks =
        (int64_t)replica->fixed.limits.n_blocks + replica->fixed.limits.n_host_blocks;
    const int64_t all_tokens = n_blocks * replica->fixed.limits.block_tokens;
    if (replica->in_flight.n_barren_steps <= 2 * all_tokens + 1000)
        return 0;
    return ifl_fail(
        error, IFL_E_STALLED,
        "batching policy %s has run %lld steps without a token: its prompts preempt one "
        "another (preempt %s) and start over, for ever; %zu are running, %zu waiting, "
        "%zu swapped out",
        replica->fixed.modules[IFL_BATCHING].policy->name,
        (long long)replica->in_flight.n_barren_steps,
        replica->fixed.modules[IFL_PREEMPT].policy->name, replica->here.running.n,
        replica->here.waiting.n, replica->here.n_swapped);
}

bool replica_preempted_since(struct replica *replica, struct ifl_step_record *record)
{
    *record = (struct ifl_step_record){
        .step = replica->view.step,
        .replica = replica->in_flight.record.replica,
        .start_ns = replica->in_flight.last_end_ns,
        .preempted = in_flight_take_preempted(&replica->in_flight),
        .kv_total_blocks = replica->in_flight.record.kv_total_blocks,
        .kv_pool_slots = replica->in_flight.record.kv_pool_slots,
    };
    return record->preempted > 0;
}

/* A request may have given way before its step began: from then on it is stalled. */
static void stamp_start(struct live_request *r, int64_t start_ns)
{
    r->first_scheduled_ns = start_ns;
    if (r->stalled_since_ns != IFL_NEVER)
        r->stalled_since_ns = ifl_max(r->stalled_since_ns, start_ns);
}

/* An engine starts a step a little after it was planned, and so do recorded steps. */
IFL_APART static void stamp_starts(const struct planned *planned, size_t n, int64_t planned_ns,
                                   int64_t start_ns)
{
    for (size_t i = 0; i < n; i++) {
        const struct planned *p = &planned[i];
        if (p->r && p->r->first_scheduled_ns == planned_ns &&
            p->n_computed - p->n <= p->r->cached_tokens)
            stamp_start(p->r, start_ns);
    }
}

/* The same of those that go on, in this step, with what they have loaded. */
IFL_APART static void stamp_resumed(const struct planned *planned, size_t n, int64_t planned_ns,
                                    int64_t start_ns)
{
    for (size_t i = 0; i < n; i++)
        if (planned[i].r && planned[i].r->rare->resumed_ns == planned_ns)
            live_own(planned[i].r)->resumed_ns = start_ns;
}

IFL_APART void replica_note_begin(struct replica *replica, int64_t start_ns)
{
    struct in_flight *in_flight = &replica->in_flight;
    const struct flown *last = in_flight_at(in_flight, in_flight->n_flown - 1);
    if (last->desc.start_ns == start_ns)
        return;
    if (last->desc.totals.n_prefill_tokens > 0)
        stamp_starts(last->planned, last->n_planned, last->desc.start_ns, start_ns);
    if (replica->moving.on)
        stamp_resumed(last->planned, last->n_planned, last->desc.start_ns, start_ns);
}

IFL_HOT int replica_end(struct replica *replica, const struct ifl_done *done,
                        struct ifl_recorder *recorder, struct ifl_error *error)
{
    if (replica_overlaps(replica)) {
        if (IFL_RARE(replica->said.checks))
            replica_check_pull(replica, done->end_ns);
        in_flight_pull(replica);
    }
    ifl_assert(replica->in_flight.busy && done->step == replica->in_flight.desc.step);
    const int64_t end_ns = done->end_ns;
    int rc = 0;
    const bool overlaps = replica_overlaps(replica);
    const int32_t n_steps = in_flight_end(&replica->in_flight, done);
    view_end(&replica->view, 1, end_ns);
    if (IFL_RARE(done->start_ns != replica->in_flight.desc.start_ns))
        stamp_starts(replica->plan.planned, replica->plan.n_planned,
                     replica->in_flight.desc.start_ns, done->start_ns);
    if (IFL_RARE(replica->leaving.n_early > 0))
        replica_detach_early(replica);
    const size_t n_requests =
        (replica->in_flight.ticks ? replica->here.cohort.n : 0) + replica->plan.n_planned;
    if (replica->in_flight.desc.totals.n_prefill_tokens > 0) {
        view_end_prefill(&replica->view, end_ns - done->start_ns);
        if (overlaps) /* its requests decode from now on */
            plan_void_promise(&replica->plan);
    }
    leaving_by_tick(&replica->leaving, false);
    if (replica->in_flight.ticks) {
        in_flight_note_token(&replica->in_flight);
        in_flight_hear_accepted(&replica->in_flight, done->n_accepted);
        rc = replica_tick(replica, end_ns, recorder, error);
        end_decodes(replica);
        if (IFL_RARE(replica->fixed.beams.search))
            replica_fork_beams(replica);
    }
    if (rc == 0)
        rc = IFL_RARE(overlaps) ? end_flown(replica, end_ns, recorder, error)
                                : end_prompts(replica, end_ns, recorder, error);
    if (rc == 0)
        rc = check_progress(replica, error);
    if (rc == 0)
        rc = ifl_record_step(recorder, &replica->in_flight.record, error);
    if (IFL_RARE(replica->on.step_end.n > 0))
        tell_modules(replica, replica->in_flight.desc.step, n_steps,
                     n_steps > 1 ? replica->in_flight.untold_start_ns : done->start_ns, n_requests,
                     replica->in_flight.record.preempted);
    if (IFL_RARE(overlaps))
        rank_late(replica);
    else
        join_decoding(replica);
    if (IFL_RARE(replica->moving.on))
        replica_hand_over_prompts(replica);
    let_go(replica);
    if (IFL_RARE(replica->leaving.n_early > 0) && leaving_end_step(&replica->leaving) > 0)
        plan_void_promise(&replica->plan);
    if (replica->leaving.n_gone > 0 && !replica_promise_ended(replica))
        plan_void_promise(&replica->plan);
    return rc;
}
