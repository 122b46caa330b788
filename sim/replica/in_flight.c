#include "replica/in_flight.h"

#include <stdlib.h>

#include "base/array.h"
#include "replica/replica_parts.h"

int in_flight_create(struct replica *replica)
{
    const int32_t depth = replica->fixed.overlap.depth;
    struct in_flight *in_flight = &replica->in_flight;
    const struct ifl_limits *limits = &replica->fixed.limits;
    in_flight->last_end_ns = IFL_NEVER;
    in_flight->tells = replica->on.step_end.n > 0;
    in_flight->desc.replica = replica->fixed.number;
    in_flight->record.replica = (int32_t)replica->fixed.number;
    in_flight->record.kv_total_blocks = limits->n_blocks;
    in_flight->record.kv_pool_slots = (int64_t)limits->n_blocks * limits->block_tokens;
    in_flight->depth = depth > 1 ? (size_t)depth : 1;
    if (depth > 1)
        in_flight->flown = calloc((size_t)depth, sizeof *in_flight->flown);
    for (size_t i = 0; in_flight->flown && i < in_flight->depth; i++)
        if (!(in_flight->flown[i].rounds.grow =
                  calloc((size_t)limits->block_tokens, sizeof(struct live_list))))
            return IFL_E_NOMEM;
    return depth <= 1 || in_flight->flown ? 0 : IFL_E_NOMEM;
}

void in_flight_destroy(struct in_flight *in_flight)
{
    free(in_flight->ends_ns);
    free(in_flight->work);
    free(in_flight->left);
    free(in_flight->tables);
    free(in_flight->results);
    for (size_t i = 0; in_flight->flown && i < in_flight->depth; i++) {
        free(in_flight->flown[i].planned);
        free(in_flight->flown[i].work);
        free(in_flight->flown[i].left);
        free(in_flight->flown[i].rounds.grow);
    }
    free(in_flight->flown);
}

static int reserve_flown(struct replica *replica, size_t n, size_t n_work)
{
    struct in_flight *in_flight = &replica->in_flight;
    for (size_t i = 0; in_flight->flown && i < in_flight->depth; i++) {
        struct flown *flown = &in_flight->flown[i];
        if (array_grow(&flown->planned, flown->n_planned, n, sizeof *flown->planned) < 0)
            return IFL_E_NOMEM;
        if (!replica->fixed.wants_work)
            continue;
        if (array_grow(&flown->work, flown->desc.n_work, n_work, sizeof *flown->work) < 0 ||
            array_grow(&flown->left, flown->desc.n_work, n_work, sizeof *flown->left) < 0)
            return IFL_E_NOMEM;
    }
    return in_flight->flown && replica->fixed.wants_work
               ? array_grow(&in_flight->left, in_flight->desc.n_work, n_work,
                            sizeof *in_flight->left)
               : 0;
}

int in_flight_reserve(struct replica *replica, size_t n)
{
    struct in_flight *in_flight = &replica->in_flight;
    const size_t n_work = n * (size_t)replica->fixed.max_samples;
    in_flight->desc.outs = replica->plan.outs;
    in_flight->desc.ins = replica->plan.ins;
    in_flight->desc.copies = replica->plan.copies;
    const size_t n_ends = in_flight->tells ? REPLICA_LONGEST_RUN : REPLICA_MAX_STRETCH;
    if (!in_flight->ends_ns)
        in_flight->ends_ns = malloc(n_ends * sizeof *in_flight->ends_ns);
    if (!in_flight->ends_ns)
        return IFL_E_NOMEM;
    if (replica->fixed.wants_work &&
        array_grow(&in_flight->work, in_flight->desc.n_work, n_work, sizeof *in_flight->work) < 0)
        return IFL_E_NOMEM;
    if (in_flight->desc.work) /* of a step that is held until its loads have come */
        in_flight->desc.work = in_flight->work;
    if (reserve_flown(replica, n, n_work) < 0)
        return IFL_E_NOMEM;
    return replica->on.step_end.n > 0
               ? array_grow(&in_flight->results, 0, n, sizeof *in_flight->results)
               : 0;
}

/* ---- committing ---- */

