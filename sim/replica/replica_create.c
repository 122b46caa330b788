/* Creates and destroys a replica. Only this file writes its constant part, replica->fixed. */
#include "replica/replica_parts.h"

#include <stddef.h>
#include <stdio.h>

#include "inflight/minmax.h"

#include "replica/step_builder.h"

static void refresh(const struct ifl_ticks *ticks, const struct ifl_request *r)
{
    const size_t offset = offsetof(struct replica, here.cohort.ticks);
    struct replica *replica = (struct replica *)((uintptr_t)ticks - offset);
    if (!step_knows(replica, r))
        return;
    step_show(replica, live(r));
    live(r)->pub.read_at = ticks->n;
}

static struct replica *seen_in(const struct ifl_view *view)
{
    return (struct replica *)((uintptr_t)view - offsetof(struct replica, view));
}

/* An order is also asked for keys outside of a plan: as a request joins, and for a hook that reads
 * a list. A random order needs the step for its draws then, too. */
static struct ifl_step *plan_of(const struct ifl_view *view)
{
    struct replica *replica = seen_in(view);
    rankings_note_plan_read(&replica->ranks);
    return replica->plan.planning || replica->plan.ranking ? &replica->plan.step : NULL;
}

static void rerank(const struct ifl_view *view, const struct ifl_request *request)
{
    struct replica *replica = seen_in(view);
    struct live_request *r = live(request);
    if (!step_knows(replica, request))
        return;
    if (request->state == IFL_RUNNING)
        replica_note_rank(replica, RANKED_RUNNING, r);
    if (request->state == IFL_SWAPPED)
        replica_note_rank(replica, RANKED_SWAPPED, r);
    if (request->state == IFL_WAITING && r->ticket != 0) /* 0: it is about to wait */
        waiting_rerank(&replica->here.waiting, r, replica_rank(replica, r),
                       ifl_queued_since_ns(request));
}

/* What the draft module may guess at most; 0: it never does. */
static int32_t max_drafts(const struct replica_options *options)
{
    return ifl_min(module_most_drafts(&options->modules[IFL_DRAFT]), RAGGED_MAX_DRAFTS);
}

static struct ragged_options speculation_of(const struct replica_options *options,
                                            int32_t n_most_drafts)
{
    struct ragged_options of = options->speculation;
    of.on = n_most_drafts > 0;
    of.max_drafts = n_most_drafts;
    of.max_model_tokens = options->limits.max_model_tokens;
    if (!of.on)
        of.lookahead_tokens = 0;
    return of;
}

/* The last token of an answer takes no slot. Contiguous pools round up what a request takes, and
 * guesses, adapters in the pool and windows take slots as well. */
static int64_t fit_tokens_of(const struct replica_options *options)
{
    const struct ifl_limits *limits = &options->limits;
    const int64_t n_slots = (int64_t)limits->n_blocks * limits->block_tokens;
    return options->allocator == KV_BUDDY || max_drafts(options) > 0 || options->adapters.in_pool ||
                   options->windows.n_groups > 0
               ? 0
               : ifl_min(n_slots + 1, limits->max_model_tokens);
}

static bool has_tiers(const struct replica_options *options)
{
    for (int i = 0; i < N_TIERS; i++)
        if (options->tiers[i])
            return true;
    return false;
}

static bool is_plain(const struct replica_options *options, const struct replica_fixed *fixed)
{
    const bool moves = options->moves || options->swaps_apart || has_tiers(options);
    return fixed->max_samples == 1 && !fixed->gives_up && !fixed->speculation.on &&
           options->adapters.n == 0 && fixed->windows.n_groups == 0 && !fixed->wants_work && !moves;
}

