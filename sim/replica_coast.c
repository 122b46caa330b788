/* Steps that follow one another while nothing happens: the same requests decode, the promise holds,
 * nobody ends. One by one, or a stretch at a time where all that changes are sums. */
#include "replica.h"

bool replica_coasts(const struct replica *replica)
{
    const struct ifl_step_desc *desc = &replica->desc;
    return replica->promise.n_steps > 0 && replica->ticks && replica->n_planned == 0 &&
           desc->n_outs + desc->n_ins + desc->n_copies == 0 && !replica->wants_work &&
           cohort_ticks_left(&replica->cohort) > 0;
}

/* ---- one by one ---- */

int replica_end_tick(struct replica *replica, const struct ifl_done *done,
                     struct ifl_recorder *recorder, struct ifl_error *error)
{
    replica->tick_ns = done->end_ns - done->start_ns;
    if (replica->tells_each)
        return replica_end(replica, done, recorder, error);
    if (replica->n_untold++ == 0)
        replica->untold_start_ns = done->start_ns;
    replica->busy = false;
    replica->view.n_in_flight = 0;
    replica->view.step++;
    replica->view.now_ns = done->end_ns;
    replica->n_barren_steps = 0;
    replica_stamp_record(replica, done);
    const int rc = replica_tick(replica, done->end_ns, recorder, error);
    return rc < 0 ? rc : ifl_record_step(recorder, &replica->record, error);
}

bool replica_next_tick(struct replica *replica, int64_t now_ns)
{
    const struct ifl_promise *promise = &replica->promise;
    if (replica->tells_each)
        return replica_repeat(replica, now_ns) && replica_commit(replica);
    const int32_t n_new = replica_growing_blocks(replica);
    if (promise->n_steps <= 0 || now_ns > promise->until_ns ||
        !replica_tick_fits(replica, n_new, promise->min_free_blocks) ||
        replica_tick_may_lose_hits(replica, n_new))
        return false;
    if (n_new > 0)
        replica_grow(replica);
    replica->promise.n_steps--;
    replica->busy = true;
    replica->view.n_in_flight = 1;
    replica->desc.step = replica->view.step;
    replica->desc.start_ns = now_ns;
    replica->desc.totals.decode_context = replica->cohort.context + replica->cohort.n_seqs;
    replica->kv_token_slots += replica->cohort.n_seqs;
    replica->record.step = replica->view.step;
    replica->record.context_tokens = replica->desc.totals.decode_context;
    replica_record_pool(replica);
    return true;
}

/* ---- a stretch at a time ---- */

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

size_t replica_stretch_steps(const struct replica *replica, int64_t until_ns)
{
    if (!replica_coasts(replica))
        return 1;
    const int64_t until_promised_ns = lesser(until_ns, replica->promise.until_ns);
    const int64_t room_ns = until_promised_ns - replica->desc.start_ns;
    const double n_alike = (double)room_ns / (double)replica->tick_ns;
    const int64_t n_promised = (int64_t)replica->promise.n_steps + 1;
    const int64_t n_left = lesser(n_promised, cohort_ticks_left(&replica->cohort));
    const int64_t n_most = lesser(n_left, REPLICA_MAX_STRETCH);
    if (!(n_alike > 0))
        return 1;
    return n_alike < (double)n_most ? 1 + (size_t)n_alike : (size_t)n_most;
}

/* The blocks for the tick under way, where they are a number and nothing else. */
static bool grow_by_count(struct replica *replica)
{
    const struct cohort *cohort = &replica->cohort;
    const int32_t n = cohort->n_counted[cohort->phase];
    if (!cohort_grows_by_count(cohort) ||
        !replica_tick_fits(replica, n, replica->promise.min_free_blocks) ||
        replica_tick_may_lose_hits(replica, n))
        return false;
    if (n > 0)
        replica_grow_counted(replica);
    return true;
}

/* How many of the next n steps begin by the promise and end before until_ns. */
static size_t count_timely(const struct replica *replica, const int64_t *duration_ns, size_t n,
                           int64_t until_ns)
{
    const int64_t promised_ns = replica->promise.until_ns;
    int64_t now_ns = replica->view.now_ns;
    size_t i = 0;
    for (; i < n && duration_ns[i] < until_ns - now_ns && now_ns <= promised_ns; i++)
        now_ns += duration_ns[i];
    return i;
}

static int64_t sum_ns(const int64_t *ns, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ns[i];
    return sum;
}

/* As many of n steps as there is room for: use[*n_uses] of the pool. */
static size_t fly(struct replica *replica, size_t n, struct ifl_pool_use *use, size_t *n_uses)
{
    size_t i = 0;
    *n_uses = 0;
    while (i < n && grow_by_count(replica)) {
        i += cohort_pass(&replica->cohort, n - i);
        use[(*n_uses)++] = (struct ifl_pool_use){.until = i,
                                                 .used_blocks = kv_used(&replica->kv),
                                                 .held_slots = replica_held_slots(replica),
                                                 .internal_slots = replica->kv_internal_slots};
    }
    return i;
}

/* As the step that has just ended, one token later. */
static void describe_first(const struct replica *replica, struct ifl_step_record *first)
{
    const struct cohort *cohort = &replica->cohort;
    *first = replica->record;
    first->step = replica->view.step;
    first->start_ns = replica->view.now_ns;
    first->gap_ns = 0;
    first->context_tokens = cohort->context + cohort->n_seqs;
    first->kv_token_slots = replica->kv_token_slots + cohort->n_seqs;
}

int replica_stretch(struct replica *replica, const int64_t *duration_ns, size_t n, int64_t until_ns,
                    struct ifl_recorder *recorder, struct ifl_error *error)
{
    struct ifl_pool_use use[REPLICA_MAX_STRETCH];
    struct ifl_stretch_record record;
    n = count_timely(replica, duration_ns, n, until_ns);
    if (n == 0 || replica->beams.search || replica->tells_each)
        return 0;
    describe_first(replica, &record.first);
    record.n = fly(replica, n, use, &record.n_uses);
    if (record.n == 0)
        return 0;
    record.n_requests = (int32_t)replica->cohort.n;
    record.duration_ns = duration_ns;
    record.use = use;
    replica->view.now_ns = record.first.start_ns + sum_ns(duration_ns, record.n);
    replica->view.step += record.n;
    replica->n_untold += (int32_t)record.n;
    replica->promise.n_steps -= (int32_t)record.n;
    replica->kv_token_slots += (int64_t)record.n * replica->cohort.n_seqs;
    replica->last_end_ns = replica->view.now_ns;
    replica->tick_ns = duration_ns[record.n - 1];
    if (cohort_note_gaps(&replica->cohort, duration_ns, record.n, replica->view.now_ns) < 0)
        return ifl_fail_nomem(error);
    const int rc = ifl_record_stretch(recorder, &record, error);
    return rc < 0 ? rc : (int)record.n;
}