static int32_t place_of(const struct replica *replica, const struct live_request *r, int32_t seq,
                        int32_t i)
{
    return r->rare->beams.n_seqs > 0 ? kv_beams_at(&r->rare->beams, seq, i)
                                     : group_block_at(&r->pub, seq, i, replica->fixed.block);
}

/* The block table of one sequence, put together from its group's blocks. */
static const uint32_t *table_of(struct replica *replica, const struct live_request *r, int32_t seq,
                                int32_t n_blocks)
{
    uint32_t *table = replica->in_flight.tables + replica->in_flight.n_tables;
    for (int32_t i = 0; i < n_blocks; i++)
        table[i] = r->blocks[place_of(replica, r, seq, i)];
    replica->in_flight.n_tables += (size_t)n_blocks;
    return table;
}

/* Tokens before the new ones. When a prefill goes on behind the prompt in several sequences, all
 * but the first begin with their own tails. */
static int32_t context_of(const struct replica *replica, const struct live_request *r, int32_t seq)
{
    const bool begins =
        r->rare->parted_in == ifl_next_step(&replica->view) && !request_decodes(&r->pub);
    return seq > 0 && begins
               ? group_shared_blocks(&r->pub, replica->fixed.block) * replica->fixed.block.tokens
               : r->pub.stale.n_computed;
}

static void add_sequence(struct replica *replica, const struct live_request *r, int32_t n,
                         int32_t seq, int32_t n_draft)
{
    const bool alone = r->pub.n_seqs == 1;
    const int32_t n_after = r->pub.stale.n_computed + n, n_context = context_of(replica, r, seq);
    const int32_t n_blocks =
        alone ? r->pub.stale.n_blocks : kv_blocks_for(n_after, replica->fixed.block);
    replica->in_flight.work[replica->in_flight.desc.n_work++] = (struct ifl_work){
        .request = &r->pub,
        .seq = seq,
        .n_new = n_after + n_draft - n_context,
        .n_draft = n_draft,
        .n_context = n_context,
        .samples = n_after == r->pub.stale.n_tokens + r->n_late,
        .decodes = n_context >= r->pub.n_prefill,
        .blocks = alone ? r->blocks : table_of(replica, r, seq, n_blocks),
        .n_blocks = n_blocks,
        .stream_tokens = r->stream_tokens,
        .repeats = r->pub.repeats,
        .named_tokens = r->named_tokens,
    };
}

/* A prompt is computed as one sequence until it goes on behind its end. */
static void add_work(struct replica *replica, const struct live_request *r, int32_t n,
                     int32_t n_draft)
{
    const int32_t n_seqs = r->parted ? r->pub.n_seqs : 1;
    for (int32_t seq = 0; seq < n_seqs; seq++)
        add_sequence(replica, r, n, seq, n_draft);
}

/* Only tables of groups are put together, and only for executors that want to see them. */
static void reserve_tables(struct replica *replica)
{
    size_t n = 0;
    FOR_EACH_LIVE (r, &replica->here.running, ON_DEVICE)
        n += r->pub.n_seqs > 1 ? (size_t)r->pub.n_seqs * (size_t)r->pub.stale.n_blocks : 0;
    if (n <= replica->in_flight.cap_tables)
        return;
    replica->in_flight.cap_tables = 2 * n;
    replica->in_flight.tables =
        realloc(replica->in_flight.tables,
                replica->in_flight.cap_tables * sizeof *replica->in_flight.tables);
    ifl_require(replica->in_flight.tables);
}

IFL_APART static void list_work(struct replica *replica)
{
    replica->in_flight.desc.n_work = replica->in_flight.n_tables = 0;
    if (replica->fixed.max_samples > 1)
        reserve_tables(replica);
    replica->in_flight.desc.work = replica->in_flight.work;
    if (replica->in_flight.ticks)
        FOR_EACH_LIVE (r, &replica->here.cohort.members, AMONG_PEERS) {
            cohort_sync(&replica->here.cohort, r);
            const int32_t at = (int32_t)replica->in_flight.desc.n_work;
            const int32_t n_holds = cohort_note_work(&replica->here.cohort, r, at);
            add_work(replica, r, 1, cohort_n_draft(r));
            replica->in_flight.work[at].n_holds = n_holds;
        }
    for (size_t i = 0; i < replica->plan.n_planned; i++)
        add_work(replica, replica->plan.planned[i].r, replica->plan.planned[i].n, 0);
}

