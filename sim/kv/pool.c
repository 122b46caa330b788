#include "kv/pool.h"

#include <stdlib.h>

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
