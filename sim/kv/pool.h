/* The KV pool: blocks with identities and reference counts.
 *
 * Paged, the free list is a stack, as in vLLM v0: the block freed last is used first. A fresh pool
 * of N blocks hands out N-1 first. With a prefix cache (cache.h) a free block may still hold K/V
 * that can be found, and is free all the same. Contiguous, every taking is one run of a buddy
 * allocator, given back whole. Host blocks, for swapped requests, are a second pool of the paged
 * kind. A pool knows nothing about requests; whoever takes a block keeps its number.
 *
 * Where nobody wants to know which blocks a request has, a pool may be tallied: it counts them.
 * Then only what the cache keeps has names, an entry each (cache.h), and the stack holds the free
 * names; of a contiguous run its first block stands for all.
 */
#ifndef SIM_KV_POOL_H
#define SIM_KV_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

#include "kv/buddy.h"
#include "kv/cache.h"

enum kv_allocator { KV_PAGED, KV_BUDDY };

struct kv_pool {
    int32_t n_blocks, n_free;
    int32_t n_shared;     /* references to blocks beyond the first */
    uint32_t *free_stack; /* [n_blocks], the top at n_free - 1, with a cache further down */
    int32_t n_free_names; /* tallied with a cache: on the stack */
    uint32_t *n_refs;     /* [n_blocks] */
    bool contiguous, cached, tallied;
    struct kv_buddy buddy; /* contiguous: in place of the stack */
    struct kv_cache cache; /* cached: beside the stack */
};

/* 0, or -1 without memory. A zeroed pool is valid and empty. A contiguous pool has no cache. */
int kv_pool_create(struct kv_pool *pool, int32_t n_blocks, enum kv_allocator allocator,
                   const struct kv_cache_options *cache);
void kv_pool_destroy(struct kv_pool *pool);
/* From here on the pool only counts. Nothing is taken yet. */
void kv_pool_tally(struct kv_pool *pool);

/* Contiguous: what kv_take and kv_release do. */
void kv_take_run(struct kv_pool *pool, int32_t n, uint32_t *out);
void kv_release_run(struct kv_pool *pool, int32_t n, const uint32_t *blocks);
/* With a cache: blocks that hold nothing first, then those that the cache loses; given back from
 * the last to the first, so that the end of a prefix is lost before its beginning. */
void kv_take_uncached(struct kv_pool *pool, int32_t n, uint32_t *out);
void kv_release_cached(struct kv_pool *pool, int32_t n, const uint32_t *blocks);
/* The same where they are tallied: n blocks in all; then those that n_names stand for, and n that
 * have no names. */
void kv_take_tallied(struct kv_pool *pool, int32_t n);
void kv_release_tallied(struct kv_pool *pool, int32_t n, int32_t n_names, const uint32_t *names);
/* A name for blocks that are taken. */
uint32_t kv_name(struct kv_pool *pool);
/* The cache does not keep the block any more; it stays taken. Its name, where they are tallied, is
 * free. */
void kv_withdraw(struct kv_pool *pool, uint32_t block);

/* n blocks can be taken at once. */
static inline bool kv_fits(const struct kv_pool *pool, int32_t n)
{
    return n <= pool->n_free && (!pool->contiguous || n == 0 || kv_buddy_fits(&pool->buddy, n));
}

/* Numbers that kv_take tells of n blocks. */
static inline int32_t kv_numbers(const struct kv_pool *pool, int32_t n)
{
    return !pool->tallied ? n : pool->contiguous && n > 0;
}

/* Takes n blocks, which must fit, into out[0 .. kv_numbers), each with one reference. */
static inline void kv_take(struct kv_pool *pool, int32_t n, uint32_t *out)
{
    ifl_require(n <= pool->n_free);
    if (pool->contiguous) {
        kv_take_run(pool, n, out);
        return;
    }
    if (pool->tallied) {
        if (pool->cached)
            kv_take_tallied(pool, n);
        else
            pool->n_free -= n;
        return;
    }
    if (pool->cached) {
        kv_take_uncached(pool, n, out);
        return;
    }
    ifl_require(out || n == 0);
    for (int32_t i = 0; i < n; i++) {
        const uint32_t block = pool->free_stack[--pool->n_free];
        pool->n_refs[block] = 1;
        out[i] = block;
    }
}

/* One more owner for a block that is in use, or that the cache keeps. */
static inline void kv_share(struct kv_pool *pool, uint32_t block)
{
    ifl_require(pool->n_refs[block] > 0 || pool->cached);
    if (pool->n_refs[block]++ > 0) {
        pool->n_shared++;
        return;
    }
    kv_cache_revive(&pool->cache, block);
    pool->n_free--;
}

/* Gives up one reference: whether it was the last. */
static inline bool kv_unshare(struct kv_pool *pool, uint32_t block)
{
    ifl_require(pool->n_refs[block] > 0);
    const bool last = --pool->n_refs[block] == 0;
    pool->n_shared -= !last;
    return last;
}

/* Gives up one reference to each of n blocks, in order. A block without owners becomes free. */
static inline void kv_release(struct kv_pool *pool, int32_t n, const uint32_t *blocks)
{
    if (pool->contiguous) {
        kv_release_run(pool, n, blocks);
        return;
    }
    if (pool->tallied) {
        ifl_require(!pool->cached);
        pool->n_free += n;
        ifl_require(pool->n_free <= pool->n_blocks);
        return;
    }
    if (pool->cached) {
        kv_release_cached(pool, n, blocks);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        if (kv_unshare(pool, blocks[i]))
            pool->free_stack[pool->n_free++] = blocks[i];
}

static inline int32_t kv_used(const struct kv_pool *pool)
{
    return pool->n_blocks - pool->n_free;
}

/* The block holds K/V that somebody may read. */
static inline bool kv_is_live(const struct kv_pool *pool, uint32_t block)
{
    return pool->n_refs[block] > 0 || (pool->cached && pool->cache.entries[block].cached);
}

/* Used blocks that nobody asked for: what contiguous runs are rounded up by. */
static inline int32_t kv_slack(const struct kv_pool *pool)
{
    return pool->buddy.n_slack;
}

#endif