void in_flight_describe(struct replica *replica)
{
    struct ifl_step_desc *desc = &replica->in_flight.desc;
    in_flight_sum(replica, &(struct step_sums_of){&desc->totals, &replica->in_flight.record});
    desc->step = ifl_next_step(&replica->view);
    desc->start_ns = replica->view.now_ns;
    desc->n_outs = replica->plan.n_outs;
    desc->n_ins = replica->plan.n_ins;
    desc->n_copies = replica->plan.n_copies;
    if (IFL_RARE(!replica->fixed.plain) && replica->fixed.wants_work)
        list_work(replica);
}

/* A step that was planned before its request had ended computes K/V into a slot that no token was
 * to use. */
IFL_HOT static void record_pool(struct replica *replica)
{
    const int64_t empty = replica_held_slots(replica) - replica->kv.token_slots;
    const int64_t internal = ifl_min(replica->kv.internal_slots, empty);
    struct ifl_step_record *record = &replica->in_flight.record;
    record->kv_used_blocks = kv_used(&replica->kv.device);
    record->kv_token_slots = replica->kv.token_slots;
    record->kv_reserved_slots = empty - internal;
    record->kv_internal_slots = internal;
    record->kv_shared_blocks = replica->kv.device.n_shared + replica->kv.n_group_saved;
}

/* What stays 0 in plain replicas. */
IFL_APART static void fill_extras(const struct ifl_step_totals *totals,
                                  struct ifl_step_record *record)
{
    record->decode_tokens += totals->n_draft_tokens;
    record->draft_tokens = totals->n_draft_tokens;
    record->accepted_tokens = 0;
    record->adapters = totals->adapters.n;
    record->adapter_loads = totals->adapters.n_loads;
}

/* Fills the step's row of steps.csv, but for its times. Field by field, as in in_flight_sum:
 * clearing it first would cost as much as the step. */
static void fill_record(struct replica *replica)
{
    const struct ifl_step_totals *totals = &replica->in_flight.desc.totals;
    struct ifl_step_record *record = &replica->in_flight.record;
    record->step = replica->in_flight.desc.step;
    record->prefill_tokens = totals->n_prefill_tokens;
    record->decode_tokens = totals->n_decode_seqs;
    record->prefill_seqs = totals->n_prefill_seqs;
    record->decode_seqs = totals->n_decode_seqs;
    record->context_tokens = totals->decode_context;
    record->running = replica->plan.step.n_running_requests;
    record->waiting = replica->plan.step.n_waiting;
    record->swapped = replica->plan.step.n_swapped;
    record->preempted = replica->plan.step.n_preempted - replica->plan.n_ended_victims +
                        in_flight_take_preempted(&replica->in_flight);
    record->blocks_out = totals->n_blocks_out;
    record->blocks_in = totals->n_blocks_in;
    if (IFL_RARE(!replica->fixed.plain))
        fill_extras(totals, record);
    record_pool(replica);
}

/* Preemptions of earlier plans are recorded once, and not again with the next tick. */
static bool is_tick(const struct replica *replica)
{
    const struct in_flight *in_flight = &replica->in_flight;
    const struct ifl_step_desc *desc = &in_flight->desc;
    return in_flight->ticks && replica->plan.n_planned == 0 && in_flight->record.preempted == 0 &&
           desc->n_outs + desc->n_ins + desc->n_copies == 0 &&
           (!IFL_RARE(!replica->fixed.plain) ||
            (desc->totals.adapters.n_loads == 0 && !replica->fixed.wants_work));
}

void in_flight_submit(struct replica *replica)
{
    fill_record(replica);
    replica->in_flight.only_ticks = is_tick(replica);
    replica->in_flight.busy = true;
}

/* The guesses of the next tick: fewer where the longest sequence of the model is near. */
static void submit_guesses(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    struct ifl_step_totals *totals = &in_flight->desc.totals;
    totals->n_tokens = totals->n_sampled = totals->n_decode_seqs;
    in_flight_add_guesses(replica, totals);
    in_flight->record.decode_tokens = totals->n_tokens;
    in_flight->record.draft_tokens = totals->n_draft_tokens;
}

