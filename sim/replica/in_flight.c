#include "replica/in_flight.h"

#include <stdlib.h>

#include "base/array.h"
#include "replica/replica_parts.h"

void in_flight_create(struct replica *replica)
{
    struct in_flight *in_flight = &replica->in_flight;
    const struct ifl_limits *limits = &replica->fixed.limits;
    in_flight->last_end_ns = IFL_NEVER;
    in_flight->desc.replica = replica->fixed.number;
    in_flight->desc.outs = replica->plan.outs;
    in_flight->desc.ins = replica->plan.ins;
    in_flight->desc.copies = replica->plan.copies;
    in_flight->record.replica = (int32_t)replica->fixed.number;
    in_flight->record.kv_total_blocks = limits->n_blocks;
    in_flight->record.kv_pool_slots = (int64_t)limits->n_blocks * limits->block_tokens;
}

void in_flight_destroy(struct in_flight *in_flight)
{
    free(in_flight->ends_ns);
    free(in_flight->work);
    free(in_flight->tables);
    free(in_flight->results);
}

int in_flight_reserve(struct replica *replica, size_t n)
{
    struct in_flight *in_flight = &replica->in_flight;
    const size_t n_work = n * (size_t)replica->fixed.max_samples;
    if (!in_flight->ends_ns)
        in_flight->ends_ns = malloc(REPLICA_LONGEST_RUN * sizeof *in_flight->ends_ns);
    if (!in_flight->ends_ns)
        return IFL_E_NOMEM;
    if (replica->fixed.wants_work &&
        array_grow(&in_flight->work, in_flight->desc.n_work, n_work, sizeof *in_flight->work) < 0)
        return IFL_E_NOMEM;
    return replica->on.step_end.n > 0
               ? array_grow(&in_flight->results, 0, n, sizeof *in_flight->results)
               : 0;
}

/* ---- committing ---- */

/* Attention kernels are tabulated at multiples of that many tokens of context. */
enum { KV_TILE_TOKENS = 64 };

static void add_prompt(struct ifl_step_totals *totals, const struct planned *p)
{
    const struct live_request *r = p->r;
    const int32_t n = p->n;
    const int64_t q = n, kv = r->pub.stale.n_computed;
    totals->n_tokens += p->n_tokens;
    totals->n_prefill_tokens += p->n_tokens;
    totals->n_prefill_seqs++;
    totals->n_sampled += r->pub.stale.n_computed + n == r->pub.stale.n_tokens;
    totals->prefill_q_kv += q * kv;
    totals->prefill_q_q += q * q;
    totals->prefill_kv_64 += (kv + KV_TILE_TOKENS - 1) / KV_TILE_TOKENS * KV_TILE_TOKENS;
    if (kv + q > totals->max_prefill_kv)
        totals->max_prefill_kv = (int32_t)(kv + q);
}

static void sum_totals(struct replica *replica)
{
    const int32_t n_decode = replica->in_flight.ticks ? replica->here.cohort.n_seqs : 0;
    struct ifl_step_totals *totals = &replica->in_flight.desc.totals;
    totals->n_tokens = totals->n_decode_seqs = totals->n_sampled = n_decode;
    totals->decode_context = n_decode ? replica->here.cohort.context + n_decode : 0;
    totals->n_prefill_tokens = totals->n_prefill_seqs = totals->max_prefill_kv = 0;
    totals->prefill_q_kv = totals->prefill_q_q = totals->prefill_kv_64 = 0;
    totals->n_blocks_out = (int32_t)replica->plan.n_outs;
    totals->n_blocks_in = (int32_t)replica->plan.n_ins;
    totals->n_blocks_copied = (int32_t)replica->plan.n_copies;
    totals->padding = replica->plan.padding;
    for (size_t i = 0; i < replica->plan.n_planned; i++)
        add_prompt(totals, &replica->plan.planned[i]);
}

static int32_t place_of(const struct replica *replica, const struct live_request *r, int32_t seq,
                        int32_t i)
{
    return r->beams.n_seqs > 0 ? kv_beams_at(&r->beams, seq, i)
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
    const bool begins = r->parted_in == replica->view.step && !request_decodes(&r->pub);
    return seq > 0 && begins
               ? group_shared_blocks(&r->pub, replica->fixed.block) * replica->fixed.block.tokens
               : r->pub.stale.n_computed;
}

static void add_sequence(struct replica *replica, const struct live_request *r, int32_t n,
                         int32_t seq)
{
    const bool alone = r->pub.n_seqs == 1;
    const int32_t n_after = r->pub.stale.n_computed + n, n_context = context_of(replica, r, seq);
    const int32_t n_blocks =
        alone ? r->pub.stale.n_blocks : kv_blocks_for(n_after, replica->fixed.block);
    replica->in_flight.work[replica->in_flight.desc.n_work++] = (struct ifl_work){
        .request = &r->pub,
        .seq = seq,
        .n_new = n_after - n_context,
        .n_context = n_context,
        .samples = n_after == r->pub.stale.n_tokens,
        .blocks = alone ? r->blocks : table_of(replica, r, seq, n_blocks),
        .n_blocks = n_blocks,
        .stream_tokens = r->stream_tokens,
        .named_tokens = r->named_tokens,
    };
}

