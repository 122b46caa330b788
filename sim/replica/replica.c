/* Queues, modules and plans of a replica. step_builder.c has what a policy may do in a plan;
 * replica_step.c executes the plan. */
#include "replica/replica_parts.h"

#include "inflight/minmax.h"

#include "replica/step_lists.h"

/* ---- joining ---- */

/* Every array that is filled within a plan has room for twice the requests here, so that plans and
 * steps never allocate. (A request may be started, preempted and started again in one plan.) */
IFL_APART static int make_room(struct replica *replica, size_t n_here)
{
    /* Few: a fleet may have thousands of replicas. Half of it is for requests (here.h), so that
     * less than fourfold would soon be too little again. */
    const size_t n = n_here < 4 ? 16 : 4 * n_here;
    const bool groups = replica->fixed.max_samples > 1;
    if (plan_reserve(&replica->plan, &replica->fixed.limits, groups, n) < 0 ||
        kv_pool_open(&replica->kv.device) < 0 || kv_pool_open(&replica->kv.host) < 0 ||
        rankings_reserve(&replica->ranks, n) < 0 || leaving_reserve(&replica->leaving, n) < 0 ||
        moving_reserve(&replica->moving, n) < 0 || in_flight_reserve(replica, n) < 0)
        return IFL_E_NOMEM;
    return here_reserve(&replica->here, n);
}

static int reserve(struct replica *replica, size_t n_here)
{
    return IFL_RARE(n_here > replica->here.cap) ? make_room(replica, n_here) : 0;
}

static void tell_join(struct replica *replica, const struct live_request *r)
{
    FOR_EACH_LISTENER (module, &replica->on, &replica->on.join) {
        const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
        module->policy->on_join(module->self, &replica->view, &r->pub);
        plan_return(&replica->plan, before);
    }
}

/* If every plan ranks the queue anew, the first key is never read. INT64_MAX costs least: it
 * appends. Keys that stood in the last plan may move by now, as with fewer requests that wait; the
 * key would then be of another kind than those of the queue. */
static int64_t first_key(struct replica *replica, struct live_request *r)
{
    if (!replica_keys_move(replica))
        replica_hear_keys(replica);
    return IFL_RARE(replica_keys_move(replica)) ? INT64_MAX : replica_rank(replica, r);
}

/* With no on_join hook and keys that stand, a request in a long queue may wait without a record, as
 * the `struct arrival` that it came as. */
static bool may_wait_undescribed(const struct replica *replica)
{
    return !waiting_is_short(&replica->here.waiting) && replica->on.join.n == 0 &&
           !replica_keys_move(replica) && !replica->fixed.beams.search;
}

/* Of an entry without a record it is not known that the request was held at the gateway. */
static bool was_held(const struct replica *replica, const struct live_request *r)
{
    return IFL_RARE(replica->fixed.overlap.hindsight) && r->joined_ns > r->pub.arrival_ns;
}

static void take_place(struct replica *replica, struct live_request *r,
                       const struct arrival *arrival, bool pinned)
{
    const int64_t key = first_key(replica, r);
    if (!pinned && IFL_RARE(may_wait_undescribed(replica)) && !was_held(replica, r) &&
        waiting_line_up(&replica->here.waiting, arrival, key))
        live_give(&replica->here.pool, r);
    else
        waiting_push(&replica->here.waiting, r, key, r->pub.arrival_ns);
}

IFL_HOT int replica_join(struct replica *replica, const struct arrival *arrival, int64_t now_ns,
                         struct live_request **pinned, struct ifl_error *error)
{
    ifl_assert(now_ns >= arrival->at_ns);
    const size_t n_here = replica_requests(replica) + 1;
    if (live_reserve(&replica->here.pool, n_here) < 0 || reserve(replica, n_here) < 0 ||
        cohort_reserve_ticks(&replica->here.cohort, arrival->n_output) < 0)
        return replica_fail_nomem(replica, error);
    struct live_request *r = live_take(&replica->here.pool);
    live_describe(r, arrival);
    r->joined_ns = now_ns;
    here_join(&replica->here, r);
    r->pub.forks = replica->fixed.beams.search && r->pub.n_seqs > 1;
    replica_tell_run(replica);
    view_set_now(&replica->view, now_ns);
    tell_join(replica, r);
    if (IFL_RARE(replica->fixed.overlap.hindsight))
        replica_promise_arrived(replica, now_ns);
    else
        plan_void_promise(&replica->plan);
    take_place(replica, r, arrival, pinned != NULL);
    if (pinned)
        *pinned = r;
    wakes_end_vain(&replica->wakes);
    return 0;
}

