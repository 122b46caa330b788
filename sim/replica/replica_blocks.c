/* The blocks of a request: how many it lacks, how it takes them and gives them back, and the
 * accounts of how the pool is used. Lookups in the prefix cache, and publishing blocks there, are
 * in replica_cache.c. */
#include "replica/replica_parts.h"

#include <string.h>

#include "inflight/minmax.h"

/* Slots that each sequence of r will have filled in the end. The last token of an answer is never
 * computed, so its K/V needs no slot. */
static int32_t final_slots(const struct replica *replica, const struct live_request *r)
{
    const bool prompt_alone = r->hands_over && r->hands_over != HANDS_REQUEST;
    return IFL_RARE(replica->fixed.gives_up)
               ? replica_keep_final(replica, r)
               : r->pub.n_prompt + (prompt_alone ? 0 : r->n_output - 1);
}

/* Slots of the blocks of r that it will never use. All slots that its sequences fill in the end
 * count as used, also before the sequences part. */
IFL_HOT static int64_t unused_slots(const struct replica *replica, const struct live_request *r)
{
    const int32_t n_final = final_slots(replica, r);
    if (IFL_RARE(r->pub.forks))
        return 0;
    const int64_t held = (int64_t)r->pub.stale.n_blocks * replica->fixed.block.tokens;
    const int64_t unused =
        held - group_slots(&r->pub, n_final, n_final > r->pub.n_prompt, replica->fixed.block);
    return ifl_max(unused, 0);
}

/* With those of layers with a window, each sequence ends with that many. */
static int32_t window_blocks(const struct replica *replica, const struct live_request *r)
{
    return windows_blocks(&replica->fixed.windows, replica->fixed.block, final_slots(replica, r),
                          r->pub.n_seqs);
}

/* A contiguous reservation is rounded up, and cannot grow. */
static bool can_take(const struct replica *replica, const struct live_request *r, int32_t n)
{
    return kv_fits(&replica->kv.device, n) &&
           !(IFL_RARE(replica->kv.device.contiguous) && r->pub.stale.n_blocks > 0);
}

/* With a cache: blocks that r takes from the pool to hold n blocks. These are
 * - the blocks that are not in its hit, and
 * - the blocks of its hit that are free until r shares them. */
IFL_APART static int32_t need_beyond_hit(const struct replica *replica,
                                         const struct live_request *r, int32_t n)
{
    int32_t n_unused = 0;
    for (int32_t i = 0; i < r->n_hit; i++)
        n_unused += kv_refs(&replica->kv.device, r->blocks[i]) == 0;
    return n > r->n_hit ? n - r->n_hit + n_unused : n_unused;
}

IFL_HOT int32_t replica_hold_blocks(const struct replica *replica, const struct live_request *r,
                                    int32_t hold_tokens)
{
    return IFL_RARE(r->rare->beams.n_seqs > 0)
               ? replica_beams_hold(replica, r, hold_tokens)
               : group_blocks(&r->pub, hold_tokens, replica->fixed.block);
}

IFL_HOT int64_t replica_slots(const struct replica *replica, const struct live_request *r)
{
    return IFL_RARE(r->rare->beams.n_seqs > 0)
               ? replica_beams_slots(replica, r)
               : group_slots(&r->pub, live_slots(r), r->parted, replica->fixed.block);
}

int32_t replica_saved_blocks(const struct replica *replica, const struct live_request *r)
{
    if (IFL_RARE(r->rare->beams.n_seqs > 0))
        return kv_beams_saved(&r->rare->beams);
    return IFL_RARE(r->parted) ? group_saved_blocks(&r->pub, replica->fixed.block) : 0;
}

/* Of a contiguous pool, for n blocks in a run. */
IFL_APART static int32_t need_of_run(const struct kv_pool *pool, int32_t n)
{
    const int32_t too_many = pool->n_free + 1;
    const int64_t rounded = kv_buddy_rounded(n);
    if (rounded > pool->n_blocks)
        return pool->n_blocks + 1;
    return kv_fits(pool, n) || rounded > too_many ? (int32_t)rounded : too_many;
}

IFL_APART int32_t replica_need_beside(const struct replica *replica, const struct live_request *r)
{
    const bool lacks_windows = replica->fixed.windows.n_groups > 0 && r->n_window_blocks == 0;
    return (r->adapted ? 0 : adapters_lack(&replica->adapters, r->pub.adapter)) +
           (lacks_windows ? window_blocks(replica, r) : 0);
}

