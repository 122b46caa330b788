#include "replica/kv/pool.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"

static int create_free(struct kv_pool *pool)
{
    const size_t n = pool->n_blocks > 0 ? (size_t)pool->n_blocks : 1;
    if (pool->contiguous)
        return 0;
    pool->free_stack = malloc(n * sizeof *pool->free_stack);
    pool->n_fresh = pool->n_blocks;
    return pool->free_stack ? 0 : IFL_E_NOMEM;
}

int kv_pool_create(struct kv_pool *pool, int32_t n_blocks, enum kv_allocator allocator,
                   const struct kv_cache_options *cache)
{
    *pool = (struct kv_pool){
        .n_blocks = n_blocks,
        .n_free = n_blocks,
        .contiguous = allocator == KV_BUDDY,
        .cached = cache && cache->kind != PREFIX_CACHE_NONE,
        .numbers = true,
    };
    ifl_require(!pool->contiguous || !pool->cached);
    if (pool->cached)
        kv_cache_create(&pool->cache, cache);
    return pool->contiguous ? kv_buddy_create(&pool->buddy, n_blocks) : 0;
}

/* Where the pool is tallied, names get their memory as they are needed. */
static int open_cache(struct kv_pool *pool)
{
    pool->n_fresh = pool->n_blocks;
    if (kv_cache_open_blocks(&pool->cache, pool->n_blocks) < 0)
        return IFL_E_NOMEM;
    if (pool->tallied)
        return 0;
    return kv_cache_reserve_all(&pool->cache) < 0 ? IFL_E_NOMEM : create_free(pool);
}

int kv_pool_open(struct kv_pool *pool)
{
    const size_t n = pool->n_blocks > 0 ? (size_t)pool->n_blocks : 1;
    if (kv_is_open(pool))
        return 0;
    if (pool->cached)
        return open_cache(pool);
    pool->n_refs = calloc(n, sizeof *pool->n_refs);
    return pool->n_refs ? create_free(pool) : IFL_E_NOMEM;
}

void kv_pool_count(struct kv_pool *pool, int32_t n_blocks)
{
    *pool = (struct kv_pool){.n_blocks = n_blocks, .n_free = n_blocks};
    kv_pool_tally(pool);
}

void kv_pool_destroy(struct kv_pool *pool)
{
    free(pool->free_stack);
    free(pool->n_refs);
    kv_buddy_destroy(&pool->buddy);
    kv_cache_destroy(&pool->cache);
    *pool = (struct kv_pool){0};
}

void kv_pool_tally(struct kv_pool *pool)
{
    ifl_require(pool->n_free == pool->n_blocks);
    pool->tallied = true;
    pool->plain = !pool->contiguous && !pool->cached;
    pool->n_free_names = pool->n_blocks;
    if (pool->cached)
        kv_cache_tally(&pool->cache);
}

IFL_APART void kv_take_run(struct kv_pool *pool, int32_t n, uint32_t *out)
{
    ifl_assert(pool->contiguous);
    if (n == 0)
        return;
    const uint32_t first = (uint32_t)kv_buddy_take(&pool->buddy, n);
    const int32_t n_numbers = kv_numbers(pool, n);
    uint32_t *n_refs = pool->n_refs + first;
    pool->n_free -= (int32_t)kv_buddy_rounded(n);
    for (int32_t i = 0; i < n_numbers; i++)
        out[i] = first + (uint32_t)i;
    for (int32_t i = 0; i < n_numbers; i++)
        n_refs[i] = 1;
}

void kv_release_run(struct kv_pool *pool, int32_t n, const uint32_t *blocks)
{
    ifl_assert(pool->contiguous);
    if (n == 0)
        return;
    const uint32_t n_numbers = (uint32_t)kv_numbers(pool, n);
    uint32_t *n_refs = pool->n_refs + blocks[0];
    uint32_t n_owners = 0;
    for (uint32_t i = 0; i < n_numbers; i++)
        n_owners += n_refs[i];
    ifl_require(n_owners == n_numbers && blocks[n_numbers - 1] - blocks[0] == n_numbers - 1);
    memset(n_refs, 0, n_numbers * sizeof *n_refs);
    kv_buddy_give(&pool->buddy, (int32_t)blocks[0], n);
    pool->n_free += (int32_t)kv_buddy_rounded(n);
}

/* Of a paged pool without a cache. */
IFL_APART static void take_numbers(struct kv_pool *pool, int32_t n, uint32_t *out)
{
    ifl_require(out || n == 0);
    for (int32_t i = 0; i < n; i++) {
        const uint32_t block = kv_pop(pool, --pool->n_free);
        pool->n_refs[block] = 1;
        out[i] = block;
    }
}

void kv_take_any(struct kv_pool *pool, int32_t n, uint32_t *out)
{
    if (pool->contiguous)
        kv_take_run(pool, n, out);
    else if (!pool->cached)
        take_numbers(pool, n, out);
    else if (pool->tallied)
        kv_take_tallied(pool, n);
    else
        kv_take_uncached(pool, n, out);
}

