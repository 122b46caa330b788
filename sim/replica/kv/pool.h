/* The KV pool: blocks with identities and reference counts.
 *
 * Paged: the free list is a stack, as in vLLM v0. The block freed last is used first; a fresh pool
 * of N blocks hands out block N-1 first. With a prefix cache (cache.h) a free block may still hold
 * K/V that a lookup can find. Contiguous: the blocks taken by one call are one run of a buddy
 * allocator, and are given back together. Host blocks, for swapped requests, are a second, paged
 * pool. A pool knows no requests: the caller keeps the numbers of the blocks that it takes.
 *
 * Tallied: the pool only counts its blocks, for runs in which no module or report needs block
 * numbers. Then
 *   - with a cache, only cached entries (cache.h) have names;
 *   - a contiguous run is known by its first block. */
#ifndef SIM_REPLICA_KV_POOL_H
#define SIM_REPLICA_KV_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

#include "replica/kv/buddy.h"
#include "replica/kv/cache.h"

enum kv_allocator { KV_PAGED, KV_BUDDY };
/* What happens to a victim that is to be swapped out if the host has no room for it. */
enum swap_full { SWAP_FULL_RECOMPUTE, SWAP_FULL_FAIL };

struct kv_pool {
    int32_t n_blocks, n_free;
    int32_t n_shared;     /* references to blocks beyond the first */
    uint32_t *free_stack; /* the top is at n_free - 1, with a cache further down. The lowest
                             n_fresh numbers are not stored: see kv_place */
    int32_t n_fresh;      /* blocks that were never taken: block i is at place i */
    int32_t n_free_names; /* tallied with a cache, in place of the stack: names that were never
                             taken or were given back (cache.h) */
    uint32_t *n_refs;     /* [n_blocks]; NULL if no block has a number, as is free_stack, and with
                             a cache, whose entries count the references */
    bool contiguous, cached, tallied;
    bool numbers;          /* blocks have numbers or names */
    bool plain;            /* tallied, neither contiguous nor cached: taking n blocks only counts
                              them */
    struct kv_buddy buddy; /* contiguous: in place of the stack */
    struct kv_cache cache; /* cached: beside the stack */
};

/* create and open return 0 or IFL_E_NOMEM. A zeroed pool is valid and empty. A contiguous pool has
 * no cache. kv_pool_open allocates the pool's memory. It must be called before a block is taken,
 * and may be called any number of times. */
int kv_pool_create(struct kv_pool *pool, int32_t n_blocks, enum kv_allocator allocator,
                   const struct kv_cache_options *cache);
int kv_pool_open(struct kv_pool *pool);
/* Creates a paged pool without a cache that only counts its blocks and needs no memory of its own.
 */
void kv_pool_count(struct kv_pool *pool, int32_t n_blocks);
void kv_pool_destroy(struct kv_pool *pool);
/* From now on the pool only counts its blocks. Call it before any block is taken. */
void kv_pool_tally(struct kv_pool *pool);

/* kv_take and kv_release of a pool that is not plain. */
void kv_take_any(struct kv_pool *pool, int32_t n, uint32_t *out);
void kv_release_any(struct kv_pool *pool, int32_t n, const uint32_t *blocks);
/* kv_take and kv_release of a contiguous pool. */
void kv_take_run(struct kv_pool *pool, int32_t n, uint32_t *out);
void kv_release_run(struct kv_pool *pool, int32_t n, const uint32_t *blocks);
/* kv_take and kv_release of a pool with a cache. Blocks without cached K/V are taken first, then
 * evicted ones. Blocks are released from the last to the first, so that the end of a prefix is
 * evicted before its beginning. */
void kv_take_uncached(struct kv_pool *pool, int32_t n, uint32_t *out);
void kv_release_cached(struct kv_pool *pool, int32_t n, const uint32_t *blocks);
/* Taking and releasing in a tallied pool with a cache. kv_take_tallied takes n blocks in all.
 * kv_release_tallied releases n blocks without names and the blocks of n_names names. n_filled: of
 * the n blocks, those with computed K/V, which the cache keeps as part of a run (joins_runs). */
void kv_take_tallied(struct kv_pool *pool, int32_t n);
void kv_release_tallied(struct kv_pool *pool, int32_t n, int32_t n_filled, int32_t n_names,
                        const uint32_t *names);
/* Releases n blocks that hold no K/V, in any pool but a contiguous one; in a tallied pool `blocks`
 * is not read. With a cache the blocks count as used just now. */