/* The last token of an answer is never computed, so that it takes no slot; but for those that are
 * guessed behind it. */
IFL_APART enum replica_fit replica_fit_group(const struct replica *replica,
                                             const struct arrival *arrival)
{
    const struct ifl_limits *limits = &replica->fixed.limits;
    const struct ifl_request group = {.n_prompt = arrival->n_prompt,
                                      .n_seqs = arrival->said.samples};
    const int64_t n_tokens = (int64_t)arrival->n_prompt + arrival->n_output;
    if (n_tokens > limits->max_model_tokens)
        return REPLICA_BEYOND_MODEL;
    /* All of it, also where K/V is given up: after a recompute it is all there once more. */
    const struct ragged_options *speculation = &replica->fixed.speculation;
    const int64_t n_ahead = n_tokens - 1 + speculation->max_drafts + speculation->lookahead_tokens;
    const int64_t n_held =
        speculation->on ? ifl_min(n_ahead, limits->max_model_tokens) : n_tokens - 1;
    const int32_t n = group_blocks(&group, (int32_t)n_held, replica->fixed.block) +
                      adapters_most(&replica->adapters, arrival->said.adapter) +
                      windows_blocks(&replica->fixed.windows, replica->fixed.block, (int32_t)n_held,
                                     ifl_max(arrival->said.samples, 1));
    return (replica->kv.device.contiguous ? kv_buddy_rounded(n) : n) > limits->n_blocks
               ? REPLICA_BEYOND_POOL
               : REPLICA_FITS;
}

/* ---- planning ---- */

/* What stays 0 in plain replicas. */
IFL_APART static void begin_extras(struct replica *replica)
{
    const struct moving *moving = &replica->moving;
    tiers_open(&replica->tiers);
    plan_count_loaded(&replica->plan, moving->n_loaded);
    view_open_moving(&replica->view, moving);
    if (replica->fixed.swaps_apart) {
        moving_open(&replica->moving);
        plan_count_returning(&replica->plan, moving->n_returning, moving->returning_seqs);
    }
    if (replica->adapters.fixed.n > 0)
        plan_count_adapters(&replica->plan, &replica->adapters);
}

IFL_HOT static void begin_step(struct replica *replica, int64_t now_ns)
{
    view_set_now(&replica->view, now_ns);
    cohort_open(&replica->here.cohort);
    rankings_open(&replica->ranks);
    wakes_open(&replica->wakes);
    waiting_open(&replica->here.waiting);
    kv_cache_open(&replica->kv.device.cache);
    plan_open(&replica->plan, &replica->here, &replica->kv, replica->fixed.max_samples);
    view_open(&replica->view, &replica->here, &replica->kv);
    if (IFL_RARE(!replica->fixed.plain))
        begin_extras(replica);
    if (replica_overlaps(replica))
        in_flight_open(replica);
}

/* True if the plan is some decodes, scheduled one by one, which will then tick without the others.
 * Only in tallied pools: where blocks have numbers, ticks would hand them out in another order. */
static bool picks_decodes(const struct replica *replica)
{
    return replica->plan.n_planned > 0 && replica->plan.n_decodes == replica->plan.n_planned;
}

/* What is planned beside the cohort. */
static size_t n_planned_now(const struct replica *replica)
{
    size_t n = replica->plan.n_planned;
    for (size_t i = 0; IFL_RARE(replica->leaving.n_ended > 0) && i < replica->plan.n_planned; i++)
        n -= replica->plan.planned[i].r && replica->plan.planned[i].r->ended;
    return n;
}

/* picks: the plan may name the decodes one by one. */
static inline bool only_decodes(const struct replica *replica, bool picks)
{
    const struct ifl_step *step = &replica->plan.step;
    const bool decodes =
        replica->plan.ready_all ? n_planned_now(replica) == 0 : picks && picks_decodes(replica);
    return decodes && !replica->fixed.beams.search && step->n_started == 0 &&
           step->n_preempted == 0 && step->n_swapped_in == 0 && replica->plan.n_rejected == 0;
}

