/* The step that a policy builds: the functions behind `struct ifl_step_ops`.
 *
 * Everything here happens within one plan. A refusal leaves no trace; a breach of the contract is
 * noted once, after which every call refuses until the plan returns and the run ends. */
#include <math.h>

#include "inflight/random.h"

#include "replica_parts.h"
#include "step_limits.h"
#include "step_lists.h"

static void breach(struct replica *replica, const char *what)
{
    if (replica->broken)
        return;
    replica->broken = true;
    ifl_fail(&replica->error, IFL_E_POLICY,
             "policy %s broke its contract in step %llu at %.9f s: %s",
             replica->modules[IFL_BATCHING].policy->name, (unsigned long long)replica->view.step,
             ifl_s_from_ns(replica->view.now_ns), what);
}

/* ---- looking ---- */

static int32_t op_need(struct ifl_step *step, const struct ifl_request *r, int32_t hold_tokens)
{
    step_sync(replica_of(step), live(r));
    replica_look_up(replica_of(step), live(r));
    return replica_need(replica_of(step), live(r), hold_tokens);
}

static uint64_t op_draw(struct ifl_step *step, const struct ifl_request *r, uint32_t index)
{
    return ifl_draw(replica_of(step)->seed, IFL_DRAW_POLICY, r->serial, index);
}

/* ---- scheduling ---- */

static void count_blocks(struct replica *replica)
{
    replica->step.n_free_blocks = replica->kv.n_free;
    replica->step.n_free_host_blocks = replica->host.n_free;
}

/* Tokens that all sequences of a group compute, those of the prompt once. */
static int32_t part_and_count(struct replica *replica, struct live_request *r, int32_t n)
{
    const int32_t block_tokens = replica->limits.block_tokens;
    const bool decodes = ifl_decodes(&r->pub), were_parted = r->parted;
    if (r->pub.n_seqs == 1)
        return n;
    if (r->beams.n_seqs > 0) {
        replica_beams_step(replica, r);
        return n * r->pub.n_seqs;
    }
    if (!r->parted && r->pub.n_computed + n > r->pub.n_prompt)
        replica_part(replica, r);
    return (int32_t)(group_slots(&r->pub, r->pub.n_computed + n, r->parted, block_tokens) -
                     group_slots(&r->pub, r->pub.n_computed, were_parted || decodes, block_tokens));
}

static void list_in_plan(struct replica *replica, struct planned one)
{
    replica->planned[replica->n_planned++] = one;
    replica->n_decodes += one.decodes;
    replica->n_members += one.r->in_cohort;
    one.r->pub.n_now = one.n;
    replica->step.n_tokens += one.n_tokens;
    replica->step.n_requests++;
}

static void put_in_plan(struct replica *replica, struct live_request *r, int32_t n)
{
    struct ifl_step *step = &replica->step;
    const bool decodes = ifl_decodes(&r->pub);
    const int32_t n_tokens = part_and_count(replica, r, n);
    list_in_plan(replica, (struct planned){r, n, n_tokens, decodes});
    if (!decodes) {
        step->n_prefill_tokens += n_tokens;
        step->n_prefill_requests++;
    }
    replica_publish_plan(replica, r, r->pub.n_computed + n);
    if (r->first_scheduled_ns == IFL_NEVER)
        r->first_scheduled_ns = replica->view.now_ns;
    if (r->stalled_since_ns != IFL_NEVER) {
        r->stalled_ns += replica->view.now_ns - r->stalled_since_ns;
        r->stall_began_ns = r->stalled_since_ns;
        r->stall_ended_ns = replica->view.now_ns;
        r->stalled_since_ns = IFL_NEVER;
    }
}

/* Who is on the device, decodes, and has blocks for one more token, of which no cache hears: most
 * of those whom a plan lists one by one. */