/* Of the blocks that all requests count. */
static int32_t need_of_tokens(const struct replica *replica, const struct live_request *r,
                              int32_t hold_tokens)
{
    const bool swapped = r->pub.state == IFL_SWAPPED;
    const int32_t has = swapped ? 0 : r->pub.stale.n_blocks;
    const int32_t holds = replica_hold_blocks(replica, r, hold_tokens);
    const int32_t more = (swapped ? ifl_max(holds, r->pub.n_host_blocks) : holds) - has;
    if (IFL_RARE(replica->kv.device.cached) && r->pub.state == IFL_WAITING)
        return need_beyond_hit(replica, r, more);
    if (!IFL_RARE(replica->kv.device.contiguous) || more <= 0)
        return more > 0 ? more : 0;
    return has > 0 ? replica->kv.device.n_free + 1 : need_of_run(&replica->kv.device, more);
}

IFL_HOT int32_t replica_need(const struct replica *replica, const struct live_request *r,
                             int32_t hold_tokens)
{
    const int32_t n = need_of_tokens(replica, r, hold_tokens);
    return IFL_RARE(r->pub.adapter > 0 || replica->fixed.windows.n_groups > 0)
               ? n + replica_need_beside(replica, r)
               : n;
}

IFL_HOT bool replica_take_blocks(struct replica *replica, struct live_request *r, int32_t n)
{
    if (n == 0)
        return true;
    if (!can_take(replica, r, n) || !replica_reserve_numbers(replica, r, r->pub.stale.n_blocks + n))
        return false;
    if (IFL_RARE(r->counted))
        cohort_uncount(&replica->here.cohort, r);
    kv_take(&replica->kv.device, n,
            kv_numbers(&replica->kv.device, n) > 0 ? r->blocks + r->pub.stale.n_blocks : NULL);
    r->pub.stale.n_blocks += n;
    if (IFL_RARE(r->in_cohort && cohort_is_ragged(&replica->here.cohort)))
        cohort_note_blocks(&replica->here.cohort, r);
    if (IFL_RARE(r->pub.n_seqs > 1) && r->in_cohort)
        cohort_regrow(&replica->here.cohort, r);
    const int64_t unused = unused_slots(replica, r);
    const int64_t taken = (int64_t)n * replica->fixed.limits.block_tokens;
    accounts_add_unused(&replica->kv, ifl_min(unused, taken)); /* older ones are counted */
    return true;
}

/* Slots in blocks that r shares with other requests: such blocks are full, and counted once. */
static int64_t slots_of_others(const struct replica *replica, const struct live_request *r)
{
    int64_t n = 0;
    for (int32_t i = 0; replica->kv.device.cached && i < r->n_names; i++)
        n += kv_refs(&replica->kv.device, r->blocks[i]) > 1;
    return n * replica->fixed.limits.block_tokens;
}

IFL_HOT bool replica_first_blocks(struct replica *replica, struct live_request *r, int32_t n)
{
    ifl_assert(r->pub.state == IFL_WAITING);
    const int32_t n_hit = replica->kv.device.cached ? r->n_hit : 0;
    if (!IFL_RARE(n_hit > 0))
        return replica_take_blocks(replica, r, n);
    if (need_beyond_hit(replica, r, n) > replica->kv.device.n_free ||
        !replica_reserve_numbers(replica, r, n))
        return false;
    replica_share_hit(replica, r);
    return replica_take_blocks(replica, r, n - n_hit);
}

IFL_HOT void replica_count_out(struct replica *replica, const struct live_request *r)
{
    accounts_add_unused(&replica->kv, -unused_slots(replica, r));
    accounts_add_tokens(&replica->kv, slots_of_others(replica, r) - replica_slots(replica, r));
}

void replica_count_in(struct replica *replica, const struct live_request *r)
{
    accounts_add_unused(&replica->kv, unused_slots(replica, r));
    accounts_add_tokens(&replica->kv, replica_slots(replica, r) - slots_of_others(replica, r));
}

/* Where the cache joins runs, a published block without a name is one that no lookup asks for. */
static void release_all(struct replica *replica, struct live_request *r)
{
    struct kv_pool *kv = &replica->kv.device;
    const int32_t n_filled = kv->cache.joins_runs ? r->n_published - r->n_names : 0;
    const int32_t n_nameless = r->pub.stale.n_blocks - r->n_published + n_filled;
    if (kv->cached && kv->tallied)
        kv_release_tallied(kv, n_nameless, n_filled, r->n_names, r->blocks);
    else
        kv_release(kv, r->pub.stale.n_blocks, r->blocks);
    r->pub.stale.n_blocks = 0;
    r->n_hit = r->n_published = r->n_names = 0;
    r->identity = 0;
}

/* What r keeps goes to blocks of its own: those that no other request has, and copies of shared
 * ones. False, and nothing has changed: these are not free. */