IFL_APART static void submit_extras(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    if (replica->fixed.gives_up)
        in_flight_note_full(&(struct step_sums_of){&in_flight->desc.totals, &in_flight->record},
                            replica->here.cohort.n_full_seqs);
    if (replica->fixed.speculation.on)
        submit_guesses(replica);
}

/* The requests that have ended are known to have, from this tick on. */
IFL_APART static void stop_padding(struct replica *replica)
{
    plan_pad_for_ended(&replica->plan, NULL);
    replica->in_flight.desc.totals.padding = replica->plan.padding;
}

IFL_HOT void in_flight_submit_tick(struct replica *replica, int64_t now_ns)
{
    struct in_flight *in_flight = &replica->in_flight;
    const struct cohort *cohort = &replica->here.cohort;
    in_flight->busy = true;
    in_flight->desc.step = replica->view.step;
    in_flight->desc.start_ns = now_ns;
    in_flight->desc.totals.decode_context = cohort->context + cohort->n_seqs;
    if (IFL_RARE(replica->plan.pads_for_ended))
        stop_padding(replica);
    if (IFL_RARE(!replica->fixed.plain))
        submit_extras(replica);
    in_flight->record.step = replica->view.step;
    in_flight->record.waiting = (int32_t)replica->here.waiting.n;
    in_flight->record.context_tokens = in_flight->desc.totals.decode_context;
    record_pool(replica);
}

/* ---- several steps in flight ---- */

struct flown *in_flight_at(struct in_flight *in_flight, size_t i)
{
    const size_t at = in_flight->oldest + i;
    return &in_flight->flown[at < in_flight->depth ? at : at - in_flight->depth];
}

const struct ifl_step_desc *in_flight_last(const struct in_flight *in_flight)
{
    const size_t n = in_flight->n_flown;
    return n > 0 ? &in_flight->flown[(in_flight->oldest + n - 1) % in_flight->depth].desc
                 : &in_flight->desc;
}

/* Lists of requests are handed over, not copied. */
static void exchange_work(struct in_flight *in_flight, struct flown *flown)
{
    struct ifl_work *work = in_flight->work;
    struct left_work *left = in_flight->left;
    in_flight->work = flown->work;
    in_flight->left = flown->left;
    flown->work = work;
    flown->left = left;
}

/* Slots come round in turn, so that one with a step in flight is waited for. */
static bool next_slot_flies(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    return replica->fixed.overlap.slots && in_flight->n_flown > 0 &&
           in_flight_at(in_flight, 0)->slot == in_flight->next_slot;
}

/* The last of the steps in flight is of that slot. */
static void note_push(struct replica *replica, int32_t slot)
{
    struct in_flight *in_flight = &replica->in_flight;
    if (replica->fixed.overlap.slots)
        in_flight->next_slot = (slot + 1) % (int32_t)in_flight->depth;
    in_flight->busy = in_flight->n_flown == in_flight->depth || next_slot_flies(replica);
}

IFL_APART void in_flight_push(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    struct flown *flown = in_flight_at(in_flight, in_flight->n_flown++);
    flown->n_planned = 0;
    plan_exchange(&replica->plan, &flown->planned, &flown->n_planned);
    exchange_work(in_flight, flown);
    flown->desc = in_flight->desc;
    flown->record = in_flight->record;
    flown->slot = replica->view.slot;
    flown->promise = replica->plan.promise;
    in_flight->n_promised = flown->promise.n_steps > 0 ? in_flight->n_promised + 1 : 0;
    in_flight->n_empty_slots = 0;
    note_push(replica, flown->slot);
}

IFL_APART void in_flight_pull(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    struct flown *flown = in_flight_at(in_flight, 0);
    ifl_assert(in_flight->n_flown > 0);
    plan_exchange(&replica->plan, &flown->planned, &flown->n_planned);
    plan_close_gaps(&replica->plan);
    exchange_work(in_flight, flown);
    in_flight->desc = flown->desc;
    in_flight->record = flown->record;
    view_set_slot(&replica->view, flown->slot);
    flown->n_planned = flown->desc.n_work = 0;
    in_flight->oldest = (in_flight->oldest + 1) % in_flight->depth;
    in_flight->n_flown--;
    in_flight->n_empty_slots = 0;
    in_flight->busy = true;
}

