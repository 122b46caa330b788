#include "live_request.h"

#include <stdlib.h>
#include <string.h>

enum { RECORDS_PER_CHUNK = 256, ALIGNMENT = 16 };

static size_t aligned(size_t n_bytes)
{
    return (n_bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

void live_pool_init(struct live_pool *pool, const size_t request_bytes[IFL_N_KINDS])
{
    *pool = (struct live_pool){.record_bytes = aligned(sizeof(struct live_request))};
    for (int kind = 0; kind < IFL_N_KINDS; kind++) {
        pool->has_module[kind] = request_bytes[kind] > 0;
        pool->module_offset[kind] = pool->record_bytes;
        pool->record_bytes += aligned(request_bytes[kind]);
    }
}

static struct live_request *record_at(const struct live_pool *pool, size_t chunk, size_t i)
{
    return (struct live_request *)(void *)((char *)pool->chunks[chunk] + i * pool->record_bytes);
}

static void free_arrays(struct live_request *r)
{
    free(r->blocks);
    free(r->beams.at);
}

void live_pool_finish(struct live_pool *pool)
{
    for (size_t c = 0; c < pool->n_chunks; c++) {
        for (size_t i = 0; i < RECORDS_PER_CHUNK; i++)
            free_arrays(record_at(pool, c, i));
        free(pool->chunks[c]);
    }
    free(pool->chunks);
    *pool = (struct live_pool){0};
}

static int add_chunk(struct live_pool *pool)
{
    if (pool->n_chunks == pool->cap_chunks) {
        const size_t cap = pool->cap_chunks ? 2 * pool->cap_chunks : 16;
        void **chunks = realloc(pool->chunks, cap * sizeof *chunks);
        if (!chunks)
            return -1;
        pool->chunks = chunks;
        pool->cap_chunks = cap;
    }
    void *chunk = calloc(RECORDS_PER_CHUNK, pool->record_bytes);
    if (!chunk)
        return -1;
    pool->chunks[pool->n_chunks++] = chunk;
    for (size_t i = RECORDS_PER_CHUNK; i-- > 0;) {
        struct live_request *r = record_at(pool, pool->n_chunks - 1, i);
        r->links[ON_DEVICE].next = pool->free;
        pool->free = r;
    }
    return 0;
}

struct live_request *live_take(struct live_pool *pool)
{
    if (!pool->free && add_chunk(pool) < 0)
        return NULL;
    struct live_request *r = pool->free;
    pool->free = r->links[ON_DEVICE].next;
    uint32_t *blocks = r->blocks;
    const int32_t cap_blocks = r->cap_blocks;
    const struct kv_beams beams = {.at = r->beams.at, .cap = r->beams.cap};
    memset(r, 0, pool->record_bytes);
    r->blocks = blocks;
    r->cap_blocks = cap_blocks;
    r->beams = beams;
    for (int kind = 0; kind < IFL_N_KINDS; kind++)
        if (pool->has_module[kind])
            r->pub.mine[kind] = (char *)r + pool->module_offset[kind];
    pool->n_live++;
    return r;
}

void live_give(struct live_pool *pool, struct live_request *r)
{
    r->links[ON_DEVICE].next = pool->free;
    pool->free = r;
    pool->n_live--;
}

int live_grow_blocks(struct live_request *r, int32_t n)
{
    int32_t cap = r->cap_blocks ? r->cap_blocks : 32;
    while (cap < n)
        cap *= 2;
    uint32_t *blocks = realloc(r->blocks, (size_t)cap * sizeof *blocks);
    if (!blocks)
        return -1;
    r->blocks = blocks;
    r->cap_blocks = cap;
    return 0;
}
