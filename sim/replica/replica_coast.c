/* Steps that follow one another without an event: the same requests decode, the promise holds, and
 * no request ends. They are ended one by one or, if only sums change, a stretch of many at once. */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"

bool replica_coasts(const struct replica *replica)
{
    return replica->in_flight.only_ticks && replica->plan.promise.n_steps > 0 &&
           cohort_ticks_left(&replica->here.cohort) > 0;
}

/* ---- one by one ---- */

/* Ends the committed step and n - 1 behind it, the last of which took last_ns. */
IFL_HOT static void end_ticks(struct replica *replica, const struct ifl_done *first, size_t n,
                              int64_t last_ns)
{
    view_end(&replica->view, n, in_flight_pass(&replica->in_flight, first, n, last_ns));
}

static int end_tick(struct replica *replica, const struct ifl_done *done,
                    struct ifl_recorder *recorder, struct ifl_error *error)
{
    in_flight_note_end(&replica->in_flight, done->end_ns);
    end_ticks(replica, done, 1, done->end_ns - done->start_ns);
    const int rc = replica_tick(replica, done->end_ns, recorder, error);
    return rc < 0 ? rc : ifl_record_step(recorder, &replica->in_flight.record, error);
}

IFL_HOT bool replica_next_tick(struct replica *replica, int64_t now_ns)
{
    ifl_assert(!replica->in_flight.busy);
    const struct ifl_promise *promise = &replica->plan.promise;
    const bool may_shrink = replica_tick_may_shrink(replica);
    const int32_t n_new = replica_growing_blocks(replica);
    if (may_shrink || promise->n_steps <= 0 || now_ns > promise->until_ns ||
        !replica_tick_fits(replica, n_new, promise->min_free_blocks) ||
        replica_tick_may_lose_hits(replica, n_new))
        return false;
    if (n_new > 0)
        replica_grow(replica);
    plan_use_promise(&replica->plan, 1);
    accounts_add_tokens(&replica->kv, replica->here.cohort.n_seqs);
    view_submit(&replica->view);
    in_flight_submit_tick(replica, now_ns);
    return true;
}

/* ---- a stretch at a time ---- */

/* An estimate from the duration of the last tick. A multiple of four, the width of vectors, if the
 * context grows alike for so long. */
IFL_HOT size_t replica_stretch_steps(const struct replica *replica, int64_t until_ns)
{
    enum { VECTOR = 4 };
    if (!replica_coasts(replica) || cohort_is_ragged(&replica->here.cohort) ||
        replica->plan.pads_for_ended)
        return 1;
    const int64_t until_promised_ns = ifl_min(until_ns, replica->plan.promise.until_ns);
    const int64_t room_ns = until_promised_ns - replica->in_flight.desc.start_ns;
    const double n_alike = (double)room_ns / (double)replica->in_flight.tick_ns;
    const int64_t n_promised = (int64_t)replica->plan.promise.n_steps + 1;
    const int64_t n_left = ifl_min(n_promised, cohort_ticks_left(&replica->here.cohort) + 1);
    const int64_t n_most = ifl_min(n_left, REPLICA_MAX_STRETCH);
    const double n = 1 + n_alike < (double)n_most ? 1 + n_alike : (double)n_most;
    const size_t n_steps = n > 1 ? ((size_t)n + VECTOR - 1) / VECTOR * VECTOR : 1;
    return cohort_ticks_alike(&replica->here.cohort, n_steps);
}

/* Blocks that ticks may take from now on. Negative: not even a tick that takes none may follow. */
static int32_t blocks_to_spare(const struct replica *replica)
{
    const struct kv_pool *kv = &replica->kv.device;
    const int32_t n = kv->n_free - replica->plan.promise.min_free_blocks;
    if (IFL_RARE(kv->contiguous) && n > 0)
        return 0;
    return replica_tick_may_lose_hits(replica, n) ? kv->n_free - kv->cache.n_idle : n;
}

/* Each member takes at most one block more than its new tokens fill. */
IFL_HOT size_t replica_sure_ticks(const struct replica *replica, size_t n)
{
    const struct cohort *cohort = &replica->here.cohort;
    const int64_t n_left = cohort_ticks_left(cohort);
    const int64_t n_ticks =
        ifl_min((int64_t)n, ifl_min((int64_t)replica->plan.promise.n_steps, n_left));
    const int64_t n_blocks = cohort->n_seqs * (n_ticks / replica->fixed.block.tokens + 1);
    return replica->fixed.plain && n_blocks <= blocks_to_spare(replica) ? (size_t)n_ticks : 0;
}

/* A request has arrived in the step that is under way: rows of steps tell it from the next one on,
 * and what the plan behind that one knows depends on when that one begins. */