/* A prompt is computed as one sequence until it goes on behind its end. */
static void add_work(struct replica *replica, const struct live_request *r, int32_t n)
{
    const int32_t n_seqs = r->parted ? r->pub.n_seqs : 1;
    for (int32_t seq = 0; seq < n_seqs; seq++)
        add_sequence(replica, r, n, seq);
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
            add_work(replica, r, 1);
        }
    for (size_t i = 0; i < replica->plan.n_planned; i++)
        add_work(replica, replica->plan.planned[i].r, replica->plan.planned[i].n);
}

void in_flight_describe(struct replica *replica)
{
    struct ifl_step_desc *desc = &replica->in_flight.desc;
    sum_totals(replica);
    desc->step = replica->view.step;
    desc->start_ns = replica->view.now_ns;
    desc->n_outs = replica->plan.n_outs;
    desc->n_ins = replica->plan.n_ins;
    desc->n_copies = replica->plan.n_copies;
    if (replica->fixed.wants_work)
        list_work(replica);
}

IFL_HOT IFL_APART static void record_pool(struct replica *replica)
{
    const int64_t held = replica_held_slots(replica);
    struct ifl_step_record *record = &replica->in_flight.record;
    record->kv_used_blocks = kv_used(&replica->kv.device);
    record->kv_token_slots = replica->kv.token_slots;
    record->kv_reserved_slots = held - replica->kv.token_slots - replica->kv.internal_slots;
    record->kv_internal_slots = replica->kv.internal_slots;
    record->kv_shared_blocks = replica->kv.device.n_shared + replica->kv.n_group_saved;
}

/* Fills the step's row of steps.csv, but for its times. Field by field, as in sum_totals: clearing
 * it first would cost as much as the step. */
static void fill_record(struct replica *replica)
{
    const struct ifl_step_totals *totals = &replica->in_flight.desc.totals;
    struct ifl_step_record *record = &replica->in_flight.record;
    record->step = replica->view.step;
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
    record_pool(replica);
}

/* Preemptions of earlier plans are recorded once, and not again with the next tick. */
static bool is_tick(const struct replica *replica)
{
    const struct in_flight *in_flight = &replica->in_flight;
    const struct ifl_step_desc *desc = &in_flight->desc;
    return in_flight->ticks && replica->plan.n_planned == 0 && in_flight->record.preempted == 0 &&
           desc->n_outs + desc->n_ins + desc->n_copies == 0 && !replica->fixed.wants_work;
}

void in_flight_submit(struct replica *replica)
{
    fill_record(replica);
    replica->in_flight.only_ticks = is_tick(replica);
    replica->in_flight.busy = true;
}

void in_flight_submit_tick(struct replica *replica, int64_t now_ns)
{
    struct in_flight *in_flight = &replica->in_flight;
    const struct cohort *cohort = &replica->here.cohort;
    in_flight->busy = true;
    in_flight->desc.step = replica->view.step;
    in_flight->desc.start_ns = now_ns;
    in_flight->desc.totals.decode_context = cohort->context + cohort->n_seqs;
    in_flight->record.step = replica->view.step;
    in_flight->record.context_tokens = in_flight->desc.totals.decode_context;
    record_pool(replica);
}

/* ---- ending ---- */

IFL_HOT IFL_APART void in_flight_stamp(struct in_flight *in_flight, const struct ifl_done *done)
{
    struct ifl_step_record *record = &in_flight->record;
    const int64_t last_end_ns = in_flight->last_end_ns;
    record->start_ns = done->start_ns;
    record->duration_ns = done->end_ns - done->start_ns;
    record->device_ns = done->device_ns;
    record->gap_ns = last_end_ns == IFL_NEVER ? IFL_NEVER : done->start_ns - last_end_ns;
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
    if (in_flight->n_untold == 0)
        in_flight->untold_start_ns = first->start_ns;
    in_flight->n_untold += (int32_t)n;
    in_flight->busy = false;
    in_flight->n_barren_steps = 0;
    in_flight->tick_ns = last_ns;
    in_flight_stamp(in_flight, first);
    in_flight->last_end_ns = in_flight->ends_ns[in_flight->n_untold - 1];
    return in_flight->last_end_ns;
}

/* ---- results ---- */

/* Lists the members that ticked and those that did so for the last time, in order of start. */
static size_t list_decodes(struct replica *replica, int32_t n_ticks)
{
    struct live_request *r = replica->here.cohort.members.head, *const *gone =
                                                                    replica->leaving.gone;
    struct live_request *const *end = gone + replica->leaving.n_decodes_gone;
    size_t n = 0;
    while (r || gone < end) {
        const bool member = r && (gone == end || r->pub.start_serial < (*gone)->pub.start_serial);
        const struct live_request *next = member ? r : *gone++;
        if (member)
            r = r->links[AMONG_PEERS].next;
        replica->in_flight.results[n++] = (struct ifl_result){&next->pub, n_ticks, n_ticks};
    }
    return n;
}

size_t in_flight_list_results(struct replica *replica, int32_t n_steps)
{
    ifl_assert(replica->in_flight.results);
    size_t n = replica->in_flight.ticks ? list_decodes(replica, n_steps) : 0;
    for (size_t i = 0; i < replica->plan.n_planned; i++) {
        const struct planned *p = &replica->plan.planned[i];
        replica->in_flight.results[n++] = (struct ifl_result){&p->r->pub, p->n, p->samples};
    }
    return n;
}