struct flown *in_flight_turn(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    struct flown *oldest = in_flight_at(in_flight, 0), *place = oldest;
    oldest->desc.step = in_flight->record.step = ifl_next_step(&replica->view);
    oldest->desc.start_ns = replica->view.now_ns;
    oldest->desc.totals.decode_context += oldest->desc.totals.n_decode_seqs;
    in_flight->record.context_tokens = oldest->desc.totals.decode_context;
    in_flight->record.preempted = 0;
    record_pool(replica);
    oldest->record = in_flight->record;
    if (in_flight->n_flown < in_flight->depth) {
        const struct flown moved = *oldest;
        place = in_flight_at(in_flight, in_flight->n_flown);
        *oldest = *place;
        *place = moved;
    }
    in_flight->oldest = (in_flight->oldest + 1) % in_flight->depth;
    note_push(replica, place->slot);
    view_set_slot(&replica->view, place->slot);
    return place;
}

static bool is_answered(const struct live_request *r)
{
    return r->pub.stale.n_out == r->n_output && !r->cut;
}

/* What a step computes behind an answer is not counted in its row; what it computes for a request
 * that has left without one is. */
static void drop_planned(struct flown *flown, struct planned *p)
{
    struct ifl_step_record *record = &flown->record;
    const int32_t n_seqs = p->r->pub.n_seqs;
    if (is_answered(p->r)) {
        record->prefill_tokens -= p->decodes ? 0 : p->n_tokens;
        record->prefill_seqs -= !p->decodes;
        record->decode_tokens -= p->decodes ? n_seqs : 0;
        record->decode_seqs -= p->decodes ? n_seqs : 0;
        record->context_tokens -= p->decodes ? (int64_t)n_seqs * p->n_computed : 0;
    }
    p->r = NULL;
}

static void drop_work(struct flown *flown, const struct live_request *r)
{
    const int32_t attempt = is_answered(r) ? -1 : r->attempt;
    for (size_t i = 0; i < flown->desc.n_work; i++)
        if (flown->work[i].request == &r->pub) {
            flown->work[i].request = NULL;
            flown->left[i] = (struct left_work){r->row, attempt, r->pub.n_preempted};
        }
}

IFL_APART void in_flight_drop(struct replica *replica, struct live_request *r)
{
    struct in_flight *in_flight = &replica->in_flight;
    for (size_t i = 0; i < in_flight->n_flown && r->pub.n_in_flight > 0; i++) {
        struct flown *flown = in_flight_at(in_flight, i);
        for (size_t k = 0; k < flown->n_planned; k++)
            if (flown->planned[k].r == r)
                drop_planned(flown, &flown->planned[k]);
        drop_work(flown, r);
    }
    r->pub.n_in_flight = r->n_late = r->pub.stale.n_pending = 0;
}

/* A decode may go on from a token in flight n_stages steps behind the step that samples it (vLLM,
 * v1/core/sched/async_scheduler.py, next_decode_eligible_step). */
static void ripen(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    const uint64_t next_step = ifl_next_step(&replica->view);
    const uint64_t n_stages = (uint64_t)replica->fixed.overlap.n_stages;
    for (size_t i = 0; i < in_flight->n_flown; i++) {
        const struct flown *flown = in_flight_at(in_flight, i);
        for (size_t k = 0; flown->desc.step + n_stages == next_step && k < flown->n_planned; k++) {
            struct live_request *r = flown->planned[k].r;
            if (r && r->pub.state == IFL_RUNNING && flown->planned[k].samples)
                r->pub.stale.n_pending = r->n_late;
        }
    }
}

/* Those that are not shown have seats, too: of this step, or of their own. */
static void count_shown(struct replica *replica)
{
    int32_t n = 0, n_seqs = 0, n_in_prefill = 0;
    FOR_EACH_LIVE (r, &replica->here.running, ON_DEVICE)
        if (plan_shows(&replica->plan, r)) {
            n++;
            n_seqs += r->pub.n_seqs;
            n_in_prefill += !request_decodes(&r->pub);
        }
    view_count_shown(&replica->view, (size_t)n);
    plan_count_shown(&replica->plan, n_in_prefill);
    if (overlap_has_own_seats(&replica->fixed.overlap))
        plan_count_seats(&replica->plan, n, n_seqs);
}

