/* What becomes of a plan: committed into a description for the executor, ended when it has run. */
#include "replica/replica_parts.h"

#include <stdlib.h>

/* ---- committing ---- */

static void leave_cohort(struct replica *replica, struct live_request *r)
{
    cohort_remove(&replica->cohort, r);
    live_append(&replica->apart, AMONG_PEERS, r);
}

static void join_cohort(struct replica *replica, struct live_request *r)
{
    live_remove(&replica->apart, AMONG_PEERS, r);
    replica_add_to_cohort(replica, r);
}

/* Members that this step does not schedule leave the cohort. Plans ask for the keys of all members,
 * but for the key of a request outside only after a note. With IFL_KEYS_NAMED the order names the
 * requests with changed keys, so that no note is needed. */
static void eject_unscheduled(struct replica *replica)
{
    for (struct live_request *r = replica->cohort.members.head, *next; r; r = next) {
        next = r->links[AMONG_PEERS].next;
        if (r->pub.stale.n_now > 0)
            continue;
        leave_cohort(replica, r);
        if (replica->order_keys != IFL_KEYS_NAMED)
            replica_note_rank(replica, RANKED_RUNNING, r);
    }
}

static void pad_for_ended(struct replica *replica, const struct planned *p)
{
    replica->padding.n_decode_seqs += p->n_tokens;
    replica->padding.decode_context += (int64_t)p->n_tokens * p->r->pub.stale.n_tokens;
    replica->pads_for_ended = true;
}

/* Splits the plan into decodes, which tick with the cohort, and prompts, which stay in `planned`.
 */
static void settle_cohort(struct replica *replica)
{
    size_t n = 0;
    replica->pads_for_ended = false;
    if (!replica->ready_all && replica->n_decodes > 0 && replica->n_members < replica->cohort.n)
        eject_unscheduled(replica);
    for (size_t i = 0; i < replica->n_planned; i++) {
        const struct planned *p = &replica->planned[i];
        if (!p->r)
            continue;
        p->r->pub.stale.n_now = 0;
        if (p->r->ended) {
            pad_for_ended(replica, p);
        } else if (!p->decodes) {
            replica->planned[n++] = *p;
        } else if (!p->r->in_cohort) {
            join_cohort(replica, p->r);
        }
    }
    replica->n_planned = n;
    replica->ticks = (replica->ready_all || replica->n_decodes > 0) && replica->cohort.n > 0;
    if (replica->shown)
        FOR_EACH_LIVE (r, &replica->cohort.members, AMONG_PEERS)
            r->pub.stale.n_now = 0;
    replica->shown = false;
}

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
    const int32_t n_decode = replica->ticks ? replica->cohort.n_seqs : 0;
    struct ifl_step_totals *totals = &replica->desc.totals;
    totals->n_tokens = totals->n_decode_seqs = totals->n_sampled = n_decode;
    totals->decode_context = n_decode ? replica->cohort.context + n_decode : 0;
    totals->n_prefill_tokens = totals->n_prefill_seqs = totals->max_prefill_kv = 0;
    totals->prefill_q_kv = totals->prefill_q_q = totals->prefill_kv_64 = 0;
    totals->n_blocks_out = (int32_t)replica->n_outs;
    totals->n_blocks_in = (int32_t)replica->n_ins;
    totals->n_blocks_copied = (int32_t)replica->n_copies;
    totals->padding = replica->padding;
    for (size_t i = 0; i < replica->n_planned; i++)
        add_prompt(totals, &replica->planned[i]);
}

static int32_t place_of(const struct replica *replica, const struct live_request *r, int32_t seq,
                        int32_t i)
{
    return r->beams.n_seqs > 0 ? kv_beams_at(&r->beams, seq, i)
                               : group_block_at(&r->pub, seq, i, replica->block);
}

/* The block table of one sequence, put together from its group's blocks. */
static const uint32_t *table_of(struct replica *replica, const struct live_request *r, int32_t seq,
                                int32_t n_blocks)
{
    uint32_t *table = replica->tables + replica->n_tables;
    for (int32_t i = 0; i < n_blocks; i++)
        table[i] = r->blocks[place_of(replica, r, seq, i)];
    replica->n_tables += (size_t)n_blocks;
    return table;
}

