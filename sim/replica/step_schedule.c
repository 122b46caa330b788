/* Scheduling tokens of running requests: one request, or all that decode at once; and taking them
 * back. */
#include "replica/step_builder.h"

#include <stdio.h>

#include "inflight/minmax.h"
#include "replica/step_limits.h"
#include "replica/step_lists.h"

/* Tokens that all sequences of r compute together; those of the prompt count once. */
static int32_t part_and_count(struct replica *replica, struct live_request *r, int32_t n)
{
    const bool decodes = request_decodes(&r->pub), were_parted = r->parted;
    if (!IFL_RARE(r->pub.n_seqs > 1))
        return n;
    if (r->rare->beams.n_seqs > 0) {
        replica_beams_step(replica, r);
        return n * r->pub.n_seqs;
    }
    if (IFL_RARE(!r->parted && r->pub.stale.n_computed + n > r->pub.n_prompt))
        replica_part(replica, r);
    return (int32_t)(group_slots(&r->pub, r->pub.stale.n_computed + n, r->parted,
                                 replica->fixed.block) -
                     group_slots(&r->pub, r->pub.stale.n_computed, were_parted || decodes,
                                 replica->fixed.block));
}

static void list_in_plan(struct replica *replica, struct planned one)
{
    plan_add(&replica->plan, one);
    one.r->pub.stale.n_now = one.n;
    replica_stir_keys(replica);
}

IFL_FOR_ASSERTS static inline bool holds_blocks(const struct replica *replica,
                                                const struct live_request *r, int32_t n)
{
    const int32_t hold_tokens = live_slots(r) + n;
    return replica_hold_blocks(replica, r, hold_tokens) <= r->pub.stale.n_blocks;
}

IFL_HOT void step_put_in_plan(struct replica *replica, struct live_request *r, int32_t n,
                              int32_t n_draft)
{
    ifl_assert(n > 0);
    ifl_assert(holds_blocks(replica, r, n));
    const bool decodes = request_decodes(&r->pub);
    if (IFL_RARE(r->ended)) {
        list_in_plan(replica, (struct planned){r, n, n * r->pub.n_seqs, false, false});
        return;
    }
    const int32_t n_tokens = part_and_count(replica, r, n);
    list_in_plan(replica, (struct planned){r, n, n_tokens + n_draft, decodes, .n_draft = n_draft});
    if (!decodes)
        plan_count_prefill(&replica->plan, n_tokens);
    replica_publish_plan(replica, r, r->pub.stale.n_computed + n);
    if (r->first_scheduled_ns == IFL_NEVER)
        r->first_scheduled_ns = replica->view.now_ns;
    if (IFL_RARE(r->stalled_since_ns != IFL_NEVER)) {
        r->stalled_ns += replica->view.now_ns - r->stalled_since_ns;
        r->stall_began_ns = r->stalled_since_ns;
        r->stall_ended_ns = replica->view.now_ns;
        r->stalled_since_ns = IFL_NEVER;
    }
}

/* Fast path of step_schedule, for most requests that a plan schedules one by one: a running decode
 * of a single sequence, with a block for its token, in a pool without a prefix cache. */
static bool goes_on(const struct replica *replica, const struct live_request *r, int32_t n,
                    int32_t hold_tokens)
{
    const struct ifl_request *pub = &r->pub;
    if (!live_is_of(&replica->here.pool, pub) || replica->plan.ready_all ||
        replica->kv.device.cached || n != 1 || hold_tokens != 0 || pub->n_seqs > 1 || r->ended ||
        replica->fixed.speculation.on)
        return false;
    if (r->in_cohort)
        return pub->stale.n_now == 0 && r->grow_phase != replica->here.cohort.phase;
    return pub->state == IFL_RUNNING && request_decodes(pub) && request_todo(pub) == 1 &&
           live_slots(r) < pub->stale.n_blocks * replica->fixed.limits.block_tokens &&
           r->stalled_since_ns == IFL_NEVER;
}

IFL_COLD static void breach_of(struct replica *replica, const struct live_request *r, int32_t n)
{
    const struct ifl_request *request = &r->pub;
    char text[160];
    if (request->state != IFL_RUNNING)
        snprintf(text, sizeof text, "it scheduled request %zu, which is not on the device", r->row);
    else if (request->stale.n_now != 0)
        snprintf(text, sizeof text, "it scheduled request %zu twice", r->row);
    else
        snprintf(text, sizeof text,
                 "it scheduled request %zu with %d tokens, expected 1 to the %d that are left",
                 r->row, n, request_todo(request));
    step_breach(replica, text);
}

