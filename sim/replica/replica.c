/* Queues, modules and plans. What a policy may do in a plan is in step_builder.c, what becomes of
 * the plan in replica_step.c. */
#include "replica/replica_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "replica/step_lists.h"

/* ---- creating and destroying ---- */

/* Fields that are the same in every description and every record. */
static void fill_constants(struct replica *replica)
{
    const struct ifl_limits *limits = &replica->limits;
    replica->desc.replica = replica->number;
    replica->desc.outs = replica->outs;
    replica->desc.ins = replica->ins;
    replica->desc.copies = replica->copies;
    replica->record.replica = (int32_t)replica->number;
    replica->record.kv_total_blocks = limits->n_blocks;
    replica->record.kv_pool_slots = (int64_t)limits->n_blocks * limits->block_tokens;
}

static void refresh(const struct ifl_ticks *ticks, const struct ifl_request *r)
{
    const size_t offset = offsetof(struct replica, cohort.ticks);
    step_show((struct replica *)((uintptr_t)ticks - offset), live(r));
    live(r)->pub.read_at = ticks->n;
}

static int create_pools(struct replica *replica, const struct replica_options *options,
                        size_t parts_bytes)
{
    const struct ifl_limits *limits = &options->limits;
    const size_t n_copies = (size_t)limits->n_host_blocks + 1; /* each takes a host block */
    const struct module *evict = &replica->modules[IFL_EVICT];
    const struct kv_cache_options cache = {
        .kind = options->prefix_cache,
        .unhashed = options->unhashed,
        .publish = options->publish,
        .evict = evict->policy ? evict->policy->ops.evict : NULL,
        .evict_self = evict->self,
        .view = &replica->view,
        .block_tokens = limits->block_tokens,
    };
    live_pool_init(&replica->pool, parts_bytes);
    replica->waiting.pool = &replica->pool;
    replica->outs = malloc(n_copies * sizeof *replica->outs);
    replica->ins = malloc(n_copies * sizeof *replica->ins);
    replica->copies = malloc(((size_t)limits->n_blocks + 1) * sizeof *replica->copies);
    if (!replica->outs || !replica->ins || !replica->copies ||
        kv_pool_create(&replica->kv, limits->n_blocks, options->allocator, &cache) < 0 ||
        kv_pool_create(&replica->host, limits->n_host_blocks, KV_PAGED, NULL) < 0)
        return IFL_E_NOMEM;
    fill_constants(replica);
    if (!replica->wants_work && replica->max_samples == 1) {
        /* then block numbers are never read, but for the first of a contiguous run */
        kv_pool_tally(&replica->kv);
        kv_pool_tally(&replica->host);
    }
    const int rc = cohort_create(&replica->cohort, replica->block);
    replica->cohort.ticks.refresh = refresh;
    return rc;
}

static struct replica *seen_in(const struct ifl_view *view)
{
    return (struct replica *)((uintptr_t)view - offsetof(struct replica, view));
}

static struct ifl_step *plan_of(const struct ifl_view *view)
{
    struct replica *replica = seen_in(view);
    replica->keys_read_plan = true; /* perhaps not by the order */
    return replica->planning ? &replica->step : NULL;
}

static void rerank(const struct ifl_view *view, const struct ifl_request *request)
{
    struct replica *replica = seen_in(view);
    struct live_request *r = live(request);
    if (request->state == IFL_RUNNING)
        replica_note_rank(replica, RANKED_RUNNING, r);
    if (request->state == IFL_SWAPPED)
        replica_note_rank(replica, RANKED_SWAPPED, r);
    if (request->state == IFL_WAITING)
        waiting_rerank(&replica->waiting, r, replica_rank(replica, r),
                       ifl_queued_since_ns(request));
}

static void listen(struct listeners *listeners, const struct module *module, bool hears)
{
    if (hears)
        listeners->of[listeners->n++] = module;
}