static bool goes_on(const struct replica *replica, const struct live_request *r, int32_t n,
                    int32_t hold_tokens)
{
    const struct ifl_request *pub = &r->pub;
    if (replica->ready_all || replica->kv.cached || n != 1 || hold_tokens > 0 || pub->n_seqs > 1)
        return false;
    if (r->in_cohort)
        return pub->n_now == 0 && r->grow_phase != replica->cohort.phase;
    return pub->state == IFL_RUNNING && ifl_decodes(pub) && ifl_todo(pub) == 1 &&
           pub->n_computed < pub->n_blocks * replica->limits.block_tokens &&
           r->stalled_since_ns == IFL_NEVER;
}

static enum ifl_verdict op_schedule(struct ifl_step *step, const struct ifl_request *request,
                                    int32_t n, int32_t hold_tokens)
{
    struct replica *replica = replica_of(step);
    struct live_request *r = live(request);
    if (replica->broken)
        return IFL_NO_BLOCKS;
    if (goes_on(replica, r, n, hold_tokens)) {
        list_in_plan(replica, (struct planned){r, 1, 1, true});
        return IFL_YES;
    }
    step_show(replica, r);
    if (request->state != IFL_RUNNING)
        breach(replica, "it scheduled a request that is not on the device");
    else if (request->n_now != 0)
        breach(replica, "it scheduled a request twice");
    else if (n <= 0 || n > ifl_todo(request))
        breach(replica, "it scheduled no token, or more than the request has left");
    else if (!step_has_room(replica))
        breach(replica, step_no_room);
    if (replica->broken)
        return IFL_NO_BLOCKS;
    const int32_t computed = request->n_computed + n;
    const int32_t need = replica_need(replica, r, hold_tokens > computed ? hold_tokens : computed);
    if (!replica_take_blocks(replica, r, need))
        return IFL_NO_BLOCKS;
    if (hold_tokens > computed && request->n_blocks > r->n_promised)
        r->n_promised = request->n_blocks;
    count_blocks(replica);
    put_in_plan(replica, r, n);
    return IFL_YES;
}

/* Running requests that decode but fell out of step join the cohort again. */
static void gather_cohort(struct replica *replica)
{
    for (struct live_request *r = replica->apart.head, *next; r; r = next) {
        const bool ready = ifl_decodes(&r->pub) && ifl_todo(&r->pub) == 1 && r->pub.n_now == 0 &&
                           r->pub.state == IFL_RUNNING;
        next = r->links[AMONG_PEERS].next;
        if (!ready)
            continue;
        live_remove(&replica->apart, AMONG_PEERS, r);
        replica_add_to_cohort(replica, r);
    }
}

static void part_fresh(struct replica *replica)
{
    for (size_t i = 0; i < replica->cohort.n_fresh; i++) {
        struct live_request *r = replica->cohort.fresh[i];
        if (r->pub.n_seqs > 1 && !r->parted)
            replica_part(replica, r);
    }
    replica_step_beams(replica);
}

bool replica_take_tick(struct replica *replica, int32_t spare_blocks)
{
    struct ifl_step *step = &replica->step;
    const int32_t n_new = replica_growing_blocks(replica);
    if (!replica_tick_fits(replica, n_new, spare_blocks))
        return false;
    if (n_new > 0)
        replica_grow(replica);
    if (replica->max_samples > 1)
        part_fresh(replica);
    count_blocks(replica);
    step->n_tokens += replica->cohort.n_seqs;
    step->n_requests += (int32_t)replica->cohort.n;
    replica->ready_all = true;
    return true;
}

/* The rest of a cohort of which some members are scheduled already: one by one. */
static bool schedule_rest(struct replica *replica, int32_t spare_blocks)
{
    if (!replica_tick_fits(replica, replica_growing_blocks(replica), spare_blocks))
        return false;
    FOR_EACH_LIVE (r, &replica->cohort.members, AMONG_PEERS)
        if (r->pub.n_now == 0)
            op_schedule(&replica->step, &r->pub, 1, 0);
    return true;
}

