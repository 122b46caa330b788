/* Preconditions of sim/replica/kv/, each broken once. */
#include "violates.h"

#include "replica/kv/beams.h"
#include "replica/kv/block.h"
#include "replica/kv/identity.h"
#include "replica/kv/pool.h"

enum { N_BLOCKS = 8 };

/* ---- blocks, runs ---- */

VIOLATES(blocks, tokens, kv_block_of, "tokens >= 1")
{
    kv_block_of(0);
}

VIOLATES(blocks, of_tokens, kv_blocks_for, "n_tokens >= 0")
{
    kv_blocks_for(-1, kv_block_of(16));
}

VIOLATES(blocks, first_has_none_before, kv_identity, "block > 0 || before == 0")
{
    static const struct live_request r;
    kv_identity(&r, 1, 0, 16);
}

static struct kv_buddy buddy(void)
{
    struct kv_buddy of;
    ifl_require(kv_buddy_create(&of, N_BLOCKS) == 0);
    return of;
}

VIOLATES(runs, rounded, kv_buddy_rounded, "n > 0")
{
    kv_buddy_rounded(0);
}

VIOLATES(runs, fits, kv_buddy_fits, "n > 0")
{
    const struct kv_buddy of = buddy();
    kv_buddy_fits(&of, 0);
}

VIOLATES(runs, take, kv_buddy_take, "kv_buddy_fits(buddy, n)")
{
    struct kv_buddy of = buddy();
    kv_buddy_take(&of, N_BLOCKS + 1);
}

VIOLATES(runs, give, kv_buddy_give, "buddy->order[first] < 0")
{
    struct kv_buddy of = buddy();
    kv_buddy_give(&of, 0, N_BLOCKS);
}

/* ---- beams ---- */

static struct kv_beams two_beams(void)
{
    struct kv_beams of = {0};
    ifl_require(kv_beams_begin(&of, 2, 1, 1) == 0);
    return of;
}

VIOLATES(beams, parent, beam_parent, "seq >= 0 && seq < n_seqs")
{
    const struct beam_search search = {.search = true};
    beam_parent(&search, 0, 1, 2, 2);
}

VIOLATES(beams, begin, kv_beams_begin, "n_seqs > 0")
{
    struct kv_beams of = {0};
    kv_beams_begin(&of, 0, 1, 1);
}

VIOLATES(beams, copied, kv_beams_copied, "place >= b->n_used - b->n_added")
{
    const struct kv_beams of = two_beams();
    kv_beams_copied(&of, 0);
}

VIOLATES(beams, at, kv_beams_at, "i < b->n_common + b->n_columns")
{
    const struct kv_beams of = two_beams();
    kv_beams_at(&of, 0, 2);
}

VIOLATES(beams, fork, kv_beams_fork, "are_seqs")
{
    struct kv_beams of = two_beams();
    const int32_t parents[2] = {0, 2};
    uint32_t blocks[3] = {0, 1, 2};
    kv_beams_fork(&of, parents, blocks);
}

/* ---- eviction ---- */

static struct kv_evictor nothing_unused(void)
{
    static struct kv_seat seats[N_BLOCKS];
    struct kv_evictor of;
    kv_evictor_create(&of, N_BLOCKS, seats, sizeof *seats);
    return of;
}

static struct kv_evictor two_unused(void)
{
    struct kv_evictor of = nothing_unused();
    kv_evictor_put(&of, 0, (struct kv_rank){.key = 1, .depth_tokens = 32});
    kv_evictor_put(&of, 1, (struct kv_rank){.key = 2, .depth_tokens = 32});
    return of;
}

VIOLATES(evictor, rerank_none, kv_evictor_rerank_first, "kv_evictor_first(evictor) >= 0")
{
    struct kv_evictor of = nothing_unused();
    kv_evictor_rerank_first(&of, (struct kv_rank){0});
}

VIOLATES(evictor, rerank_before, kv_evictor_rerank_first, "!ranks_before")
{
    struct kv_evictor of = two_unused();
    kv_evictor_rerank_first(&of, (struct kv_rank){.key = 0, .depth_tokens = 32});
}

