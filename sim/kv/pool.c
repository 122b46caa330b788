#include "kv/pool.h"

#include <stdlib.h>

#include "inflight/error.h"

int kv_pool_create(struct kv_pool *pool, int32_t n_blocks)
{
    const size_t n = n_blocks > 0 ? (size_t)n_blocks : 1;
    *pool = (struct kv_pool){
        .n_blocks = n_blocks,
        .n_free = n_blocks,
        .free_stack = malloc(n * sizeof *pool->free_stack),
        .n_refs = calloc(n, sizeof *pool->n_refs),
    };
    if (!pool->free_stack || !pool->n_refs) {
        kv_pool_destroy(pool);
        return -1;
    }
    for (int32_t i = 0; i < n_blocks; i++)
        pool->free_stack[i] = (uint32_t)i;
    return 0;
}

void kv_pool_destroy(struct kv_pool *pool)
{
    free(pool->free_stack);
    free(pool->n_refs);
    *pool = (struct kv_pool){0};
}

void kv_take(struct kv_pool *pool, int32_t n, uint32_t *out)
{
    ifl_require(n <= pool->n_free);
    for (int32_t i = 0; i < n; i++) {
        const uint32_t block = pool->free_stack[--pool->n_free];
        pool->n_refs[block] = 1;
        out[i] = block;
    }
}

void kv_share(struct kv_pool *pool, uint32_t block)
{
    ifl_require(pool->n_refs[block] > 0 && pool->n_refs[block] < UINT16_MAX);
    pool->n_refs[block]++;
}

void kv_release(struct kv_pool *pool, int32_t n, const uint32_t *blocks)
{
    for (int32_t i = 0; i < n; i++) {
        ifl_require(pool->n_refs[blocks[i]] > 0);
        if (--pool->n_refs[blocks[i]] == 0)
            pool->free_stack[pool->n_free++] = blocks[i];
    }
}