static bool op_schedule_ready(struct ifl_step *step, int32_t spare_blocks)
{
    struct replica *replica = replica_of(step);
    if (replica->broken || replica->ready_all)
        return false;
    if (replica->apart.n > 0)
        gather_cohort(replica);
    if (replica->cohort.n == 0)
        return true;
    if (replica->n_members > 0)
        return schedule_rest(replica, spare_blocks);
    if (!replica_take_tick(replica, spare_blocks))
        return false;
    if (replica->by_start.taken || replica->by_rank[RANKED_RUNNING].taken)
        step_show_members(replica);
    return true;
}

/* ---- joining the device ---- */

static void add_swapped(struct replica *replica, struct live_request *r)
{
    r->swapped_at = replica->n_swapped;
    replica->swapped[replica->n_swapped++] = r;
    replica->step.n_swapped++;
    replica_note_rank(replica, RANKED_SWAPPED, r);
}

static void remove_swapped(struct replica *replica, struct live_request *r)
{
    struct live_request *last = replica->swapped[--replica->n_swapped];
    replica->swapped[r->swapped_at] = last;
    last->swapped_at = r->swapped_at;
    replica->step.n_swapped--;
    replica_note_rank(replica, RANKED_SWAPPED, r);
}

/* Host blocks are swapped in to fresh device blocks; the request holds `hold` blocks after. The
 * host blocks stay taken until the plan is done: swap-outs of the same step run before they are
 * read. */
static bool bring_back(struct replica *replica, struct live_request *r, int32_t hold)
{
    const int32_t n_host = r->pub.n_host_blocks;
    const int32_t n = hold > n_host ? hold : n_host;
    if (!kv_fits(&replica->kv, n) || (!replica->kv.tallied && live_reserve_blocks(r, n) < 0))
        return false;
    for (int32_t i = 0; i < n_host && !replica->kv.tallied; i++)
        replica->ins[replica->n_ins + (size_t)i].from = live_block(r, i);
    r->pub.n_host_blocks = 0;
    replica_take_blocks(replica, r, n);
    for (int32_t i = 0; i < n_host && !replica->kv.tallied; i++)
        replica->ins[replica->n_ins + (size_t)i].to = live_block(r, i);
    replica->n_ins += (size_t)n_host;
    replica->kv_token_slots += replica_slots(replica, r);
    replica->n_group_saved += replica_saved_blocks(replica, r);
    r->swapped_in = true;
    r->n_published = 0;
    r->identity = 0;
    remove_swapped(replica, r);
    replica->step.n_swapped_in++;
    return true;
}

static bool leave_queue(struct replica *replica, struct live_request *r, int32_t hold)
{
    if (!replica_first_blocks(replica, r, hold))
        return false;
    waiting_leave(&replica->waiting, r);
    r->swapped_in = false;
    if (r->first_scheduled_ns == IFL_NEVER)
        r->cached_tokens = r->pub.n_computed;
    r->pub.n_prefill = r->pub.n_tokens;
    r->pub.started_ns = replica->view.now_ns;
    replica->step.n_waiting--;
    replica->step.n_started++;
    replica->started.of[replica->started.n++] = &r->pub;
    return true;
}

static bool may_start(struct replica *replica, const struct ifl_request *request, int32_t n)
{
    if (request->state != IFL_WAITING && request->state != IFL_SWAPPED)
        breach(replica, "it started a request that neither waits nor is swapped");
    else if (n < 0 || n > ifl_todo(request))
        breach(replica, "it started a request with more tokens than it has left");
    else if (!step_has_room(replica))
        breach(replica, step_no_room);
    else if (replica->answering)
        breach(replica, step_no_question);
    return !replica->broken;
}