static enum ifl_verdict schedule(struct ifl_step *step, const struct ifl_request *request,
                                 int32_t n, int32_t n_draft, int32_t hold_tokens)
{
    struct replica *replica = replica_of(step);
    struct live_request *r = live(request);
    if (!step_knows(replica, request))
        return IFL_NO_BLOCKS;
    step_show(replica, r);
    if (request->state != IFL_RUNNING || request->stale.n_now != 0)
        breach_of(replica, r, n);
    else if (!plan_shows(&replica->plan, r))
        step_breach(replica,
                    "it scheduled a request of another step in flight, or of another slot");
    else if (n <= 0 || n > request_todo(request))
        breach_of(replica, r, n);
    else if (hold_tokens < 0)
        step_breach(replica, "it has a request hold blocks for less than no token");
    else if (!step_has_room(replica))
        step_breach(replica, step_no_room);
    if (replica->plan.broken)
        return IFL_NO_BLOCKS;
    const int32_t n_slots = live_slots(r) + n;
    const int32_t slots = replica_slots_for(replica, r, n, n_draft);
    const int32_t need = replica_need(replica, r, ifl_max(hold_tokens, slots));
    if (!replica_take_blocks(replica, r, need)) {
        step_note_refusal(replica, request, step_planner(replica),
                          "its tokens find no free K/V blocks", true);
        return IFL_NO_BLOCKS;
    }
    if (hold_tokens > n_slots && request->stale.n_blocks > r->n_promised)
        r->n_promised = request->stale.n_blocks;
    step_count_blocks(replica);
    step_put_in_plan(replica, r, n, n_draft);
    return IFL_YES;
}

enum ifl_verdict step_schedule(struct ifl_step *step, const struct ifl_request *request, int32_t n,
                               int32_t hold_tokens)
{
    struct replica *replica = replica_of(step);
    struct live_request *r = live(request);
    if (!step_may_change(replica))
        return IFL_NO_BLOCKS;
    if (goes_on(replica, r, n, hold_tokens)) {
        list_in_plan(replica, (struct planned){r, 1, 1, true});
        return IFL_YES;
    }
    return schedule(step, request, n, 0, hold_tokens);
}

enum ifl_verdict step_schedule_drafts(struct ifl_step *step, const struct ifl_request *request,
                                      int32_t n, int32_t n_draft, int32_t hold_tokens)
{
    struct replica *replica = replica_of(step);
    if (n_draft == 0)
        return step_schedule(step, request, n, hold_tokens);
    if (!step_may_change(replica))
        return IFL_NO_BLOCKS;
    if (n_draft < 0 || n_draft > step_drafts(step, request)) {
        step_breach(replica, "it scheduled more guessed tokens than there are");
        return IFL_NO_BLOCKS;
    }
    return schedule(step, request, n, n_draft, hold_tokens);
}

/* ---- all decoding requests at once ---- */

/* Running requests that decode but fell out of step join the cohort again. False: one has come back
 * from host memory beside steps (replica_swap.c); it is to be scheduled by itself, which ends its
 * stall. */
IFL_APART static bool gather_cohort(struct replica *replica)
{
    bool all = true;
    for (struct live_request *r = replica->here.apart.head, *next; r; r = next) {
        const bool ready = request_decodes(&r->pub) && request_todo(&r->pub) == 1 &&
                           r->pub.stale.n_now == 0 && r->pub.state == IFL_RUNNING && !r->ended;
        next = r->links[AMONG_PEERS].next;
        if (ready && replica->fixed.swaps_apart && r->stalled_since_ns != IFL_NEVER)
            all = false;
        else if (ready)
            replica_join_cohort(replica, r);
    }
    return all;
}

IFL_APART static void part_fresh(struct replica *replica)
{
    for (size_t i = 0; i < replica->here.cohort.n_fresh; i++) {
        struct live_request *r = replica->here.cohort.fresh[i];
        if (r->pub.n_seqs > 1 && !r->parted)
            replica_part(replica, r);
    }
    replica_step_beams(replica);
}

IFL_HOT bool replica_take_tick(struct replica *replica, int32_t spare_blocks)
{
    if (IFL_RARE(replica->fixed.speculation.on && replica->plan.planning))
        replica_ask_drafts(replica);
    const int32_t n_new = replica_growing_blocks(replica);
    if (!replica_tick_fits(replica, n_new, spare_blocks))
        return false;
    if (n_new > 0)
        replica_grow(replica);
    if (replica->fixed.max_samples > 1)
        part_fresh(replica);
    step_count_blocks(replica);
    plan_add_cohort(&replica->plan, &replica->here.cohort);
    cohort_stir(&replica->here.cohort);
    replica_stir_keys(replica);
    return true;
}

/* Schedules the members that are not scheduled yet, one by one; all or none. */
static bool schedule_rest(struct replica *replica, int32_t spare_blocks)
{
    if (IFL_RARE(replica->fixed.speculation.on))
        replica_ask_drafts(replica);
    if (!replica_tick_fits(replica, replica_growing_blocks(replica), spare_blocks))
        return false;
    FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS)
        if (r->pub.stale.n_now == 0)
            step_schedule_drafts(&replica->plan.step, &r->pub, 1, cohort_n_draft(r), 0);
    return true;
}