void in_flight_open(struct replica *replica)
{
    const struct overlap *overlap = &replica->fixed.overlap;
    const int32_t slot = overlap->slots ? replica->in_flight.next_slot : -1;
    plan_hide(&replica->plan, overlap->request == OVERLAP_ONE_STEP, slot);
    view_set_slot(&replica->view, slot < 0 ? 0 : slot);
    if (overlap->request == OVERLAP_TOKENS)
        ripen(replica);
    if (overlap_counts_shown(overlap))
        count_shown(replica);
}

bool in_flight_try_next_slot(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    const int32_t n_slots = (int32_t)in_flight->depth;
    if (!replica->fixed.overlap.slots)
        return false;
    const int32_t n_rounds = in_flight->n_flown > 0 ? 1 : 2;
    in_flight->next_slot = (in_flight->next_slot + 1) % n_slots;
    if (++in_flight->n_empty_slots >= n_rounds * n_slots) {
        in_flight->n_empty_slots = 0;
        return false;
    }
    in_flight->busy = next_slot_flies(replica);
    return !in_flight->busy;
}

/* ---- ending ---- */

IFL_HOT void in_flight_stamp(struct in_flight *in_flight, const struct ifl_done *done)
{
    struct ifl_step_record *record = &in_flight->record;
    const int64_t last_end_ns = in_flight->last_end_ns;
    record->start_ns = done->start_ns;
    record->duration_ns = done->end_ns - done->start_ns;
    record->device_ns = done->device_ns;
    record->gap_ns = last_end_ns == IFL_NEVER ? IFL_NEVER : done->start_ns - last_end_ns;
    if (IFL_RARE(in_flight->flown) &&
        record->gap_ns < 0) /* it began before the step in front of it ended */
        record->gap_ns = 0;
    in_flight->last_end_ns = done->end_ns;
}

int32_t in_flight_end(struct in_flight *in_flight, const struct ifl_done *done)
{
    ifl_assert(in_flight->busy && done->step == in_flight->desc.step);
    const int32_t n_steps = 1 + in_flight->n_untold;
    in_flight_note_end(in_flight, done->end_ns);
    in_flight->busy = false;
    in_flight->n_untold = 0;
    in_flight->n_barren_steps++;
    in_flight_stamp(in_flight, done);
    return n_steps;
}

/* Nearly all steps are in time, so the last are looked at first. */
size_t in_flight_foresee(struct in_flight *in_flight, const int64_t *duration_ns, size_t n,
                         int64_t until_ns, int64_t promised_ns)
{
    ifl_assert(in_flight->n_untold + n <= REPLICA_LONGEST_RUN);
    int64_t *end_ns = in_flight->ends_ns + in_flight->n_untold;
    int64_t now_ns = in_flight->desc.start_ns;
    for (size_t i = 0; i < n; i++)
        end_ns[i] = now_ns += duration_ns[i];
    while (n > 0 && end_ns[n - 1] >= until_ns)
        n--;
    while (n > 1 && end_ns[n - 2] > promised_ns)
        n--;
    return n;
}

int64_t in_flight_pass(struct in_flight *in_flight, const struct ifl_done *first, size_t n,
                       int64_t last_ns)
{
    ifl_assert(in_flight->busy && n > 0);
    ifl_assert(in_flight->ends_ns[in_flight->n_untold] == first->end_ns);
    const int64_t last_end_ns = in_flight->ends_ns[(size_t)in_flight->n_untold + n - 1];
    if (in_flight->n_untold == 0)
        in_flight->untold_start_ns = first->start_ns;
    in_flight->n_untold += in_flight->tells ? (int32_t)n : 0;
    in_flight->busy = false;
    in_flight->n_barren_steps = 0;
    in_flight->tick_ns = last_ns;
    in_flight_stamp(in_flight, first);
    in_flight->last_end_ns = last_end_ns;
    return in_flight->last_end_ns;
}