static struct ifl_admission admission(struct replica *replica, const struct ifl_request *request,
                                      int32_t n)
{
    const struct module *admit = &replica->modules[IFL_ADMIT];
    if (!may_start(replica, request, n))
        return (struct ifl_admission){IFL_WAIT, 0};
    const enum ifl_state state = request->state;
    replica->step.asked |= 1u << IFL_ADMIT;
    replica->answering = true;
    const struct ifl_admission answer =
        admit->policy->ops.admit->ask(admit->self, &replica->view, &replica->step, request, n);
    replica->answering = false;
    if (request->state != state)
        breach(replica, "its admit module moved the request that it was asked about");
    return replica->broken ? (struct ifl_admission){IFL_WAIT, 0} : answer;
}

/* The hit of who waits may have grown since the plan looked, by what another left who gave way. */
static int32_t still_to_compute(struct replica *replica, const struct ifl_request *request,
                                int32_t n)
{
    if (!replica->kv.cached || request->state != IFL_WAITING)
        return n;
    replica_look_up(replica, live(request));
    return n < ifl_todo(request) ? n : ifl_todo(request);
}

static enum ifl_verdict op_ask(struct ifl_step *step, const struct ifl_request *request, int32_t n,
                               int32_t spare_blocks, int32_t *takes)
{
    struct replica *replica = replica_of(step);
    n = still_to_compute(replica, request, n);
    spare_blocks = step_spare(replica, spare_blocks);
    step->n_free_blocks -= spare_blocks;
    const struct ifl_admission answer = admission(replica, request, n);
    step->n_free_blocks += spare_blocks;
    const int32_t computed = request->n_computed + n;
    if (takes)
        *takes = replica_need(replica, live(request),
                              answer.hold_tokens > computed ? answer.hold_tokens : computed);
    return answer.verdict;
}

static double op_room(struct ifl_step *step, double enough)
{
    struct replica *replica = replica_of(step);
    const struct module *admit = &replica->modules[IFL_ADMIT];
    if (!admit->policy->ops.admit->room)
        return INFINITY;
    replica->step.asked |= 1u << IFL_ADMIT;
    return admit->policy->ops.admit->room(admit->self, &replica->view, step, enough);
}

static enum ifl_verdict op_start(struct ifl_step *step, const struct ifl_request *request,
                                 int32_t n)
{
    struct replica *replica = replica_of(step);
    struct live_request *r = live(request);
    n = still_to_compute(replica, request, n);
    const struct ifl_admission answer = admission(replica, request, n);
    if (answer.verdict != IFL_YES)
        return answer.verdict;
    const int32_t computed = request->n_computed + n;
    const int32_t hold = replica_hold_blocks(
        replica, r, answer.hold_tokens > computed ? answer.hold_tokens : computed);
    if (!(request->state == IFL_SWAPPED ? bring_back : leave_queue)(replica, r, hold))
        return IFL_NO_BLOCKS;
    r->n_promised = answer.hold_tokens > computed ? hold : 0;
    r->pub.state = IFL_RUNNING;
    r->start_seq = replica->n_starts++;
    live_append(&replica->running, ON_DEVICE, r);
    live_append(&replica->apart, AMONG_PEERS, r);
    replica_note_rank(replica, RANKED_RUNNING, r);
    step->n_running_requests++;
    step->n_running_seqs += request->n_seqs;
    count_blocks(replica);
    if (n > 0)
        put_in_plan(replica, r, n);
    if (replica->modules[IFL_ORDER].policy->ops.order->rerank == IFL_RANK_EACH_START)
        replica->ranks_stale = true;
    return IFL_YES;
}

/* ---- giving way ---- */

/* What the plan counts for the request, and no longer does. */
static int32_t forget_planned(struct replica *replica, const struct live_request *r)
{
    for (size_t i = 0; i < replica->n_planned; i++)
        if (replica->planned[i].r == r) {
            replica->planned[i].r = NULL;
            replica->n_decodes -= replica->planned[i].decodes;
            replica->n_members -= r->in_cohort;
            return replica->planned[i].n_tokens;
        }
    return r->pub.n_seqs; /* one of the cohort */
}