static bool has_one_more(const struct replica *replica)
{
    return replica->in_flight.record.waiting != (int32_t)replica->here.waiting.n;
}

/* True if a step changes only sums: there are no beams, no request speculates, no member is fresh,
 * all members had their last token when this step began, and the next one is not padded less. */
static bool stretches(const struct replica *replica)
{
    const struct cohort *cohort = &replica->here.cohort;
    if (IFL_RARE(replica->fixed.overlap.hindsight) && has_one_more(replica))
        return false;
    if (IFL_RARE(!replica->fixed.plain) &&
        (replica->fixed.beams.search || cohort_is_ragged(cohort)))
        return false;
    return cohort->n_fresh == 0 && cohort->last_end_ns == replica->in_flight.desc.start_ns &&
           !replica->plan.pads_for_ended;
}

/* Lets the committed tick pass, and those behind it, at most n in all, as long as their blocks are
 * free and taken by count alone. Returns how many; *uses says how they use the pool. */
static size_t let_ticks_pass(struct replica *replica, size_t n, struct cohort_uses *uses)
{
    const int32_t most = blocks_to_spare(replica), n_used = kv_used(&replica->kv.device);
    const int64_t n_internal = replica->kv.internal_slots;
    uses->of[0] = (struct ifl_pool_use){0, n_used, n_internal};
    n = cohort_pass(&replica->here.cohort, most < 0 ? 1 : n, n_used + most, uses);
    const struct ifl_pool_use *last = &uses->of[uses->n - 1];
    accounts_add_unused(&replica->kv, last->internal_slots - n_internal);
    if (last->used_blocks > n_used)
        kv_take(&replica->kv.device, last->used_blocks - n_used, NULL);
    return n;
}

/* True if each gap is longer than the one in front of it: contexts grow, and with them gaps. */
static bool lengthen(const int64_t *gap_ns, size_t n)
{
    int64_t signs = 0;
    for (size_t i = 0; i + 1 < n; i++)
        signs |= gap_ns[i + 1] - gap_ns[i] - 1;
    return signs >= 0;
}

IFL_HOT static int stretch(struct replica *replica, const struct ifl_done *done,
                           const int64_t *duration_ns, size_t n, int64_t until_ns,
                           struct ifl_recorder *recorder, struct ifl_error *error)
{
    struct ifl_pool_use use[REPLICA_MAX_STRETCH];
    struct ifl_stretch_record record;
    const int64_t *end_ns = replica->in_flight.ends_ns + replica->in_flight.n_untold;
    n = (size_t)ifl_min((int64_t)n, ifl_min((int64_t)replica->plan.promise.n_steps + 1,
                                            cohort_ticks_left(&replica->here.cohort)));
    n = cohort_ticks_alike(&replica->here.cohort, n);
    const int32_t n_full_seqs = replica->here.cohort.n_full_seqs;
    n = in_flight_foresee(&replica->in_flight, duration_ns, n, until_ns,
                          replica->plan.promise.until_ns);
    struct cohort_uses uses = {.of = use};
    record.n = let_ticks_pass(replica, n, &uses);
    record.n_uses = uses.n;
    record.first = &replica->in_flight.record;
    record.n_requests = (int32_t)replica->here.cohort.n;
    record.block_tokens = replica->fixed.limits.block_tokens;
    record.slack_blocks = replica_slack_blocks(replica);
    record.duration_ns = duration_ns;
    record.lengthens = lengthen(duration_ns, record.n);
    record.end_ns = end_ns;
    record.use = use;
    end_ticks(replica, done, record.n, duration_ns[record.n - 1]);
    plan_use_promise(&replica->plan, (int32_t)record.n - 1);
    accounts_add_tokens(&replica->kv, (int64_t)(record.n - 1) * replica->here.cohort.n_seqs -
                                          (int64_t)record.n * n_full_seqs);
    if (cohort_note_gaps(&replica->here.cohort, duration_ns, record.n, record.lengthens,
                         replica->view.now_ns) < 0)
        return ifl_fail_nomem(error);
    const int rc = ifl_record_stretch(recorder, &record, error);
    return rc < 0 ? rc : (int)record.n;
}

IFL_HOT int replica_coast(struct replica *replica, const struct ifl_done *done,
                          const int64_t *duration_ns, size_t n, int64_t until_ns,
                          struct ifl_recorder *recorder, struct ifl_error *error)
{
    ifl_assert(replica->in_flight.busy && replica_coasts(replica));
    ifl_assert(n > 0 && done->end_ns < until_ns);
    const bool several = n > 1 && done->end_ns + duration_ns[1] < until_ns;
    if (several && stretches(replica))
        return stretch(replica, done, duration_ns, n, until_ns, recorder, error);
    const int rc = end_tick(replica, done, recorder, error);
    return rc < 0 ? rc : 1;
}