static void note_wishes(struct replica *replica, const struct module *module)
{
    const struct ifl_policy *policy = module->policy;
    listen(&replica->on_join, module, policy->on_join != NULL);
    listen(&replica->on_start, module, policy->on_start != NULL);
    listen(&replica->on_undo, module, policy->on_undo != NULL);
    listen(&replica->on_preempt, module, policy->on_preempt != NULL);
    listen(&replica->on_leave, module, policy->on_leave != NULL);
    listen(&replica->on_step_start, module, policy->on_step_start != NULL);
    listen(&replica->on_step_end, module, policy->on_step_end != NULL);
    if (policy->kind == IFL_PREEMPT)
        replica->has_ahead = policy->ops.preempt->ahead != NULL;
}

static void open_view(struct replica *replica)
{
    struct ifl_view *view = &replica->view;
    view->n_running = replica->running.n;
    view->n_waiting = replica->waiting.n;
    view->n_swapped = replica->n_swapped;
    view->n_free_blocks = replica->kv.n_free;
    view->n_free_host_blocks = replica->host.n_free;
}

int replica_create(struct replica *replica, const struct replica_options *options,
                   struct ifl_error *error)
{
    *replica = (struct replica){
        .step.ops = &replica_step_ops,
        .limits = options->limits,
        .block = kv_block_of(options->limits.block_tokens),
        .swap_full = options->swap_full,
        .seed = options->seed,
        .number = options->number,
        .wants_work = options->wants_work,
        .max_samples = ifl_max(options->max_samples, 1),
        .beams = options->beams,
        .last_end_ns = IFL_NEVER,
    };
    replica->beams.search &= replica->max_samples > 1;
    replica->limits.contiguous = options->allocator == KV_BUDDY;
    replica->view.limits = &replica->limits;
    replica->view.plan = plan_of;
    replica->view.rerank = rerank;
    for (int which = 0; which < N_RANKED; which++)
        replica->by_rank[which].which = (enum ranked_list)which;
    size_t parts_bytes = 0;
    for (int i = 0; i < N_MODULES; i++) {
        const struct module_config *config = &options->modules[i];
        if (!config->policy || i == IFL_ROUTE || i == IFL_SCALE)
            continue;
        const int rc =
            module_create(&replica->modules[i], config, &replica->limits, &parts_bytes, error);
        if (rc < 0)
            return rc;
        note_wishes(replica, &replica->modules[i]);
    }
    if (create_pools(replica, options, parts_bytes) < 0)
        return ifl_fail_nomem(error);
    open_view(replica);
    return 0;
}