IFL_HOT bool replica_only_ticks(const struct replica *replica)
{
    return only_decodes(replica, replica->kv.device.tallied);
}

bool replica_only_decodes(const struct replica *replica)
{
    return only_decodes(replica, true);
}

bool replica_computes(const struct replica *replica, const struct live_request *r)
{
    for (size_t i = 0; i < replica->plan.n_planned; i++)
        if (replica->plan.planned[i].r == r)
            return true;
    return r->in_cohort && replica->in_flight.ticks;
}

/* The batching module makes the promise and is asked nothing. */
static bool was_asked(const struct replica *replica, enum ifl_kind kind)
{
    return kind != IFL_BATCHING && replica->plan.step.asked & 1u << kind;
}

void replica_cut_promise(struct replica *replica, const struct module *module,
                         struct ifl_promise *promise)
{
    const struct ifl_policy *policy = module->policy;
    const struct ifl_policy *before = plan_call(&replica->plan, policy);
    const struct ifl_promise other =
        policy->steady ? policy->steady(module->self, &replica->view, &replica->plan.step)
                       : (struct ifl_promise){0};
    plan_return(&replica->plan, before);
    promise->to_the_last &= !was_asked(replica, policy->kind) || other.to_the_last;
    promise->n_steps = ifl_min(promise->n_steps, other.n_steps);
    promise->until_ns = ifl_min(promise->until_ns, other.until_ns);
    promise->min_free_blocks = ifl_max(promise->min_free_blocks, other.min_free_blocks);
}

/* What guesses yield is told step by step. */
static bool told_of_guesses(const struct replica *replica)
{
    return IFL_RARE(replica->fixed.speculation.on) && replica->on.step_end.n > 0;
}

bool replica_voids(const struct replica *replica)
{
    return replica->kv.device.cache.asked_lost || replica->plan.overruled ||
           told_of_guesses(replica) || tiers_changed_in_plan(&replica->tiers) ||
           replica->leaving.n_early > 0 || moving_swaps(&replica->moving) ||
           replica->moving.room_awaited;
}

IFL_HOT void replica_promise(struct replica *replica, struct ifl_promise promise)
{
    promise.n_steps = ifl_min(promise.n_steps, REPLICA_LONGEST_RUN - 1);
    if (replica->plan.refused_until_ns <= promise.until_ns)
        promise.until_ns = replica->plan.refused_until_ns - 1;
    plan_promise(&replica->plan, promise);
    if (IFL_RARE(replica->leaving.n_ended > 0) && !replica_promise_ended(replica))
        plan_void_promise(&replica->plan);
}

/* Limits the promise of the plan:
 * - It is void unless the step does nothing but tick.
 * - It is void if an admission was overruled: while blocks are taken its yes may become a no, which
 *   a batching module may answer by a preemption.
 * - It ends before the time that a refusal named.
 * - It lasts no longer than the answers of the modules that the plan has asked (`steady`).
 * - It lasts no longer than modules with step hooks are willing to be told of its steps as one
 * run. */
IFL_HOT static void bound_promise(struct replica *replica)
{
    struct ifl_promise promise = replica->plan.promise;
    const struct bound *bound = replica->on.bounds, *end = bound + replica->on.n_bounds;
    if (promise.n_steps <= 0 || !replica_only_ticks(replica) || replica_voids(replica)) {
        plan_void_promise(&replica->plan);
        return;
    }
    for (; bound < end && promise.n_steps > 0; bound++)
        if (bound->asked & replica->plan.step.asked)
            replica_cut_promise(replica, bound->module, &promise);
    replica_promise(replica, promise);
}

IFL_APART static void swap_ahead(struct replica *replica)
{
    const struct module *preempt = &replica->fixed.modules[IFL_PREEMPT];
    const int32_t n_preempted = replica->plan.step.n_preempted;
    plan_ask(&replica->plan, IFL_PREEMPT);
    plan_set_ahead(&replica->plan, preempt->policy);
    preempt->policy->ops.preempt->ahead(preempt->self, &replica->view, &replica->plan.step);
    plan_set_ahead(&replica->plan, NULL);
    replica_note_said(replica, preempt, UINT64_MAX, replica->plan.step.n_preempted - n_preempted);
}