VIOLATES(evictor, shorten_another, kv_evictor_shorten_first, "kv_evictor_first(evictor)")
{
    struct kv_evictor of = two_unused();
    kv_evictor_shorten_first(&of, 1, 16);
}

VIOLATES(evictor, lengthen, kv_evictor_shorten_first, "depth_tokens <=")
{
    struct kv_evictor of = two_unused();
    kv_evictor_shorten_first(&of, 0, 48);
}

/* ---- the cache ---- */

static int64_t same_key(const void *self, const struct ifl_view *view,
                        const struct ifl_cached *block)
{
    (void)self;
    (void)view;
    (void)block;
    return 0;
}

static const struct ifl_evict_ops evict = {.key = same_key};
static const struct ifl_view view;
static const struct kv_cache_options options = {
    .kind = PREFIX_CACHE_HASH, .evict = &evict, .view = &view, .block_tokens = 16};

static struct kv_cache cache(void)
{
    struct kv_cache of;
    kv_cache_create(&of, &options);
    ifl_require(kv_cache_open_blocks(&of, N_BLOCKS) == 0 && kv_cache_reserve_all(&of) == 0);
    return of;
}

VIOLATES(caches, reserve_again, kv_cache_reserve_all, "cache->cap == 0")
{
    struct kv_cache of = cache();
    kv_cache_reserve_all(&of);
}

VIOLATES(caches, reserve_beyond, kv_cache_reserve, "n <= cache->n_blocks")
{
    struct kv_cache of = cache();
    kv_cache_reserve(&of, 0, N_BLOCKS + 1);
}

VIOLATES(caches, entry_beyond, kv_entry, "block < cache->n_blocks")
{
    const struct kv_cache of = cache();
    kv_entry(&of, N_BLOCKS);
}

/* Blocks are used from the last one on: those in front of it have no entries yet. */
VIOLATES(caches, entry_without_memory, kv_entry, "block >= cache->n_blocks - cache->cap")
{
    struct kv_cache of;
    kv_cache_create(&of, &options);
    ifl_require(kv_cache_open_blocks(&of, 1000) == 0 && kv_cache_reserve(&of, 0, 1) == 0);
    kv_entry(&of, 0);
}

VIOLATES(caches, list, kv_cache_list, "kv_entry(cache, block)->cached")
{
    struct kv_cache of = cache();
    kv_cache_list(&of, 0, 1);
}

VIOLATES(caches, list_under_another, kv_cache_list, "identity == identity")
{
    struct kv_cache of = cache();
    kv_cache_publish(&of, 0, 1, -1, 16, KV_SOUGHT_BY_ALL);
    kv_cache_list(&of, 0, 2);
}

VIOLATES(caches, withdraw, kv_cache_withdraw, "kv_entry(cache, block)->cached")
{
    struct kv_cache of = cache();
    kv_cache_withdraw(&of, 0);
}

VIOLATES(caches, publish_twice, kv_cache_publish_run, "!kv_entry(cache, name)->cached")
{
    struct kv_cache of = cache();
    kv_cache_publish(&of, 0, 1, -1, 16, KV_SOUGHT_BY_ALL);
    kv_cache_publish(&of, 0, 1, -1, 16, KV_SOUGHT_BY_ALL);
}

VIOLATES(caches, divide_none, kv_cache_divide, "kv_entry(cache, name)->cached")
{
    struct kv_cache of = cache();
    kv_cache_divide(&of, 0, NULL);
}

VIOLATES(caches, list_run, kv_cache_list, "kv_entry_blocks(kv_entry(cache, block)) == 1")
{
    struct kv_cache of = cache();
    kv_cache_publish_run(&of, 0, 2, -1, 32);
    kv_cache_list(&of, 0, 1);
}

VIOLATES(caches, revive_used, kv_cache_revive, "cache->n_idle >=")
{
    struct kv_cache of = cache();
    kv_cache_publish(&of, 0, 1, -1, 16, KV_SOUGHT_BY_ALL);
    kv_cache_revive(&of, 0);
}