static struct replica_fixed fixed_of(const struct replica_options *options)
{
    struct replica_fixed fixed = {
        .number = options->number,
        .limits = options->limits,
        .block = kv_block_of(options->limits.block_tokens),
        .swap_full = options->swap_full,
        .leave = options->leave,
        .overlap = options->overlap,
        .seed = options->seed,
        .loads_before = options->loads_before,
        .swaps_apart = options->swaps_apart,
        .wants_work = options->wants_work,
        .max_samples = options->max_samples > 1 ? options->max_samples : 1,
        .fit_tokens = fit_tokens_of(options),
        .beams = options->beams,
        .keep = options->keep,
        .windows = options->windows,
        .gives_up = keep_may_give_up(&options->keep, options->limits.max_model_tokens),
    };
    fixed.limits.plans_ahead = options->overlap.hindsight;
    fixed.overlap.hindsight &= !options->modules[IFL_BATCHING].policy->leaves_out;
    fixed.beams.search &= fixed.max_samples > 1;
    fixed.limits.contiguous = options->allocator == KV_BUDDY;
    fixed.limits.max_drafts = max_drafts(options);
    fixed.speculation = speculation_of(options, fixed.limits.max_drafts);
    ifl_require(!fixed.speculation.on || (options->overlap.depth <= 1 && fixed.max_samples == 1 &&
                                          !fixed.limits.contiguous));
    fixed.limits.max_in_flight = options->overlap.depth > 1 ? options->overlap.depth : 0;
    fixed.plain = is_plain(options, &fixed);
    return fixed;
}

/* *parts_bytes: size of the modules' parts of a request. */
static int create_modules(struct replica *replica, const struct replica_options *options,
                          size_t *parts_bytes, struct ifl_error *error)
{
    listeners_create(&replica->on, replica->fixed.modules);
    for (int i = 0; i < N_MODULES; i++) {
        const struct module_config *config = &options->modules[i];
        struct module *module = &replica->fixed.modules[i];
        if (!config->policy || module_is_of_cluster((enum ifl_kind)i) ||
            (i == IFL_DRAFT && !replica->fixed.speculation.on))
            continue;
        const int rc = module_create(module, config, &replica->fixed.limits, parts_bytes, error);
        if (rc < 0)
            return rc;
        listeners_add(&replica->on, module);
    }
    return 0;
}

/* tallies: block numbers are never read, but for the first of a contiguous run, and for names of
 * cached entries. */
static int create_pool(struct kv_pool *pool, int32_t n_blocks, enum kv_allocator allocator,
                       const struct kv_cache_options *cache, bool tallies)
{
    if (tallies && allocator == KV_PAGED && cache->kind == PREFIX_CACHE_NONE) {
        kv_pool_count(pool, n_blocks);
        return 0;
    }
    const int rc = kv_pool_create(pool, n_blocks, allocator, cache);
    if (rc == 0 && tallies)
        kv_pool_tally(pool);
    return rc;
}

/* The tier that gets what the device evicts. */
static struct kv_tier *evicted_to(const struct replica_options *options)
{
    for (int i = 0; i < N_TIERS; i++)
        if (options->tiers[i])
            return options->tiers[i]->rules.stores == TIER_STORES_EVICTED ? options->tiers[i]
                                                                          : NULL;
    return NULL;
}

/* As other modules, it is named if it changes the step that it may read. */
static int64_t evict_key(const void *self, const struct ifl_view *view,
                         const struct ifl_cached *cached)
{
    struct replica *replica = seen_in(view);
    const struct ifl_policy *policy = replica->fixed.modules[IFL_EVICT].policy;
    const struct ifl_policy *before = plan_call(&replica->plan, policy);
    const int64_t key = policy->ops.evict->key(self, view, cached);
    plan_return(&replica->plan, before);
    return key;
}

static const struct ifl_evict_ops *evict_of(struct replica *replica)
{
    const struct ifl_policy *policy = replica->fixed.modules[IFL_EVICT].policy;
    if (!policy)
        return NULL;
    replica->fixed.evict = *policy->ops.evict;
    replica->fixed.evict.key = evict_key;
    return &replica->fixed.evict;
}