/* Tokens before the new ones. When a prefill goes on behind the prompt in several sequences, all
 * but the first begin with their own tails. */
static int32_t context_of(const struct replica *replica, const struct live_request *r, int32_t seq)
{
    const bool begins = r->parted_in == replica->view.step && !request_decodes(&r->pub);
    return seq > 0 && begins ? group_shared_blocks(&r->pub, replica->block) * replica->block.tokens
                             : r->pub.stale.n_computed;
}

static void add_sequence(struct replica *replica, const struct live_request *r, int32_t n,
                         int32_t seq)
{
    const bool alone = r->pub.n_seqs == 1;
    const int32_t n_after = r->pub.stale.n_computed + n, n_context = context_of(replica, r, seq);
    const int32_t n_blocks = alone ? r->pub.stale.n_blocks : kv_blocks_for(n_after, replica->block);
    replica->work[replica->desc.n_work++] = (struct ifl_work){
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
    FOR_EACH_LIVE (r, &replica->running, ON_DEVICE)
        n += r->pub.n_seqs > 1 ? (size_t)r->pub.n_seqs * (size_t)r->pub.stale.n_blocks : 0;
    if (n <= replica->cap_tables)
        return;
    replica->cap_tables = 2 * n;
    replica->tables = realloc(replica->tables, replica->cap_tables * sizeof *replica->tables);
    ifl_require(replica->tables);
}

static void list_work(struct replica *replica)
{
    replica->desc.n_work = replica->n_tables = 0;
    if (replica->max_samples > 1)
        reserve_tables(replica);
    replica->desc.work = replica->work;
    if (replica->ticks)
        FOR_EACH_LIVE (r, &replica->cohort.members, AMONG_PEERS) {
            cohort_sync(&replica->cohort, r);
            add_work(replica, r, 1);
        }
    for (size_t i = 0; i < replica->n_planned; i++)
        add_work(replica, replica->planned[i].r, replica->planned[i].n);
}

void replica_record_pool(struct replica *replica)
{
    const int64_t held = replica_held_slots(replica);
    struct ifl_step_record *record = &replica->record;
    record->kv_used_blocks = kv_used(&replica->kv);
    record->kv_token_slots = replica->kv_token_slots;
    record->kv_reserved_slots = held - replica->kv_token_slots - replica->kv_internal_slots;
    record->kv_internal_slots = replica->kv_internal_slots;
    record->kv_shared_blocks = replica->kv.n_shared + replica->n_group_saved;
}

/* Fills the step's row of steps.csv, but for its times. Field by field, as in sum_totals: clearing
 * it first would cost as much as the step. */
static void fill_record(struct replica *replica)
{
    const struct ifl_step_totals *totals = &replica->desc.totals;
    struct ifl_step_record *record = &replica->record;
    record->step = replica->view.step;
    record->prefill_tokens = totals->n_prefill_tokens;
    record->decode_tokens = totals->n_decode_seqs;
    record->prefill_seqs = totals->n_prefill_seqs;
    record->decode_seqs = totals->n_decode_seqs;
    record->context_tokens = totals->decode_context;
    record->running = replica->step.n_running_requests;
    record->waiting = replica->step.n_waiting;
    record->swapped = replica->step.n_swapped;
    record->preempted =
        replica->step.n_preempted - replica->n_ended_victims + replica->n_preempted_before;
    replica->n_preempted_before = 0;
    record->blocks_out = totals->n_blocks_out;
    record->blocks_in = totals->n_blocks_in;
    replica_record_pool(replica);
}

static void release_swapped_in(struct replica *replica)
{
    if (replica->n_ins == 0)
        return;
    if (replica->host.tallied)
        kv_release(&replica->host, (int32_t)replica->n_ins, NULL);
    for (size_t i = 0; i < replica->n_ins && !replica->host.tallied; i++)
        kv_release(&replica->host, 1, &replica->ins[i].from);
}

bool replica_commit(struct replica *replica)
{
    struct ifl_step_desc *desc = &replica->desc;
    settle_cohort(replica);
    if (replica->n_ended > 0)
        replica_let_ended_go(replica);
    release_swapped_in(replica);
    replica->view.n_tries++;
    if (!replica->ticks && replica->n_planned == 0 && replica->n_outs + replica->n_ins == 0 &&
        !replica->pads_for_ended) {
        replica->n_preempted_before += replica->step.n_preempted - replica->n_ended_victims;
        return false;
    }
    replica->view.n_tries = 0;
    sum_totals(replica);
    desc->step = replica->view.step;
    desc->start_ns = replica->view.now_ns;
    desc->n_outs = replica->n_outs;
    desc->n_ins = replica->n_ins;
    desc->n_copies = replica->n_copies;
    if (replica->wants_work)
        list_work(replica);
    for (size_t i = 0; i < replica->n_planned; i++) {
        struct ifl_request *prompt = &replica->planned[i].r->pub;
        prompt->stale.n_computed += replica->planned[i].n;
        replica->n_in_prefill -= request_decodes(prompt);
    }
    replica->kv_token_slots += desc->totals.n_tokens;
    fill_record(replica);
    replica->busy = true;
    replica->view.n_in_flight = 1;
    replica->view.n_ended_blocks = 0;
    if (replica->on_step_start.n == 0)
        return true;
    replica->by_rank[RANKED_SWAPPED].taken = false; /* hooks also see what the plan swapped out */
    FOR_EACH_LISTENER (module, &replica->on_step_start)
        module->policy->on_step_start(module->self, &replica->view, &replica->step);
    return true;
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

int replica_tick(struct replica *replica, int64_t end_ns, struct ifl_recorder *recorder,
                 struct ifl_error *error)
{
    struct cohort *cohort = &replica->cohort;
    struct tick_gaps shared;
    int rc = 0;
    for (size_t i = 0; i < cohort->n_fresh && rc == 0; i++)
        rc = record_own_gap(cohort->fresh[i], end_ns, recorder, error);
    if (rc < 0)
        return rc;
    if (cohort_tick(cohort, end_ns, &shared) < 0)
        return ifl_fail_nomem(error);
    return shared.count ? ifl_record_gaps(recorder, shared.gap_ns, (int64_t)shared.count, error)
                        : 0;
}

/* Counts the token that a completed prompt yields. True if it is the request's last one; else the
 * request decodes from now on (join_decoding). */
static bool first_of_prefill(struct replica *replica, struct live_request *r, int64_t end_ns,
                             struct ifl_recorder *recorder, struct ifl_error *error, int *rc)
{
    r->pub.stale.n_tokens++;
    r->pub.stale.n_out++;
    if (r->pub.first_token_ns == IFL_NEVER) {
        r->pub.first_token_ns = end_ns;
        replica->n_unanswered_tokens -= live_prompt_tokens(r);
        r->stalled_prefill_ns = r->stalled_ns;
    } else {
        *rc = record_own_gap(r, end_ns, recorder, error);
    }
    r->last_token_ns = end_ns;
    if (r->pub.stale.n_out == r->n_output)
        return true;
    if (r->pub.forks && *rc == 0) {
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
    for (size_t i = 0; i < replica->n_planned && rc == 0; i++) {
        struct live_request *r = replica->planned[i].r;
        const bool samples = r->pub.stale.n_computed == r->pub.stale.n_tokens;
        r->pub.stale.last_end_ns = end_ns;
        replica_note_rank(replica, RANKED_RUNNING, r);
        replica_publish_prompt(replica, r, r->pub.stale.n_computed);
        replica->planned[i].samples = samples;
        if (samples)
            replica->n_barren_steps = 0;
        if (samples && first_of_prefill(replica, r, end_ns, recorder, error, &rc))
            replica->gone[replica->n_gone++] = r;
    }
    return rc;
}

/* Requests with a prompt that this step has completed join the cohort. */
static void join_decoding(struct replica *replica)
{
    for (size_t i = 0; i < replica->n_planned; i++) {
        struct live_request *r = replica->planned[i].r;
        if (replica->planned[i].samples && r->pub.stale.n_out < r->n_output)
            join_cohort(replica, r);
    }
}

static void end_decodes(struct replica *replica)
{
    struct live_request *r;
    while ((r = cohort_finished(&replica->cohort))) {
        leave_cohort(replica, r);
        replica->gone[replica->n_gone++] = r;
    }
    replica->n_decodes_gone = replica->n_gone;
}

/* ---- what modules are told ---- */

/* What modules are told of steps that have ended, with what `results` needs to answer. */
struct told_end {
    struct ifl_step_end pub; /* first: modules hold a pointer to it */
    struct replica *replica;
    bool listed;
};

/* Lists the members that ticked and those that did so for the last time, in order of start. */
static size_t list_decodes(struct replica *replica, int32_t n_ticks)
{
    struct live_request *r = replica->cohort.members.head, *const *gone = replica->gone;
    struct live_request *const *end = gone + replica->n_decodes_gone;
    size_t n = 0;
    while (r || gone < end) {
        const bool member = r && (gone == end || r->pub.start_serial < (*gone)->pub.start_serial);
        const struct live_request *next = member ? r : *gone++;
        if (member)
            r = r->links[AMONG_PEERS].next;
        replica->results[n++] = (struct ifl_result){&next->pub, n_ticks, n_ticks};
    }
    return n;
}

static size_t list_results(struct replica *replica, int32_t n_steps)
{
    size_t n = replica->ticks ? list_decodes(replica, n_steps) : 0;
    for (size_t i = 0; i < replica->n_planned; i++) {
        const struct planned *p = &replica->planned[i];
        replica->results[n++] = (struct ifl_result){&p->r->pub, p->n, p->samples};
    }
    return n;
}

static struct ifl_results results_of(const struct ifl_step_end *end)
{
    struct told_end *told = (struct told_end *)(uintptr_t)end;
    if (!told->listed)
        ifl_require(list_results(told->replica, end->n_steps) == end->n_requests);
    told->listed = true;
    return (struct ifl_results){told->replica->results, end->n_requests};
}

/* Tells the modules of n_steps steps with the same requests. The last of them has just ended. */
static void tell_modules(struct replica *replica, uint64_t last_step, int32_t n_steps,
                         int64_t start_ns, size_t n_requests, int32_t n_preempted)
{
    struct told_end end = {.replica = replica,
                           .pub = {
                               .step = last_step,
                               .n_steps = n_steps,
                               .start_ns = start_ns,
                               .end_ns = replica->last_end_ns,
                               .ends_ns = replica->ends_ns,
                               .n_requests = n_requests,
                               .n_preempted = n_preempted,
                               .results = results_of,
                           }};
    FOR_EACH_LISTENER (module, &replica->on_step_end)
        module->policy->on_step_end(module->self, &replica->view, &end.pub);
}

void replica_tell_steps(struct replica *replica)
{
    replica->n_decodes_gone = 0;
    tell_modules(replica, replica->view.step - 1, replica->n_untold, replica->untold_start_ns,
                 replica->cohort.n, 0);
}

/* Ended requests leave in order of start, which is the order of vLLM's list of running requests. */
static void keep_ended(struct replica *replica, struct live_request *r)
{
    size_t at = replica->n_ended++;
    for (; at > 0 && replica->ended[at - 1]->pub.start_serial > r->pub.start_serial; at--)
        replica->ended[at] = replica->ended[at - 1];
    replica->ended[at] = r;
}

static void let_go(struct replica *replica)
{
    const int32_t n_free_before = replica->kv.n_free;
    for (size_t i = 0; i < replica->n_gone; i++) {
        struct live_request *r = replica->gone[i];
        r->ended = replica->plans_ahead;
        if (r->ended) {
            keep_ended(replica, r);
            continue;
        }
        replica_leave(replica, r);
        replica_drop_blocks(replica, r, true);
        r->pub.state = IFL_DONE;
    }
    replica->view.n_ended_blocks += replica->kv.n_free - n_free_before;
}

void replica_stamp_record(struct replica *replica, const struct ifl_done *done)
{
    struct ifl_step_record *record = &replica->record;
    const int64_t last_end_ns = replica->last_end_ns;
    record->start_ns = done->start_ns;
    record->duration_ns = done->end_ns - done->start_ns;
    record->device_ns = done->device_ns;
    record->gap_ns = last_end_ns == IFL_NEVER ? IFL_NEVER : done->start_ns - last_end_ns;
    replica->last_end_ns = done->end_ns;
}

/* Each output token is produced once, so a run ends if its barren steps are bounded. */
static int check_progress(const struct replica *replica, struct ifl_error *error)
{
    if (replica->n_barren_steps == 0)
        return 0;
    const int64_t n_blocks = (int64_t)replica->limits.n_blocks + replica->limits.n_host_blocks;
    const int64_t all_tokens = n_blocks * replica->limits.block_tokens;
    if (replica->n_barren_steps <= 2 * all_tokens + 1000)
        return 0;
    return ifl_fail(error, IFL_E_STALLED,
                    "policy %s has run %lld steps without a token: its prompts preempt one "
                    "another (preempt %s) and start over, for ever; %zu are running, %zu waiting, "
                    "%zu swapped out",
                    replica->modules[IFL_BATCHING].policy->name, (long long)replica->n_barren_steps,
                    replica->modules[IFL_PREEMPT].policy->name, replica->running.n,
                    replica->waiting.n, replica->n_swapped);
}

bool replica_preempted_since(struct replica *replica, struct ifl_step_record *record)
{
    *record = (struct ifl_step_record){
        .step = replica->view.step,
        .replica = replica->record.replica,
        .start_ns = replica->last_end_ns,
        .preempted = replica->n_preempted_before,
        .kv_total_blocks = replica->record.kv_total_blocks,
        .kv_pool_slots = replica->record.kv_pool_slots,
    };
    replica->n_preempted_before = 0;
    return record->preempted > 0;
}

static bool outlasts_finishes(const struct replica *replica)
{
    const size_t n_others = replica->waiting.n + replica->n_swapped + replica->apart.n;
    return replica->promise.to_the_last && !replica->plans_ahead && replica->cohort.n > 0 &&
           n_others == 0;
}

/* An engine starts a step a little after it was planned, and so do recorded steps. */
static void stamp_starts(struct replica *replica, int64_t start_ns)
{
    for (size_t i = 0; i < replica->n_planned; i++) {
        struct live_request *r = replica->planned[i].r;
        if (r->first_scheduled_ns == replica->desc.start_ns)
            r->first_scheduled_ns = start_ns;
    }
}

int replica_end(struct replica *replica, const struct ifl_done *done, struct ifl_recorder *recorder,
                struct ifl_error *error)
{
    const int64_t end_ns = done->end_ns;
    const int32_t n_steps = 1 + replica->n_untold;
    const size_t n_requests = (replica->ticks ? replica->cohort.n : 0) + replica->n_planned;
    int rc = 0;
    replica->ends_ns[replica->n_untold] = end_ns;
    replica->busy = false;
    replica->view.n_in_flight = 0;
    replica->n_untold = 0;
    replica->view.step++;
    replica->view.now_ns = end_ns;
    replica_stamp_record(replica, done);
    if (done->start_ns != replica->desc.start_ns)
        stamp_starts(replica, done->start_ns);
    if (replica->desc.totals.n_prefill_tokens > 0)
        replica->view.last_prefill_ns = end_ns - done->start_ns;
    replica->n_barren_steps++;
    replica->n_decodes_gone = 0;
    if (replica->ticks) {
        replica->n_barren_steps = 0;
        rc = replica_tick(replica, end_ns, recorder, error);
        end_decodes(replica);
        replica_fork_beams(replica);
    }
    if (rc == 0)
        rc = end_prompts(replica, end_ns, recorder, error);
    if (rc == 0)
        rc = check_progress(replica, error);
    if (rc == 0)
        rc = ifl_record_step(recorder, &replica->record, error);
    if (replica->on_step_end.n > 0)
        tell_modules(replica, replica->desc.step, n_steps,
                     n_steps > 1 ? replica->untold_start_ns : done->start_ns, n_requests,
                     replica->record.preempted);
    join_decoding(replica);
    let_go(replica);
    if (replica->n_gone > 0 && !outlasts_finishes(replica))
        replica->promise.n_steps = 0;
    return rc;
}