static void undo_schedule(struct replica *replica, struct live_request *r)
{
    struct ifl_step *step = &replica->step;
    step_show(replica, r);
    if (r->pub.n_now == 0)
        return;
    const int32_t n_tokens = forget_planned(replica, r);
    step->n_tokens -= n_tokens;
    step->n_requests--;
    if (!ifl_decodes(&r->pub)) {
        step->n_prefill_tokens -= n_tokens;
        step->n_prefill_requests--;
    }
    replica_unpart(replica, r);
    replica_withdraw(replica, r);
    r->pub.n_now = 0;
}

static void leave_running(struct replica *replica, struct live_request *r)
{
    replica_leave(replica, r);
    replica_note_rank(replica, RANKED_RUNNING, r);
    replica->step.n_running_requests--;
    replica->step.n_running_seqs -= r->pub.n_seqs;
    replica->step.n_preempted++;
    r->pub.n_preempted++;
    if (r->first_scheduled_ns != IFL_NEVER) /* before, it queues */
        r->stalled_since_ns = replica->view.now_ns;
}

static void send_to_host(struct replica *replica, struct live_request *r)
{
    const int32_t n = r->pub.n_blocks;
    for (int32_t i = 0; i < n && !replica->kv.tallied; i++)
        replica->outs[replica->n_outs + (size_t)i].from = live_block(r, i);
    replica_drop_blocks(replica, r, false);
    kv_take(&replica->host, n, r->blocks);
    for (int32_t i = 0; i < n && !replica->kv.tallied; i++)
        replica->outs[replica->n_outs + (size_t)i].to = live_block(r, i);
    replica->n_outs += (size_t)n;
    r->pub.n_host_blocks = n;
    r->pub.state = IFL_SWAPPED;
    r->stalled_on_host = true;
    r->n_swap_outs++;
    add_swapped(replica, r);
    replica->step.n_swapped_out++;
}

/* Of several that go to the back in one plan, the first to give way stands first. */
static const uint64_t BEHIND_ALL = UINT64_C(1) << 63;

static void send_to_waiting(struct replica *replica, struct live_request *r, enum ifl_place place)
{
    replica_drop_blocks(replica, r, false);
    r->parted = false;
    kv_beams_end(&r->beams);
    r->pub.n_computed = 0;
    r->pub.n_prefill = 0;
    r->pub.state = IFL_WAITING;
    r->pub.queued_ns = replica->view.now_ns;
    r->stalled_on_host = false;
    replica->step.n_waiting++;
    r->pub.queued_serial = place == IFL_BACK ? BEHIND_ALL + replica->n_backs++ : r->pub.serial;
    if (place == IFL_FRONT)
        waiting_push_front(&replica->waiting, r);
    else if (place == IFL_IN_ORDER)
        waiting_push(&replica->waiting, r, replica_rank(replica, r), r->pub.arrival_ns);
    else
        waiting_push(&replica->waiting, r, replica_rank_now(replica, r), replica->view.now_ns);
}

static bool swapped_in_now(const struct replica *replica, const struct live_request *r)
{
    return r->start_seq >= replica->first_start && r->swapped_in;
}

/* Somebody started in this plan on what it has r compute. */
static bool others_stand_on(const struct replica *replica, const struct live_request *r)
{
    size_t i = 0;
    while (i < replica->started.n && !replica_stands_on(replica, live(replica->started.of[i]), r))
        i++;
    return i < replica->started.n;
}