void kv_release_any(struct kv_pool *pool, int32_t n, const uint32_t *blocks)
{
    ifl_require(pool->contiguous || !pool->tallied);
    if (pool->contiguous) {
        kv_release_run(pool, n, blocks);
    } else if (pool->cached) {
        kv_release_cached(pool, n, blocks);
    } else {
        for (int32_t i = 0; i < n; i++)
            if (kv_unshare(pool, blocks[i]))
                *kv_place(pool, pool->n_free++) = blocks[i];
    }
}

/* ---- with a cache ---- */

static uint32_t *stack_top(const struct kv_pool *pool)
{
    return kv_place(pool, pool->n_free - pool->cache.n_idle);
}

/* Evicted blocks go to the free stack. It has room for them, since no block is on it twice. */
IFL_APART void kv_take_uncached(struct kv_pool *pool, int32_t n, uint32_t *out)
{
    ifl_assert(pool->cached && !pool->tallied && n <= pool->n_free);
    for (int32_t i = 0; i < n; i++) {
        if (pool->n_free == pool->cache.n_idle)
            ifl_require(kv_cache_evict(&pool->cache, 1, stack_top(pool)).n_blocks > 0);
        out[i] = kv_pop(pool, pool->n_free - pool->cache.n_idle - 1);
        pool->n_free--;
        kv_entry(&pool->cache, out[i])->n_refs = 1;
    }
}

void kv_release_cached(struct kv_pool *pool, int32_t n, const uint32_t *blocks)
{
    ifl_assert(pool->cached && !pool->tallied);
    for (int32_t i = n; i-- > 0;) {
        if (!kv_unshare(pool, blocks[i]))
            continue;
        if (!kv_cache_retire(&pool->cache, blocks[i]))
            *stack_top(pool) = blocks[i];
        pool->n_free++;
    }
}

/* ---- with a cache, tallied: an entry has at least one block, so names never run out ---- */

IFL_APART void kv_take_tallied(struct kv_pool *pool, int32_t n)
{
    ifl_assert(pool->cached && pool->tallied && n <= pool->n_free);
    int32_t n_lacking;
    while ((n_lacking = n - (pool->n_free - pool->cache.n_idle)) > 0) {
        const struct kv_loss loss = kv_cache_evict(&pool->cache, n_lacking, NULL);
        ifl_require(loss.n_blocks > 0);
        pool->n_free_names += loss.n_names;
    }
    pool->n_free -= n;
}

int kv_reserve_names(struct kv_pool *pool, int32_t n)
{
    const int32_t n_back = pool->n_free_names - pool->n_fresh;
    const int32_t n_new = ifl_min(n - n_back, pool->n_fresh),
                  n_ever = pool->n_blocks - pool->n_fresh;
    return pool->tallied && n_new > 0 ? kv_cache_reserve(&pool->cache, n_ever, n_ever + n_new) : 0;
}

uint32_t kv_name(struct kv_pool *pool)
{
    ifl_assert(pool->cached && pool->tallied);
    ifl_require(pool->n_free_names > 0);
    pool->n_free_names--;
    int32_t name = kv_cache_take_name(&pool->cache);
    if (name < 0)
        name = --pool->n_fresh;
    *kv_entry(&pool->cache, name) = (struct kv_entry){.n_refs = 1};
    return (uint32_t)name;
}

void kv_withdraw(struct kv_pool *pool, uint32_t block)
{
    ifl_assert(pool->cached);
    kv_cache_withdraw(&pool->cache, block);
    if (!pool->tallied)
        return;
    ifl_require(kv_unshare(pool, block));
    kv_cache_give_name(&pool->cache, block);
    pool->n_free_names++;
}

/* n_filled of them hold K/V. Without memory for a name they do not wait in the queue, but are used
 * first. */
static void release_nameless(struct kv_pool *pool, int32_t n, int32_t n_filled)
{
    const int32_t n_queued = pool->cache.options.unhashed == KV_UNHASHED_FIRST ? n_filled : n;
    pool->n_free += n;
    if (n_queued == 0 || kv_cache_join(&pool->cache, n_queued) || kv_reserve_names(pool, 1) < 0)
        return;
    const uint32_t name = kv_name(pool);
    kv_cache_queue(&pool->cache, name, n_queued);
}

void kv_release_plain(struct kv_pool *pool, int32_t n, const uint32_t *blocks)
{
    if (pool->cached && pool->tallied) {
        kv_release_tallied(pool, n, 0, 0, NULL);
        return;
    }
    for (int32_t i = 0; pool->cached && i < n; i++)
        kv_cache_touch(&pool->cache, blocks[i], pool->cache.clock);
    kv_release(pool, n, blocks);
}

IFL_APART void kv_release_tallied(struct kv_pool *pool, int32_t n, int32_t n_filled,
                                  int32_t n_names, const uint32_t *names)
{
    ifl_assert(pool->cached && pool->tallied && n_filled <= n);
    release_nameless(pool, n, n_filled);
    for (int32_t i = n_names; i-- > 0;) {
        if (!kv_unshare(pool, names[i]))
            continue;
        kv_cache_retire(&pool->cache, names[i]);
        pool->n_free += kv_entry_blocks(kv_entry(&pool->cache, names[i]));
    }
}