static bool keep_in_own_blocks(struct replica *replica, struct live_request *r, int32_t n)
{
    struct kv_pool *kv = &replica->kv.device;
    const int32_t n_shared =
        (int32_t)(slots_of_others(replica, r) / replica->fixed.limits.block_tokens);
    if (n > kv->n_free + r->pub.stale.n_blocks - n_shared)
        return false;
    replica_unpublish(replica, r);
    release_all(replica, r);
    kv_take(kv, n, kv_numbers(kv, n) > 0 ? r->blocks : NULL);
    r->pub.stale.n_blocks = n;
    return true;
}

bool replica_cut_blocks(struct replica *replica, struct live_request *r, int32_t at, int32_t n)
{
    struct kv_pool *kv = &replica->kv.device;
    const int32_t n_left = r->pub.stale.n_blocks - n;
    ifl_assert(n >= 0 && at >= 0 && at <= n_left && !kv->contiguous);
    if (kv->cached)
        return keep_in_own_blocks(replica, r, n_left);
    kv_release(kv, n, kv->tallied ? NULL : r->blocks + at);
    if (!kv->tallied)
        memmove(r->blocks + at, r->blocks + at + n, (size_t)(n_left - at) * sizeof *r->blocks);
    r->pub.stale.n_blocks = n_left;
    return true;
}

IFL_HOT void replica_drop_blocks(struct replica *replica, struct live_request *r, bool finished)
{
    if (IFL_RARE(replica->kv.device.cached))
        replica_leave_in_cache(replica, r, finished);
    replica_count_out(replica, r);
    accounts_add_saved(&replica->kv, -replica_saved_blocks(replica, r));
    release_all(replica, r);
    replica_drop_beside(replica, r);
    r->looked_up = 0;
}

/* ---- adapters, and layers with a window ---- */

static bool has_beside(const struct replica *replica, const struct live_request *r)
{
    return IFL_RARE(r->pub.adapter > 0 || replica->fixed.windows.n_groups > 0);
}

IFL_APART static bool fits_beside(const struct replica *replica, const struct live_request *r,
                                  int32_t hold_tokens)
{
    return replica_need_beside(replica, r) == 0 ||
           replica_need(replica, r, hold_tokens) <= replica->kv.device.n_free;
}

bool replica_fits_beside(const struct replica *replica, const struct live_request *r,
                         int32_t hold_tokens)
{
    return !has_beside(replica, r) || fits_beside(replica, r, hold_tokens);
}

static void take_adapter(struct replica *replica, struct live_request *r)
{
    struct kv_pool *kv = &replica->kv.device;
    const uint32_t adapter = r->pub.adapter;
    const int32_t n = adapters_lack(&replica->adapters, adapter);
    if (n > 0)
        kv_take(kv, n, kv->tallied ? NULL : replica->adapters.of[adapter].blocks);
    adapters_start(&replica->adapters, adapter);
    r->adapted = true;
}

/* Behind the blocks of its hit: taking others first could evict them. */
IFL_APART static void take_beside(struct replica *replica, struct live_request *r)
{
    if (r->pub.adapter > 0)
        take_adapter(replica, r);
    if (replica->fixed.windows.n_groups > 0 && r->n_window_blocks == 0)
        windows_take(&replica->windows, &replica->kv.device, r, window_blocks(replica, r));
}

void replica_take_beside(struct replica *replica, struct live_request *r)
{
    if (has_beside(replica, r))
        take_beside(replica, r);
}

static void drop_adapter(struct replica *replica, struct live_request *r)
{
    struct kv_pool *kv = &replica->kv.device;
    r->adapted = false;
    adapters_stop(&replica->adapters, r->pub.adapter);
    const int32_t n = adapters_lack(&replica->adapters, r->pub.adapter);
    if (n > 0)
        kv_release_plain(kv, n, replica->adapters.of[r->pub.adapter].blocks);
}

void replica_drop_beside(struct replica *replica, struct live_request *r)
{
    if (IFL_RARE(r->adapted))
        drop_adapter(replica, r);
    if (IFL_RARE(r->n_window_blocks > 0))
        windows_drop(&replica->windows, &replica->kv.device, r);
}

/* ---- a tick of the cohort ---- */

/* Blocks for one more token of each sequence of a member that has filled its blocks. */
static int32_t growth(const struct replica *replica, const struct live_request *r)
{
    const int32_t n_computed =
        r->pub.stale.n_computed + (int32_t)(replica->here.cohort.tick - r->synced_tick);
    return r->pub.n_seqs == 1 ? 1
                              : group_blocks(&r->pub, n_computed + 1, replica->fixed.block) -
                                    r->pub.stale.n_blocks;
}