static enum ifl_verdict op_preempt(struct ifl_step *step, const struct ifl_request *request,
                                   enum ifl_fate fate, enum ifl_place place)
{
    struct replica *replica = replica_of(step);
    struct live_request *r = live(request);
    if (!replica->broken && request->state != IFL_RUNNING)
        breach(replica, "it preempted a request that is not on the device");
    if (!replica->broken && swapped_in_now(replica, r))
        breach(replica, "it preempted a request that it swapped in in the same plan");
    if (!replica->broken && others_stand_on(replica, r))
        breach(replica, "it preempted a request on whose tokens of this plan it started another");
    if (replica->broken || fate == IFL_KEEP)
        return IFL_WAIT;
    step_sync(replica, r);
    if (fate == IFL_SWAP && request->n_blocks > replica->host.n_free) {
        if (replica->swap_full == SWAP_FULL_FAIL) {
            breach(replica, "the swap pool is full (serving.kv.swap_gib; swap_full: recompute "
                            "falls back instead)");
            return IFL_NO_HOST_BLOCKS;
        }
        fate = IFL_RECOMPUTE;
    }
    undo_schedule(replica, r);
    leave_running(replica, r);
    if (fate == IFL_SWAP && r->pub.n_computed > 0)
        send_to_host(replica, r);
    else
        send_to_waiting(replica, r, place);
    count_blocks(replica);
    return IFL_YES;
}

static bool op_make_room(struct ifl_step *step, const struct ifl_request *needy)
{
    struct replica *replica = replica_of(step);
    const struct module *preempt = &replica->modules[IFL_PREEMPT];
    if (replica->answering)
        breach(replica, step_no_question);
    if (replica->broken)
        return false;
    step->asked |= 1u << IFL_PREEMPT;
    replica->answering = true;
    const struct ifl_victim victim =
        preempt->policy->ops.preempt->pick(preempt->self, &replica->view, step, needy);
    replica->answering = false;
    if (!victim.request || victim.fate == IFL_KEEP)
        return false;
    return op_preempt(step, victim.request, victim.fate, victim.place) == IFL_YES &&
           victim.request != needy;
}

static void op_reject(struct ifl_step *step, const struct ifl_request *request)
{
    struct replica *replica = replica_of(step);
    struct live_request *r = live(request);
    if (replica->broken)
        return;
    if (request->state == IFL_WAITING) {
        waiting_leave(&replica->waiting, r);
        step->n_waiting--;
    } else if (request->state == IFL_SWAPPED) {
        remove_swapped(replica, r);
        kv_release(&replica->host, request->n_host_blocks, r->blocks);
        r->pub.n_host_blocks = 0;
        count_blocks(replica);
    } else {
        breach(replica, "it rejected a request that neither waits nor is swapped");
        return;
    }
    r->pub.state = IFL_DONE;
    replica->n_rejected++;
    replica->gone[replica->n_gone++] = r;
}

static void op_promise(struct ifl_step *step, struct ifl_promise promise)
{
    replica_of(step)->promise = promise;
    replica_of(step)->to_the_last = false;
}

static void op_to_the_last(struct ifl_step *step)
{
    replica_of(step)->to_the_last = true;
}

static void op_wake(struct ifl_step *step, int64_t at_ns)
{
    struct replica *replica = replica_of(step);
    if (at_ns < replica->wake_ns)
        replica->wake_ns = at_ns;
}

static void op_pad(struct ifl_step *step, struct ifl_padding padding)
{
    if (step_may_pad(&padding))
        replica_of(step)->padding = padding;
    else
        breach(replica_of(step), "it pads with less than nothing, or with more than 2^28 tokens");
}

const struct ifl_step_ops replica_step_ops = {
    .size_bytes = sizeof(struct ifl_step_ops),
    .next = step_next,
    .running = step_running,
    .last_ranked = step_last_ranked,
    .started = step_started,
    .hit = step_hit,
    .above = step_above,
    .need = op_need,
    .ask = op_ask,
    .room = op_room,
    .start = op_start,
    .schedule = op_schedule,
    .schedule_ready = op_schedule_ready,
    .make_room = op_make_room,
    .preempt = op_preempt,
    .reject = op_reject,
    .promise = op_promise,
    .wake = op_wake,
    .pad = op_pad,
    .oldest_waiting_ns = step_oldest_waiting_ns,
    .draw = op_draw,
    .took_part = step_took_part,
    .scheduled = step_scheduled,
    .to_the_last = op_to_the_last,
};