static int create_pools(struct replica *replica, const struct replica_options *options)
{
    const struct ifl_limits *limits = &options->limits;
    const bool tallies = !replica->fixed.wants_work && replica->fixed.max_samples == 1;
    const struct kv_cache_options none = {.kind = PREFIX_CACHE_NONE};
    const struct kv_cache_options cache = {
        .kind = options->prefix_cache,
        .unhashed = options->unhashed,
        .publish = options->publish,
        .evict = evict_of(replica),
        .evict_self = replica->fixed.modules[IFL_EVICT].self,
        .view = &replica->view,
        .block_tokens = limits->block_tokens,
        .below = evicted_to(options),
    };
    const int rc =
        create_pool(&replica->kv.device, limits->n_blocks, options->allocator, &cache, tallies);
    return rc < 0 ? rc
                  : create_pool(&replica->kv.host, limits->n_host_blocks, KV_PAGED, &none, tallies);
}

/* The module with the largest part of each request, where that is larger than the record that it
 * stands in; NULL: there is none. */
static const struct ifl_policy *widest_of(const struct replica *replica)
{
    const struct ifl_policy *widest = NULL;
    size_t n_bytes = sizeof(struct live_request);
    for (int i = 0; i < N_MODULES; i++) {
        const struct ifl_policy *policy = replica->fixed.modules[i].policy;
        if (policy && policy->request_bytes > n_bytes) {
            widest = policy;
            n_bytes = policy->request_bytes;
        }
    }
    return widest;
}

int replica_fail_nomem(const struct replica *replica, struct ifl_error *error)
{
    const struct ifl_limits *limits = &replica->fixed.limits;
    const struct ifl_policy *widest = widest_of(replica);
    char parts[160] = "";
    if (widest)
        snprintf(parts, sizeof parts, ", for each of which %s policy %.64s asks for %zu bytes",
                 module_kind_name(widest->kind), widest->name, widest->request_bytes);
    return ifl_fail(error, IFL_E_NOMEM,
                    "out of memory: replica %u has %d K/V blocks of %d tokens "
                    "(serving.kv.num_blocks), %d more in host memory (serving.kv.swap_gib), %d "
                    "steps in flight at most, and %zu requests%s",
                    replica->fixed.number, limits->n_blocks, limits->block_tokens,
                    limits->n_host_blocks, ifl_max(limits->max_in_flight, 1),
                    replica_requests(replica), parts);
}

int replica_create(struct replica *replica, const struct replica_options *options,
                   struct ifl_error *error)
{
    size_t parts_bytes = 0;
    *replica = (struct replica){
        .view = {.limits = &replica->fixed.limits, .plan = plan_of, .rerank = rerank},
        .fixed = fixed_of(options),
    };
    rankings_create(&replica->ranks);
    const int rc = create_modules(replica, options, &parts_bytes, error);
    if (rc < 0)
        return rc;
    plan_create(&replica->plan, &replica->fixed.limits, &replica_step_ops);
    if (create_pools(replica, options) < 0 ||
        here_create(&replica->here, replica->fixed.block, parts_bytes, refresh) < 0)
        return replica_fail_nomem(replica, error);
    if (replica->fixed.gives_up)
        cohort_expect_bounds(&replica->here.cohort);
    if (in_flight_create(replica) < 0 ||
        adapters_create(&replica->adapters, &options->adapters) < 0 ||
        windows_create(&replica->windows, &replica->fixed.windows, &replica->kv.device) < 0)
        return replica_fail_nomem(replica, error);
    here_speculate(&replica->here, &replica->fixed.speculation);
    tiers_begin(&replica->tiers, options->tiers);
    moving_begin(&replica->moving, options->moves || options->swaps_apart || replica->tiers.on);
    view_open(&replica->view, &replica->here, &replica->kv);
    return 0;
}

void replica_destroy(struct replica *replica)
{
    FOR_EACH_MODULE (module, replica)
        module_destroy(module);
    plan_destroy(&replica->plan);
    in_flight_destroy(&replica->in_flight);
    adapters_destroy(&replica->adapters);
    windows_destroy(&replica->windows);
    leaving_destroy(&replica->leaving);
    moving_destroy(&replica->moving);
    tiers_destroy(&replica->tiers);
    rankings_destroy(&replica->ranks);
    kv_pool_destroy(&replica->kv.device);
    kv_pool_destroy(&replica->kv.host);
    here_destroy(&replica->here);
    replica_check_finish(replica);
    *replica = (struct replica){0};
}