VIOLATES(caches, queue_none, kv_cache_queue, "n_blocks > 0")
{
    struct kv_cache of = cache();
    kv_cache_queue(&of, 0, 0);
}

VIOLATES(caches, evict_none, kv_cache_evict, "n_most > 0")
{
    struct kv_cache of = cache();
    uint32_t lost[N_BLOCKS];
    kv_cache_evict(&of, 0, lost);
}

VIOLATES(caches, want, kv_cache_want, "kv_entry(cache, block)->cached")
{
    struct kv_cache of = cache();
    kv_cache_want(&of, 0);
}

/* ---- pools ---- */

static struct kv_pool pool(enum kv_allocator allocator, bool cached, bool tallied)
{
    struct kv_pool of;
    ifl_require(kv_pool_create(&of, N_BLOCKS, allocator, cached ? &options : NULL) == 0);
    ifl_require(kv_pool_open(&of) == 0);
    if (tallied)
        kv_pool_tally(&of);
    return of;
}

static uint32_t out[N_BLOCKS];

VIOLATES(pools, take_beyond, kv_take, "kv_fits(pool, n)")
{
    struct kv_pool of = pool(KV_PAGED, false, false);
    kv_take(&of, N_BLOCKS + 1, out);
}

/* All are fresh: their numbers are not written down. */
VIOLATES(pools, fresh_place, kv_place, "place >= pool->n_fresh")
{
    const struct kv_pool of = pool(KV_PAGED, false, false);
    kv_place(&of, N_BLOCKS - 1);
}

/* Of eight blocks four are free in two runs of two: no run of four is. */
VIOLATES(pools, take_no_run, kv_take, "kv_fits(pool, n)")
{
    struct kv_pool of = pool(KV_BUDDY, false, false);
    uint32_t first[2], second[2], third[2], fourth[2];
    kv_take(&of, 2, first);
    kv_take(&of, 2, second);
    kv_take(&of, 2, third);
    kv_take(&of, 2, fourth);
    kv_release(&of, 2, first);
    kv_release(&of, 2, third);
    kv_take(&of, 4, out);
}

VIOLATES(pools, run_of_pages, kv_take_run, "pool->contiguous")
{
    struct kv_pool of = pool(KV_PAGED, false, false);
    kv_take_run(&of, 1, out);
}

VIOLATES(pools, release_run_of_pages, kv_release_run, "pool->contiguous")
{
    struct kv_pool of = pool(KV_PAGED, false, false);
    kv_release_run(&of, 1, out);
}

VIOLATES(pools, uncached_without_cache, kv_take_uncached, "pool->cached && !pool->tallied")
{
    struct kv_pool of = pool(KV_PAGED, false, false);
    kv_take_uncached(&of, 1, out);
}

VIOLATES(pools, cached_without_cache, kv_release_cached, "pool->cached && !pool->tallied")
{
    struct kv_pool of = pool(KV_PAGED, true, true);
    kv_release_cached(&of, 1, out);
}

VIOLATES(pools, untallied, kv_take_tallied, "pool->cached && pool->tallied")
{
    struct kv_pool of = pool(KV_PAGED, true, false);
    kv_take_tallied(&of, 1);
}

VIOLATES(pools, release_untallied, kv_release_tallied, "pool->cached && pool->tallied")
{
    struct kv_pool of = pool(KV_PAGED, true, false);
    kv_release_tallied(&of, 1, 0, 0, NULL);
}

VIOLATES(pools, name, kv_name, "pool->cached && pool->tallied")
{
    struct kv_pool of = pool(KV_PAGED, false, true);
    kv_name(&of);
}

VIOLATES(pools, withdraw_without_cache, kv_withdraw, "pool->cached")
{
    struct kv_pool of = pool(KV_PAGED, false, false);
    kv_withdraw(&of, 0);
}

VIOLATES(pools, block, kv_is_live, "block < (uint32_t)pool->n_blocks")
{
    const struct kv_pool of = pool(KV_PAGED, false, false);
    kv_is_live(&of, N_BLOCKS);
}
