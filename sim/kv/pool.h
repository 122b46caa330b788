/* The KV pool: blocks with identities and reference counts.
 *
 * The free list is a stack, as in vLLM v0: the block freed last is used first. A fresh pool of N
 * blocks hands out N-1 first. Host blocks, for swapped requests, are a second pool of the same
 * kind. A pool knows nothing about requests; whoever takes a block keeps its number. */
#ifndef SIM_KV_POOL_H
#define SIM_KV_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

struct kv_pool {
    int32_t n_blocks, n_free;
    uint32_t *free_stack; /* [n_blocks], the top at n_free - 1 */
    uint16_t *n_refs;     /* [n_blocks] */
};

/* 0, or -1 without memory. A zeroed pool is valid and empty. */
int kv_pool_create(struct kv_pool *pool, int32_t n_blocks);
void kv_pool_destroy(struct kv_pool *pool);

/* Takes n blocks into out[0..n), each with one reference; n must not exceed n_free. */
static inline void kv_take(struct kv_pool *pool, int32_t n, uint32_t *out)
{
    ifl_require(n <= pool->n_free);
    for (int32_t i = 0; i < n; i++) {
        const uint32_t block = pool->free_stack[--pool->n_free];
        pool->n_refs[block] = 1;
        out[i] = block;
    }
}

/* One more owner for a block that is in use. */
static inline void kv_share(struct kv_pool *pool, uint32_t block)
{
    ifl_require(pool->n_refs[block] > 0 && pool->n_refs[block] < UINT16_MAX);
    pool->n_refs[block]++;
}

/* Gives up one reference to each of n blocks, in order. A block without owners becomes free. */
static inline void kv_release(struct kv_pool *pool, int32_t n, const uint32_t *blocks)
{
    for (int32_t i = 0; i < n; i++) {
        ifl_require(pool->n_refs[blocks[i]] > 0);
        if (--pool->n_refs[blocks[i]] == 0)
            pool->free_stack[pool->n_free++] = blocks[i];
    }
}

static inline int32_t kv_used(const struct kv_pool *pool)
{
    return pool->n_blocks - pool->n_free;
}

static inline int32_t kv_blocks_for(int32_t n_tokens, int32_t block_tokens)
{
    return (int32_t)(((int64_t)n_tokens + block_tokens - 1) / block_tokens);
}

#endif
