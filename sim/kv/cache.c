#include "kv/cache.h"

#include <stdlib.h>

#include "inflight/error.h"

/* ---- life ---- */

static uint64_t n_buckets_for(int32_t n_blocks)
{
    uint64_t n = 16;
    while (n < 2 * (uint64_t)n_blocks)
        n *= 2;
    return n;
}

int kv_cache_create(struct kv_cache *cache, int32_t n_blocks,
                    const struct kv_cache_options *options)
{
    const uint64_t n_buckets = n_buckets_for(n_blocks);
    *cache = (struct kv_cache){
        .options = *options,
        .entries = calloc((size_t)n_blocks + 1, sizeof *cache->entries),
        .buckets = malloc(n_buckets * sizeof *cache->buckets),
        .wanted = malloc(((size_t)n_blocks + 1) * sizeof *cache->wanted),
        .mask = n_buckets - 1,
        .epoch = 1,
    };
    if (!cache->entries || !cache->buckets || !cache->wanted ||
        kv_evictor_create(&cache->evictor, n_blocks) < 0) {
        kv_cache_destroy(cache);
        return -1;
    }
    for (uint64_t i = 0; i < n_buckets; i++)
        cache->buckets[i] = -1;
    return 0;
}

void kv_cache_destroy(struct kv_cache *cache)
{
    free(cache->entries);
    free(cache->buckets);
    free(cache->wanted);
    kv_evictor_destroy(&cache->evictor);
    *cache = (struct kv_cache){0};
}

static bool is_tree(const struct kv_cache *cache)
{
    return cache->options.kind == PREFIX_CACHE_RADIX;
}

/* ---- finding ---- */

int32_t kv_cache_find(const struct kv_cache *cache, uint64_t identity)
{
    int32_t block = cache->buckets[identity & cache->mask];
    while (block >= 0 && cache->entries[block].identity != identity)
        block = cache->entries[block].next;
    return block;
}

/* At the end of its bucket: of equal identities the first stays the one that is found. */
void kv_cache_list(struct kv_cache *cache, uint32_t block)
{
    struct kv_entry *entry = &cache->entries[block];
    int32_t *end = &cache->buckets[entry->identity & cache->mask];
    if (entry->listed)
        return;
    while (*end >= 0)
        end = &cache->entries[*end].next;
    *end = (int32_t)block;
    entry->listed = true;
}

void kv_cache_publish(struct kv_cache *cache, uint32_t block, uint64_t identity, int32_t before,
                      int32_t depth_tokens, enum kv_seekers seekers)
{
    struct kv_entry *entry = &cache->entries[block];
    *entry = (struct kv_entry){.identity = identity,
                               .next = -1,
                               .depth_tokens = depth_tokens,
                               .parent = is_tree(cache) ? before : -1,
                               .cached = true,
                               .n_uses = 1};
    kv_cache_touch(cache, block, cache->clock);
    if (entry->parent >= 0)
        cache->entries[entry->parent].n_children++;
    if (seekers != KV_SOUGHT_BY_NONE)
        kv_cache_list(cache, block);
    cache->epoch += seekers == KV_SOUGHT_BY_ALL;
}

static void strike_out(struct kv_cache *cache, uint32_t block)
{
    const struct kv_entry *entry = &cache->entries[block];
    int32_t *at = &cache->buckets[entry->identity & cache->mask];
    while (*at != (int32_t)block)
        at = &cache->entries[*at].next;
    *at = entry->next;
}

static void forget(struct kv_cache *cache, uint32_t block)
{
    struct kv_entry *entry = &cache->entries[block];
    if (entry->listed)
        strike_out(cache, block);
    entry->cached = entry->listed = false;
    if (entry->parent >= 0)
        cache->entries[entry->parent].n_children--;
    cache->epoch += entry->asked;
    cache->n_asked -= entry->asked;
    cache->asked_lost |= entry->asked;
    entry->asked = false;
    cache->n_evicted++;
}

/* ---- losing ---- */

static struct kv_rank rank_of(const struct kv_cache *cache, uint32_t block)
{
    const struct kv_entry *entry = &cache->entries[block];
    const struct ifl_cached cached = {.last_used = entry->last_used,
                                      .last_used_ns = entry->last_used_ns,
                                      .n_uses = entry->n_uses,
                                      .depth_tokens = entry->depth_tokens,
                                      .wanted = entry->wanted};
    const struct kv_cache_options *o = &cache->options;
    return (struct kv_rank){.key = o->evict->key(o->evict_self, o->view, &cached),
                            .touched = entry->last_used,
                            .depth_tokens = entry->depth_tokens};
}

static void offer(struct kv_cache *cache, uint32_t block)
{
    kv_evictor_put(&cache->evictor, block, rank_of(cache, block));
}

static void set_wanted(struct kv_cache *cache, uint32_t block, bool wanted)
{
    cache->entries[block].wanted = wanted;
    if (!kv_evictor_has(&cache->evictor, block))
        return;
    kv_evictor_remove(&cache->evictor, block);
    offer(cache, block);
}

void kv_cache_want(struct kv_cache *cache, uint32_t block)
{
    if (cache->entries[block].wanted)
        return;
    cache->wanted[cache->n_wanted++] = block;
    set_wanted(cache, block, true);
}

void kv_cache_want_none(struct kv_cache *cache)
{
    for (int32_t i = 0; i < cache->n_wanted; i++)
        set_wanted(cache, cache->wanted[i], false);
    cache->n_wanted = 0;
}

void kv_cache_revive(struct kv_cache *cache, uint32_t block)
{
    if (kv_evictor_has(&cache->evictor, block))
        kv_evictor_remove(&cache->evictor, block);
    cache->n_idle--;
}

bool kv_cache_retire(struct kv_cache *cache, uint32_t block)
{
    struct kv_entry *entry = &cache->entries[block];
    if (!entry->cached && cache->options.unhashed == KV_UNHASHED_FIRST)
        return false;
    if (!entry->cached) /* behind all that can be found of its request */
        *entry = (struct kv_entry){.last_used = entry->last_used,
                                   .last_used_ns = entry->last_used_ns,
                                   .depth_tokens = INT32_MAX,
                                   .parent = -1};
    cache->n_idle++;
    if (entry->n_children == 0 || !is_tree(cache))
        offer(cache, block);
    return true;
}

/* A leaf's blocks from its end up; then the node above may be a leaf. */
static int32_t lose_leaf(struct kv_cache *cache, const uint32_t *n_refs, int32_t block,
                         uint32_t *lost)
{
    int32_t n = 0;
    for (;;) {
        const int32_t above = cache->entries[block].parent;
        forget(cache, (uint32_t)block);
        lost[n++] = (uint32_t)block;
        const bool bare = above >= 0 && cache->entries[above].n_children == 0 && n_refs[above] == 0;
        if (bare && cache->entries[above].ends_node)
            offer(cache, (uint32_t)above);
        if (!bare || cache->entries[above].ends_node)
            return n;
        block = above;
    }
}

int32_t kv_cache_evict(struct kv_cache *cache, const uint32_t *n_refs, uint32_t *lost)
{
    const int32_t block = kv_evictor_pop(&cache->evictor);
    int32_t n = 1;
    if (block < 0)
        return 0;
    lost[0] = (uint32_t)block;
    if (is_tree(cache))
        n = lose_leaf(cache, n_refs, block, lost);
    else if (cache->entries[block].cached)
        forget(cache, (uint32_t)block);
    cache->n_idle -= n;
    return n;
}