void kv_release_plain(struct kv_pool *pool, int32_t n, const uint32_t *blocks);
/* Makes room for n more names. Returns 0 or IFL_E_NOMEM. Only tallied pools have names: other pools
 * need no call. */
int kv_reserve_names(struct kv_pool *pool, int32_t n);
/* Returns a name for an entry of blocks that were taken from a tallied pool. There must be memory
 * for it (kv_reserve_names). */
uint32_t kv_name(struct kv_pool *pool);
/* The cache no longer keeps the block. The block stays taken; in a tallied pool its name becomes
 * free. */
void kv_withdraw(struct kv_pool *pool, uint32_t block);

/* True if the pool has its memory, or needs none. */
static inline bool kv_is_open(const struct kv_pool *pool)
{
    return !pool->numbers || pool->n_refs || pool->cache.buckets;
}

/* References to the block. The pool must be open. */
static inline uint32_t kv_refs(const struct kv_pool *pool, uint32_t block)
{
    return pool->cached ? kv_cache_refs(&pool->cache, block) : pool->n_refs[block];
}

/* True if n blocks can be taken at once. */
static inline bool kv_fits(const struct kv_pool *pool, int32_t n)
{
    return n <= pool->n_free &&
           (!IFL_RARE(pool->contiguous) || n == 0 || kv_buddy_fits(&pool->buddy, n));
}

/* How many block numbers kv_take writes for n blocks. */
static inline int32_t kv_numbers(const struct kv_pool *pool, int32_t n)
{
    return !pool->tallied ? n : pool->contiguous && n > 0;
}

/* The entry at that place of the stack. The place must not be below n_fresh: such entries are not
 * stored. */
static inline uint32_t *kv_place(const struct kv_pool *pool, int32_t place)
{
    ifl_assert(place >= pool->n_fresh);
    return pool->free_stack + (place - pool->n_fresh);
}

/* Takes the number at that place of the stack, which must be the top, and returns it. */
static inline uint32_t kv_pop(struct kv_pool *pool, int32_t place)
{
    if (place >= pool->n_fresh)
        return *kv_place(pool, place);
    pool->n_fresh = place;
    return (uint32_t)place;
}

/* Takes n blocks, which must fit, each with one reference. Writes their numbers to out[0 ..
 * kv_numbers). */
static inline void kv_take(struct kv_pool *pool, int32_t n, uint32_t *out)
{
    ifl_assert(n >= 0 && kv_fits(pool, n));
    ifl_require(n <= pool->n_free);
    if (pool->plain)
        pool->n_free -= n;
    else
        kv_take_any(pool, n, out);
}

/* The reference count of a block that the evictor does not have. */
static inline uint32_t *kv_ref_count(const struct kv_pool *pool, uint32_t block)
{
    return pool->cached ? &kv_entry(&pool->cache, block)->n_refs : &pool->n_refs[block];
}

/* Adds an owner to a block that is in use or that the cache keeps. */
static inline void kv_share(struct kv_pool *pool, uint32_t block)
{
    if (kv_refs(pool, block) > 0) {
        pool->n_shared++;
    } else {
        ifl_require(pool->cached);
        kv_cache_revive(&pool->cache, block);
        pool->n_free--;
    }
    ++*kv_ref_count(pool, block);
}

/* Gives up one reference. Returns true if it was the last. */
static inline bool kv_unshare(struct kv_pool *pool, uint32_t block)
{
    ifl_require(kv_refs(pool, block) > 0);
    const bool last = --*kv_ref_count(pool, block) == 0;
    pool->n_shared -= !last;
    return last;
}

/* Gives up one reference to each of n blocks, in order. A block without owners becomes free. */
static inline void kv_release(struct kv_pool *pool, int32_t n, const uint32_t *blocks)
{
    if (!pool->plain) {
        kv_release_any(pool, n, blocks);
        return;
    }
    pool->n_free += n;
    ifl_require(pool->n_free <= pool->n_blocks);
}

static inline int32_t kv_used(const struct kv_pool *pool)
{
    return pool->n_blocks - pool->n_free;
}

/* True if the block holds K/V that a request may read, now or after a later hit. */
static inline bool kv_is_live(const struct kv_pool *pool, uint32_t block)
{
    ifl_assert(block < (uint32_t)pool->n_blocks);
    return kv_refs(pool, block) > 0 || (pool->cached && kv_entry(&pool->cache, block)->cached);
}

/* Used blocks beyond those asked for: contiguous runs are rounded up by as many. */
static inline int32_t kv_slack(const struct kv_pool *pool)
{
    return pool->buddy.n_slack;
}

#endif