static bool schedule_members(struct replica *replica, int32_t spare_blocks)
{
    if (replica->here.cohort.n == 0)
        return true;
    if (replica->plan.n_members > 0)
        return schedule_rest(replica, spare_blocks);
    if (!replica_take_tick(replica, spare_blocks))
        return false;
    if (replica->plan.by_start.taken || replica->ranks.by_rank[RANKED_RUNNING].taken)
        step_show_members(replica);
    return true;
}

/* False if a token in flight is the last that the request may have. */
static bool may_go_on(const struct replica *replica, const struct ifl_request *r)
{
    const struct ifl_counts *counts = &r->stale;
    return counts->n_out + counts->n_pending < r->n_max_new &&
           counts->n_tokens + counts->n_pending < replica->fixed.limits.max_model_tokens;
}

/* True if a plan made ahead gives the ended request r one more token: it does not know that r has
 * ended, unless a limit on the length says so. */
static bool seems_to_go_on(const struct replica *replica, const struct ifl_request *r)
{
    return r->state == IFL_RUNNING && r->stale.n_now == 0 && may_go_on(replica, r);
}

/* Of several steps in flight most requests are in another one. */
static bool is_ready(const struct replica *replica, const struct live_request *r)
{
    return plan_shows(&replica->plan, r) && r->pub.state == IFL_RUNNING &&
           request_decodes(&r->pub) && r->pub.stale.n_now == 0 && request_todo(&r->pub) == 1 &&
           may_go_on(replica, &r->pub);
}

/* True if all that are ready find blocks. */
static bool ready_fit(const struct replica *replica, int32_t spare_blocks)
{
    int32_t n_new = 0, n_ready = 0;
    const int64_t n_most = (int64_t)replica->here.apart.n; /* a sequence takes a block at most */
    if (replica->fixed.plain && !replica->kv.device.contiguous &&
        replica->kv.device.n_free - n_most >= spare_blocks)
        return true;
    FOR_EACH_LIVE (r, &replica->here.apart, AMONG_PEERS)
        if (is_ready(replica, r)) {
            n_ready++;
            n_new += replica_need(replica, r, live_slots(r) + 1);
        }
    return n_ready == 0 || replica_tick_fits(replica, n_new, spare_blocks);
}

/* Beside steps in flight, where no request is in the cohort: one by one, all or none. */
IFL_APART static bool schedule_apart(struct replica *replica, int32_t spare_blocks)
{
    if (!ready_fit(replica, spare_blocks))
        return false;
    FOR_EACH_LIVE (r, &replica->here.apart, AMONG_PEERS)
        if (is_ready(replica, r))
            step_schedule(&replica->plan.step, &r->pub, 1, 0);
    return true;
}

IFL_APART int32_t replica_blocks_for_ended(const struct replica *replica)
{
    int32_t n = 0;
    for (size_t i = 0; i < replica->leaving.n_ended; i++) {
        const struct live_request *r = replica->leaving.ended[i];
        if (seems_to_go_on(replica, &r->pub))
            n += replica_need(replica, r, live_slots(r) + 1);
    }
    return n;
}

IFL_APART static void schedule_ended(struct replica *replica)
{
    for (size_t i = 0; i < replica->leaving.n_ended; i++)
        if (seems_to_go_on(replica, &replica->leaving.ended[i]->pub))
            step_schedule(&replica->plan.step, &replica->leaving.ended[i]->pub, 1, 0);
}

IFL_HOT bool step_schedule_ready(struct ifl_step *step, int32_t spare_blocks)
{
    struct replica *replica = replica_of(step);
    if (!step_may_change(replica) || replica->plan.ready_all)
        return false;
    if (IFL_RARE(spare_blocks < 0)) {
        step_breach(replica, "it scheduled all that are ready with less than no block to spare");
        return false;
    }
    if (replica_overlaps(replica))
        return schedule_apart(replica, spare_blocks);
    if (replica->here.apart.n > 0 && !gather_cohort(replica))
        return false;
    const int32_t n_for_ended =
        IFL_RARE(replica->leaving.n_ended > 0) ? replica_blocks_for_ended(replica) : 0;
    if (n_for_ended > 0 && replica->kv.device.n_free < n_for_ended + spare_blocks)
        return false;
    if (!schedule_members(replica, spare_blocks + n_for_ended))
        return false;
    if (IFL_RARE(replica->leaving.n_ended > 0))
        schedule_ended(replica);
    return true;
}

IFL_APART bool replica_take_tick_ahead(struct replica *replica, int32_t spare_blocks)
{
    if (!replica_take_tick(replica, spare_blocks + replica_blocks_for_ended(replica)))
        return false;
    schedule_ended(replica);
    return true;
}

/* ---- taking tokens back ---- */

void step_undo_schedule(struct replica *replica, struct live_request *r)
{
    step_show(replica, r);
    if (r->pub.stale.n_now == 0)
        return;
    plan_remove(&replica->plan, r);
    if (!r->ended)
        replica_unpart(replica, r);
    replica_withdraw(replica, r);
    r->pub.stale.n_now = 0;
    replica_stir_keys(replica);
}