/* What a plan made ahead knows: what had happened when the last step began. */
static void begin_plan(struct replica *replica)
{
    const bool ahead = replica->fixed.overlap.hindsight;
    const bool guesses = ahead && replica->view.n_tries == 0;
    plan_begin(&replica->plan, ahead, guesses ? replica->in_flight.desc.start_ns : IFL_NEVER);
}

/* A request has arrived that the plan does not know of: the next one does. */
static void note_hidden(struct replica *replica)
{
    if (!IFL_RARE(replica->here.last_arrival_ns > replica->plan.known_ns))
        return;
    wakes_ask(&replica->wakes, replica->view.now_ns);
    plan_void_promise(&replica->plan);
}

static inline void end_plan(struct replica *replica)
{
    if (!replica->plan.broken)
        bound_promise(replica);
    plan_end(&replica->plan);
}

IFL_APART static void end_checked_plan(struct replica *replica)
{
    const struct ifl_promise made = replica->plan.promise;
    if (!replica->plan.broken) {
        bound_promise(replica);
        replica_test_promise(replica, made);
    }
    plan_end(&replica->plan);
    replica_check_turn(replica);
}

IFL_HOT int replica_plan(struct replica *replica, int64_t now_ns, struct ifl_error *error)
{
    ifl_assert(!replica->in_flight.busy);
    const struct module *batching = &replica->fixed.modules[IFL_BATCHING];
    const bool stands = replica->plan.promise.n_steps > 0;
    replica_tell_run(replica);
    waiting_tidy(&replica->here.waiting);
    in_flight_note_plan(&replica->in_flight, stands);
    if (IFL_RARE(replica->said.checks))
        replica_check_plan(replica, now_ns, stands);
    begin_step(replica, now_ns);
    replica_note_wanted(replica);
    begin_plan(replica);
    batching->policy->ops.batching->plan(batching->self, &replica->view, &replica->plan.step);
    if (IFL_RARE(replica->on.has_ahead) && !replica->plan.broken)
        swap_ahead(replica);
    note_hidden(replica);
    if (IFL_RARE(replica->said.checks))
        end_checked_plan(replica);
    else
        end_plan(replica);
    if (IFL_RARE(replica->plan.broken)) {
        *error = replica->plan.error;
        return error->code;
    }
    return 0;
}

/* The promise of the plan still holds for a further step, as far as no block is asked for. */
static inline bool stands(const struct replica *replica, int64_t now_ns)
{
    const struct ifl_promise *promise = &replica->plan.promise;
    return promise->n_steps > 0 && now_ns <= promise->until_ns && !replica_overlaps(replica) &&
           !replica_tick_may_shrink(replica);
}

IFL_APART bool replica_keeps_promise(const struct replica *replica, int64_t now_ns)
{
    const struct ifl_promise *promise = &replica->plan.promise;
    if (!stands(replica, now_ns))
        return false;
    const int32_t n_new = replica_growing_blocks(replica);
    const int32_t n_spare = promise->min_free_blocks + replica_blocks_for_ended(replica);
    return replica_tick_fits(replica, n_new, n_spare) &&
           !replica_tick_may_lose_hits(replica, n_new);
}

IFL_HOT bool replica_repeat(struct replica *replica, int64_t now_ns)
{
    ifl_assert(!replica->in_flight.busy);
    const struct ifl_promise *promise = &replica->plan.promise;
    if (!stands(replica, now_ns))
        return false;
    if (replica->kv.device.cached && !replica_keeps_promise(replica, now_ns))
        return false;
    begin_step(replica, now_ns);
    const bool takes = IFL_RARE(replica->leaving.n_ended > 0)
                           ? replica_take_tick_ahead(replica, promise->min_free_blocks)
                           : replica_take_tick(replica, promise->min_free_blocks);
    if (!takes)
        return false;
    plan_use_promise(&replica->plan, 1);
    return true;
}

/* ---- leaving ---- */

static enum ifl_status how_it_ended(const struct live_request *r)
{
    if (r->pub.stale.n_out == r->n_output)
        return r->cut ? IFL_ABORTED : IFL_FINISHED;
    if (r->left != IFL_FINISHED)
        return r->left;
    return live_ran(r) ? IFL_FAILED : IFL_REJECTED;
}