static void free_arrays(struct replica *replica)
{
    void *const arrays[] = {
        replica->swapped,    replica->scheduled.of, replica->planned, replica->by_start.of,
        replica->started.of, replica->asked,        replica->keys,    replica->gone,
        replica->work,       replica->results,      replica->outs,    replica->ins,
        replica->copies,     replica->tables,       replica->ended,
    };
    for (int which = 0; which < N_RANKED; which++) {
        free(replica->by_rank[which].room);
        free(replica->by_rank[which].noted);
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

void replica_destroy(struct replica *replica)
{
    FOR_EACH_MODULE (module, replica)
        module_destroy(module);
    free_arrays(replica);
    kv_pool_destroy(&replica->kv);
    kv_pool_destroy(&replica->host);
    waiting_destroy(&replica->waiting);
    cohort_destroy(&replica->cohort);
    live_pool_finish(&replica->pool);
    replica_check_finish(replica);
    *replica = (struct replica){0};
}

/* ---- joining ---- */

#define GROW(array, n_used) (array_grow(&(array), n_used, n, sizeof *(array)) < 0)

/* Every array that is filled within a plan has room for twice the requests here, so that plans and
 * steps never allocate. (A request may be started, preempted and started again in one plan.) */
static int reserve(struct replica *replica, size_t n_here)
{
    if (n_here <= replica->cap)
        return 0;
    const size_t n = n_here < 64 ? 256 : 4 * n_here;
    if (GROW(replica->swapped, replica->n_swapped) || GROW(replica->planned, replica->n_planned) ||
        GROW(replica->by_start.of, replica->by_start.n) ||
        GROW(replica->started.of, replica->started.n) ||
        GROW(replica->scheduled.of, replica->scheduled.n) || GROW(replica->keys, 0) ||
        GROW(replica->asked, 0) || GROW(replica->gone, replica->n_gone) ||
        GROW(replica->ended, replica->n_ended))
        return IFL_E_NOMEM;
    for (int which = 0; which < N_RANKED; which++) {
        struct ranking *list = &replica->by_rank[which];
        if (GROW(list->room, list->first + list->n) || GROW(list->noted, list->n_noted))
            return IFL_E_NOMEM;
        list->cap = n;
    }
    if (replica->wants_work &&
        array_grow(&replica->work, replica->desc.n_work, n * (size_t)replica->max_samples,
                   sizeof *replica->work) < 0)
        return IFL_E_NOMEM;
    if (replica->on_step_end.n > 0 && GROW(replica->results, 0))
        return IFL_E_NOMEM;
    if (waiting_reserve(&replica->waiting, n) < 0 || cohort_reserve(&replica->cohort, n) < 0)
        return IFL_E_NOMEM;
    replica->cap = n / 2;
    return 0;
}

int64_t replica_rank(struct replica *replica, struct live_request *r)
{
    const struct module *order = &replica->modules[IFL_ORDER];
    const struct ifl_request *const request = &r->pub;
    int64_t key;
    order->policy->ops.order->rank(order->self, &replica->view, &request, 1, &key);
    return key;
}

int64_t replica_rank_now(struct replica *replica, struct live_request *r)
{
    const int64_t arrival_ns = r->pub.arrival_ns;
    r->pub.arrival_ns = replica->view.now_ns;
    const int64_t key = replica_rank(replica, r);
    r->pub.arrival_ns = arrival_ns;
    return key;
}

static void tell_join(struct replica *replica, const struct live_request *r)
{
    FOR_EACH_LISTENER (module, &replica->on_join)
        module->policy->on_join(module->self, &replica->view, &r->pub);
}

/* If every plan ranks the queue anew, the first key is never read. INT64_MAX costs least: it
 * appends. */
static int64_t first_key(struct replica *replica, struct live_request *r)
{
    return replica_keys_move(replica) ? INT64_MAX : replica_rank(replica, r);
}

/* With no on_join hook and keys that stand, a request in a long queue may wait without a record, as
 * the `struct arrival` that it came as. */
static bool may_wait_undescribed(const struct replica *replica)
{
    return !waiting_is_short(&replica->waiting) && replica->on_join.n == 0 &&
           !replica_keys_move(replica) && !replica->beams.search;
}

static void take_place(struct replica *replica, struct live_request *r,
                       const struct arrival *arrival)
{
    const int64_t key = first_key(replica, r);
    if (may_wait_undescribed(replica) && waiting_line_up(&replica->waiting, arrival, key))
        live_give(&replica->pool, r);
    else
        waiting_push(&replica->waiting, r, key, r->pub.arrival_ns);
}

int replica_join(struct replica *replica, const struct arrival *arrival, int64_t now_ns,
                 struct ifl_error *error)
{
    const size_t n_here = replica_requests(replica) + 1;
    if (live_reserve(&replica->pool, n_here) < 0 || reserve(replica, n_here) < 0 ||
        cohort_reserve_ticks(&replica->cohort, arrival->n_output) < 0)
        return ifl_fail_nomem(error);
    struct live_request *r = live_take(&replica->pool);
    live_describe(r, arrival);
    replica->n_seqs_here += r->pub.n_seqs;
    replica->n_unanswered_tokens += live_prompt_tokens(r);
    r->pub.forks = replica->beams.search && r->pub.n_seqs > 1;
    replica_tell_run(replica);
    replica->view.now_ns = now_ns;
    tell_join(replica, r);
    take_place(replica, r, arrival);
    replica->promise.n_steps = 0;
    replica->n_vain_wakes = 0;
    return 0;
}

/* The last token of an answer is never computed, so that it takes no slot. */
enum replica_fit replica_fit(const struct replica *replica, const struct arrival *arrival)
{
    const struct ifl_limits *limits = &replica->limits;
    const struct ifl_request group = {.n_prompt = arrival->n_prompt,
                                      .n_seqs = arrival->said.samples};
    const int64_t n_tokens = (int64_t)arrival->n_prompt + arrival->n_output;
    if (n_tokens > limits->max_model_tokens)
        return REPLICA_BEYOND_MODEL;
    const int32_t n = group_blocks(&group, (int32_t)n_tokens - 1, replica->block);
    return (replica->kv.contiguous ? kv_buddy_rounded(n) : n) > limits->n_blocks
               ? REPLICA_BEYOND_POOL
               : REPLICA_FITS;
}

/* ---- leaving the device ---- */

void replica_leave(struct replica *replica, struct live_request *r)
{
    if (r->in_cohort)
        cohort_remove(&replica->cohort, r);
    else
        live_remove(&replica->apart, AMONG_PEERS, r);
    live_remove(&replica->running, ON_DEVICE, r);
    replica->n_in_prefill -= !request_decodes(&r->pub);
}

/* ---- planning ---- */

static void rank_waiting(void *context, const struct ifl_request *const *of, size_t n, int64_t *key)
{
    struct replica *replica = context;
    const struct module *order = &replica->modules[IFL_ORDER];
    for (size_t i = 0; i < n; i++)
        replica_look_up(replica, live(of[i]));
    order->policy->ops.order->rank(order->self, &replica->view, of, n, key);
}

void replica_rank_anew(struct replica *replica)
{
    replica->ranks_stale = false;
    waiting_rekey(&replica->waiting, rank_waiting, replica);
}

static int32_t running_seqs(const struct replica *replica)
{
    int32_t n = (int32_t)replica->running.n;
    if (replica->max_samples > 1)
        FOR_EACH_LIVE (r, &replica->running, ON_DEVICE)
            n += r->pub.n_seqs - 1;
    return n;
}

/* Resets what the policy holds, field by field: clearing it first would cost as much as a plan. */
static void open_step(struct replica *replica)
{
    struct ifl_step *step = &replica->step;
    step->asked = 1u << IFL_BATCHING;
    step->note = 0;
    step->n_tokens = step->n_requests = 0;
    step->n_prefill_tokens = step->n_prefill_requests = 0;
    step->n_running_requests = (int32_t)replica->running.n;
    step->n_running_seqs = running_seqs(replica);
    step->n_in_prefill = replica->n_in_prefill;
    step->n_waiting = (int32_t)replica->waiting.n;
    step->n_swapped = (int32_t)replica->n_swapped;
    step->n_free_blocks = replica->kv.n_free;
    step->n_free_host_blocks = replica->host.n_free;
    step->n_started = step->n_preempted = step->n_swapped_out = step->n_swapped_in = 0;
}

static void begin_step(struct replica *replica, int64_t now_ns)
{
    replica->view.now_ns = now_ns;
    replica->n_planned = replica->n_decodes = replica->n_members = 0;
    replica->n_outs = replica->n_ins = replica->n_copies = 0;
    replica->n_rejected = replica->n_ended_victims = 0;
    replica->ready_all = replica->cohort.grown = false;
    replica->by_start.taken = false;
    for (int which = 0; which < N_RANKED; which++)
        replica->by_rank[which].taken = false;
    replica->started.n = 0;
    replica->first_start = replica->n_starts;
    replica->wake_ns = replica->refused_until_ns = IFL_NEVER;
    replica->keys_asked = false;
    for (int state = IFL_WAITING; state <= IFL_SWAPPED; state++)
        replica->refused[state].r = NULL;
    waiting_open(&replica->waiting);
    replica->kv.cache.asked_lost = false;
    open_step(replica);
}

/* True if the plan is some decodes, scheduled one by one, which will then tick without the others.
 * Only in tallied pools: where blocks have numbers, ticks would hand them out in another order. */
static bool picks_decodes(const struct replica *replica)
{
    return !replica->ready_all && replica->kv.tallied && replica->n_planned > 0 &&
           replica->n_decodes == replica->n_planned;
}

bool replica_only_ticks(const struct replica *replica)
{
    const struct ifl_step *step = &replica->step;
    const bool ticks = replica->ready_all ? replica->n_planned == 0 : picks_decodes(replica);
    return ticks && !replica->beams.search && step->n_started == 0 && step->n_preempted == 0 &&
           step->n_swapped_in == 0 && replica->n_rejected == 0;
}

bool replica_ticks_again(const struct replica *replica)
{
    if (!replica_only_ticks(replica))
        return false;
    if (replica->ready_all)
        return true;
    return replica->n_members == replica->n_planned && replica->n_members == replica->cohort.n;
}

/* The batching module makes the promise and is asked nothing. */
static bool was_asked(const struct replica *replica, enum ifl_kind kind)
{
    return kind != IFL_BATCHING && replica->step.asked & 1u << kind;
}

/* Limits the promise of the plan:
 * - It is void unless the step does nothing but tick.
 * - It ends before the time that a refusal named.
 * - It lasts no longer than the answers of the modules that the plan has asked (`steady`).
 * - It lasts no longer than modules with step hooks are willing to be told of its steps as one
 * run. */
static void bound_promise(struct replica *replica)
{
    struct ifl_promise *promise = &replica->promise;
    if (!replica_only_ticks(replica) || replica->kv.cache.asked_lost || replica->n_ended > 0)
        promise->n_steps = 0;
    if (promise->n_steps > REPLICA_LONGEST_RUN - 1)
        promise->n_steps = REPLICA_LONGEST_RUN - 1;
    if (replica->refused_until_ns <= promise->until_ns)
        promise->until_ns = replica->refused_until_ns - 1;
    FOR_EACH_MODULE (module, replica) {
        const struct ifl_policy *policy = module->policy;
        const bool asked = was_asked(replica, policy->kind);
        if (promise->n_steps <= 0 || (!asked && !policy->on_step_start && !policy->on_step_end))
            continue;
        const struct ifl_promise other =
            policy->steady ? policy->steady(module->self, &replica->view, &replica->step)
                           : (struct ifl_promise){0};
        promise->to_the_last &= !asked || other.to_the_last;
        promise->n_steps = ifl_min(promise->n_steps, other.n_steps);
        promise->until_ns = ifl_min(promise->until_ns, other.until_ns);
        if (other.min_free_blocks > promise->min_free_blocks)
            promise->min_free_blocks = other.min_free_blocks;
    }
}

static void swap_ahead(struct replica *replica)
{
    const struct module *preempt = &replica->modules[IFL_PREEMPT];
    if (!replica->has_ahead || replica->broken)
        return;
    replica->step.asked |= 1u << IFL_PREEMPT;
    preempt->policy->ops.preempt->ahead(preempt->self, &replica->view, &replica->step);
}

int replica_plan(struct replica *replica, int64_t now_ns, struct ifl_error *error)
{
    const struct module *batching = &replica->modules[IFL_BATCHING];
    replica_tell_run(replica);
    waiting_tidy(&replica->waiting);
    if (replica->checks)
        replica_forget_said(replica);
    begin_step(replica, now_ns);
    open_view(replica);
    replica_note_wanted(replica);
    replica->promise = (struct ifl_promise){0};
    replica->padding = (struct ifl_padding){0};
    replica->plans_ahead = false;
    replica->planning = true;
    batching->policy->ops.batching->plan(batching->self, &replica->view, &replica->step);
    swap_ahead(replica);
    if (!replica->broken)
        bound_promise(replica);
    replica->planning = false;
    if (replica->broken)
        *error = replica->error;
    return replica->broken ? error->code : 0;
}

bool replica_keeps_promise(const struct replica *replica, int64_t now_ns)
{
    const struct ifl_promise *promise = &replica->promise;
    if (promise->n_steps <= 0 || now_ns > promise->until_ns)
        return false;
    const int32_t n_new = replica_growing_blocks(replica);
    return replica_tick_fits(replica, n_new, promise->min_free_blocks) &&
           !replica_tick_may_lose_hits(replica, n_new);
}

bool replica_repeat(struct replica *replica, int64_t now_ns)
{
    struct ifl_promise *promise = &replica->promise;
    if (promise->n_steps <= 0 || now_ns > promise->until_ns)
        return false;
    if (replica->kv.cached && !replica_keeps_promise(replica, now_ns))
        return false;
    begin_step(replica, now_ns);
    open_view(replica);
    if (!replica_take_tick(replica, promise->min_free_blocks))
        return false;
    promise->n_steps--;
    return true;
}

/* ---- leaving ---- */

void replica_report(const struct replica *replica, const struct live_request *r,
                    struct ifl_request_record *record)
{
    const bool finished = r->pub.stale.n_out == r->n_output;
    *record = (struct ifl_request_record){
        .request_id = r->row,
        .replica = (int32_t)replica->number,
        .arrival_ns = r->pub.arrival_ns,
        .first_scheduled_ns = r->first_scheduled_ns,
        .first_token_ns = r->pub.first_token_ns,
        .finish_ns = finished ? r->last_token_ns : IFL_NEVER,
        .max_itl_ns = r->max_itl_ns,
        .stalled_ns = r->stalled_ns,
        .stalled_prefill_ns = r->stalled_prefill_ns,
        .ttft_slo_ns = r->pub.ttft_slo_ns,
        .tpot_slo_ns = r->pub.tpot_slo_ns,
        .prompt_tokens = r->pub.n_prompt,
        .output_tokens = finished ? r->n_output : r->pub.stale.n_out,
        .cached_tokens = r->cached_tokens,
        .preemptions = r->pub.n_preempted,
        .swap_outs = r->n_swap_outs,
        .status = finished                             ? IFL_FINISHED
                  : r->first_scheduled_ns == IFL_NEVER ? IFL_REJECTED
                                                       : IFL_FAILED,
    };
}

static void tell_leave(struct replica *replica, const struct live_request *r)
{
    const bool finished = r->pub.stale.n_out == r->n_output;
    const enum ifl_leave why = finished ? IFL_LEAVE_FINISHED : IFL_LEAVE_REJECTED;
    FOR_EACH_LISTENER (module, &replica->on_leave)
        module->policy->on_leave(module->self, &replica->view, &r->pub, why);
}

static void retire(struct replica *replica, struct live_request *r)
{
    tell_leave(replica, r);
    replica_forget_rank(replica, r);
    live_give(&replica->pool, r);
}

void replica_recycle(struct replica *replica)
{
    for (size_t i = 0; i < replica->n_gone; i++) {
        struct live_request *r = replica->gone[i];
        replica->n_seqs_here -= r->pub.n_seqs;
        if (r->pub.first_token_ns == IFL_NEVER)
            replica->n_unanswered_tokens -= live_prompt_tokens(r);
        if (!r->ended)
            retire(replica, r);
    }
    replica->n_gone = 0;
}

void replica_let_ended_go(struct replica *replica)
{
    for (size_t i = 0; i < replica->n_ended; i++) {
        struct live_request *r = replica->ended[i];
        r->ended = false;
        if (r->pub.state == IFL_RUNNING) {
            replica->step.n_running_requests--;
            replica->step.n_running_seqs -= r->pub.n_seqs;
            replica_leave(replica, r);
            replica_drop_blocks(replica, r, true);
            r->pub.state = IFL_DONE;
        }
        retire(replica, r);
    }
    replica->n_ended = 0;
}