int32_t replica_listed_growth(const struct replica *replica)
{
    int32_t n = 0;
    for (const struct live_request *r = cohort_growing(&replica->here.cohort); r;
         r = r->links[GROWING].next)
        if (cohort_grows(&replica->here.cohort, r) && r->pub.stale.n_now == 0)
            n += growth(replica, r);
    return n + replica_growing_beams(replica);
}

/* If a planned tick had to evict cached blocks, a waiting request could be told another hit in the
 * middle of that plan. */
bool replica_tick_may_lose_hits(const struct replica *replica, int32_t n_new)
{
    const struct kv_pool *kv = &replica->kv.device;
    return IFL_RARE(kv->cached) && (kv->cache.n_asked > 0 || replica->tiers.on) &&
           replica->here.waiting.n > 0 && n_new > kv->n_free - kv->cache.n_idle;
}

/* A member without blocks in reserve takes a block every block_tokens ticks until its last
 * token. */
IFL_HOT static void count_from_now_on(struct replica *replica, struct live_request *r)
{
    const int32_t block_tokens = replica->fixed.block.tokens, n_final = final_slots(replica, r);
    cohort_sync(&replica->here.cohort, r);
    const int32_t n_at_last = (kv_blocks_for(n_final, replica->fixed.block) - 1) * block_tokens;
    const int32_t n_ticks = n_at_last - live_slots(r);
    cohort_count(&replica->here.cohort, r, replica->here.cohort.tick + n_ticks,
                 n_ticks >= replica->here.cohort.grown ? n_at_last + block_tokens - n_final : 0);
}

IFL_HOT void replica_join_cohort(struct replica *replica, struct live_request *r)
{
    const int32_t n_now = live_slots(r) + replica->here.cohort.grown;
    const bool counts = replica->kv.device.tallied && r->most_slots == 0 &&
                        !cohort_is_ragged(&replica->here.cohort) &&
                        r->pub.stale.n_blocks == kv_blocks_for(n_now, replica->fixed.block);
    here_join_cohort(&replica->here, r, counts);
    if (counts && r->grow_phase != COHORT_NEVER)
        count_from_now_on(replica, r);
}

void replica_grow_listed(struct replica *replica)
{
    struct live_request *r = cohort_growing(&replica->here.cohort), *next;
    for (; r; r = next) {
        next = r->links[GROWING].next;
        if (!cohort_grows(&replica->here.cohort, r))
            continue;
        replica_take_blocks(replica, r, growth(replica, r));
        if (r->most_slots > 0)
            cohort_regrow(&replica->here.cohort, r);
        if (!replica->kv.device.tallied || r->most_slots > 0)
            continue;
        cohort_unlist(&replica->here.cohort, r);
        count_from_now_on(replica, r);
    }
}

/* ---- sequence groups ---- */

/* The tail block of a request that decodes is copied for each further sequence. A prompt that goes
 * on behind its end, as after a recompute, computes all tails. */
void replica_part(struct replica *replica, struct live_request *r)
{
    ifl_assert(!r->parted);
    const struct kv_block block = replica->fixed.block;
    const int32_t n_tail = group_tail_tokens(&r->pub, block);
    const int32_t tail = group_shared_blocks(&r->pub, block);
    r->parted = true;
    live_own(r)->parted_in = ifl_next_step(&replica->view);
    accounts_add_saved(&replica->kv, group_saved_blocks(&r->pub, block));
    if (!request_decodes(&r->pub) || n_tail == 0)
        return;
    for (int32_t seq = 1; seq < r->pub.n_seqs; seq++)
        plan_copy(&replica->plan, r->blocks[tail], r->blocks[tail + seq]);
    accounts_add_tokens(&replica->kv, (int64_t)(r->pub.n_seqs - 1) * n_tail);
}

void replica_unpart(struct replica *replica, struct live_request *r)
{
    const struct kv_block block = replica->fixed.block;
    const int32_t n_tail = group_tail_tokens(&r->pub, block);
    if (r->rare->beams.n_seqs > 0) {
        replica_beams_undo(replica, r);
        return;
    }
    if (!r->parted || r->rare->parted_in != ifl_next_step(&replica->view) ||
        r->pub.stale.n_computed > r->pub.n_prompt)
        return;
    r->parted = false;
    accounts_add_saved(&replica->kv, -group_saved_blocks(&r->pub, block));
    if (!request_decodes(&r->pub) || n_tail == 0)
        return;
    plan_forget_copies_from(&replica->plan, r->blocks[group_shared_blocks(&r->pub, block)]);
    accounts_add_tokens(&replica->kv, -(int64_t)(r->pub.n_seqs - 1) * n_tail);
}