IFL_HOT void replica_report(const struct replica *replica, const struct live_request *r,
                            struct ifl_request_record *record)
{
    const bool answered = r->pub.stale.n_out == r->n_output, finished = answered && !r->cut;
    *record = (struct ifl_request_record){
        .request_id = r->row,
        .serial = r->pub.serial,
        .replica = (int32_t)replica->fixed.number,
        .client = r->pub.client,
        .adapter = r->pub.adapter,
        .arrival_ns = r->sent_ns,
        .first_scheduled_ns = r->first_scheduled_ns,
        .first_token_ns = r->pub.first_token_ns,
        .finish_ns = finished ? r->last_token_ns : IFL_NEVER,
        .max_itl_ns = r->max_itl_ns,
        .stalled_ns = r->stalled_ns,
        .stalled_prefill_ns = r->stalled_prefill_ns,
        .ttft_slo_ns = r->pub.ttft_slo_ns,
        .tpot_slo_ns = r->pub.tpot_slo_ns,
        .prompt_tokens = r->pub.n_prompt,
        .output_tokens = answered ? r->n_output : r->pub.stale.n_out,
        .cached_tokens = r->cached_tokens,
        .preemptions = r->pub.n_preempted,
        .swap_outs = r->rare->n_swap_outs,
        .wasted_tokens =
            answered && r->cut ? r->pub.stale.n_computed - r->cached_tokens : r->n_lost,
        .status = how_it_ended(r),
    };
    if (IFL_RARE(replica->tiers.on || r->handover > 0))
        replica_report_tiers(r, record);
    record->wasted_steps = record->status == IFL_FINISHED ? 0 : r->n_steps;
    record->n_migrations = r->rare->migrations.n;
    record->migrating_ns = r->rare->migrations.moving_ns;
    record->down_ns = r->rare->migrations.down_ns;
}

static void tell_leave(struct replica *replica, const struct live_request *r)
{
    static const enum ifl_leave why_of[IFL_N_STATUSES] = {
        [IFL_FINISHED] = IFL_LEAVE_FINISHED, [IFL_REJECTED] = IFL_LEAVE_REJECTED,
        [IFL_FAILED] = IFL_LEAVE_REJECTED,   [IFL_ABORTED] = IFL_LEAVE_ABORTED,
        [IFL_TIMED_OUT] = IFL_LEAVE_ABORTED, [IFL_SHED] = IFL_LEAVE_REJECTED};
    const enum ifl_leave other = r->hands_over ? IFL_LEAVE_MOVED : IFL_LEAVE_ABORTED;
    const enum ifl_leave why = r->silent ? other : why_of[how_it_ended(r)];
    FOR_EACH_LISTENER (module, &replica->on, &replica->on.leave) {
        const struct ifl_policy *before = plan_call(&replica->plan, module->policy);
        module->policy->on_leave(module->self, &replica->view, &r->pub, why);
        plan_return(&replica->plan, before);
    }
}

IFL_HOT static void retire(struct replica *replica, struct live_request *r)
{
    if (IFL_RARE(r->stays_steps > 0))
        leaving_forget_early(&replica->leaving, r);
    tell_leave(replica, r);
    replica_forget_rank(replica, r);
    live_give(&replica->here.pool, r);
}

IFL_HOT void replica_recycle(struct replica *replica)
{
    for (size_t i = 0; i < replica->leaving.n_gone; i++) {
        struct live_request *r = replica->leaving.gone[i];
        here_leave(&replica->here, r);
        if (!r->ended)
            retire(replica, r);
    }
    leaving_clear_gone(&replica->leaving);
}

IFL_APART void replica_let_ended_go(struct replica *replica)
{
    for (size_t i = 0; i < replica->leaving.n_ended; i++) {
        struct live_request *r = replica->leaving.ended[i];
        r->ended = false;
        if (r->pub.state == IFL_RUNNING) {
            plan_uncount_running(&replica->plan, r);
            here_stop(&replica->here, r);
            replica_drop_blocks(replica, r, true);
            r->pub.state = IFL_DONE;
        }
        retire(replica, r);
    }
    leaving_clear_ended(&replica->leaving);
}
