#include "replica/kv/cache.h"

#include <stdlib.h>

#include "inflight/error.h"

/* ---- creating and destroying ---- */

enum { FIRST_BUCKETS = 64 };

void kv_cache_create(struct kv_cache *cache, const struct kv_cache_options *options)
{
    *cache = (struct kv_cache){.options = *options, .epoch = 1};
}

int kv_cache_open_blocks(struct kv_cache *cache, int32_t n_blocks)
{
    const size_t n = (size_t)n_blocks + 1;
    cache->entries = calloc(n, sizeof *cache->entries);
    cache->buckets = calloc(FIRST_BUCKETS, sizeof *cache->buckets);
    cache->mask = FIRST_BUCKETS - 1;
    cache->wanted = malloc(n * sizeof *cache->wanted);
    return cache->entries && cache->buckets && cache->wanted
               ? kv_evictor_create(&cache->evictor, n_blocks)
               : IFL_E_NOMEM;
}

void kv_cache_destroy(struct kv_cache *cache)
{
    free(cache->entries);
    free(cache->buckets);
    free(cache->wanted);
    kv_evictor_destroy(&cache->evictor);
    *cache = (struct kv_cache){0};
}

/* True: a block that became unused later than another one is evicted later. */
static bool evicts_in_order(const struct kv_cache_options *options)
{
    const struct ifl_cached one = {.last_used = 2, .last_used_ns = 1};
    return options->kind == PREFIX_CACHE_HASH && options->evict->by_last_use &&
           options->evict->key(options->evict_self, options->view, &one) == (int64_t)one.last_used;
}

void kv_cache_tally(struct kv_cache *cache)
{
    cache->joins_runs = !cache->options.below && evicts_in_order(&cache->options);
}

static bool is_tree(const struct kv_cache *cache)
{
    return cache->options.kind == PREFIX_CACHE_RADIX;
}

/* ---- finding ---- */

int32_t kv_cache_find(const struct kv_cache *cache, uint64_t identity)
{
    if (cache->n_listed == 0)
        return -1;
    int32_t at = cache->buckets[identity & cache->mask];
    while (at > 0 && cache->entries[at - 1].identity != identity)
        at = cache->entries[at - 1].next;
    return at - 1;
}

static void append(struct kv_cache *cache, int32_t block)
{
    int32_t *end = &cache->buckets[cache->entries[block].identity & cache->mask];
    while (*end > 0)
        end = &cache->entries[*end - 1].next;
    *end = block + 1;
    cache->entries[block].next = 0;
}

/* Twice the buckets; entries of equal identities keep their order. Without memory for them buckets
 * become longer. */
IFL_APART static void widen(struct kv_cache *cache)
{
    const uint64_t n_were = cache->mask + 1;
    int32_t *were = cache->buckets, *wider = calloc(2 * n_were, sizeof *wider);
    if (!wider)
        return;
    cache->buckets = wider;
    cache->mask = 2 * n_were - 1;
    for (uint64_t i = 0; i < n_were; i++)
        for (int32_t at = were[i], next; at > 0; at = next) {
            next = cache->entries[at - 1].next;
            append(cache, at - 1);
        }
    free(were);
}

/* Appends to the bucket, so that lookups keep finding the first of equal identities. */
void kv_cache_list(struct kv_cache *cache, uint32_t block, uint64_t identity)
{
    ifl_assert(!cache->entries[block].listed || cache->entries[block].identity == identity);
    ifl_assert(cache->entries[block].cached);
    struct kv_entry *entry = &cache->entries[block];
    entry->identity = identity;
    if (entry->listed)
        return;
    if (++cache->n_listed > cache->mask / 2)
        widen(cache);
    append(cache, (int32_t)block);
    entry->listed = true;
}

void kv_cache_publish_run(struct kv_cache *cache, uint32_t name, int32_t n_blocks, int32_t before,
                          int32_t depth_tokens)
{
    ifl_assert(n_blocks > 0 && !cache->entries[name].cached);
    struct kv_entry *entry = &cache->entries[name];
    *entry = (struct kv_entry){.n_blocks = n_blocks,
                               .depth_tokens = depth_tokens,
                               .parent = is_tree(cache) ? before : -1,
                               .cached = true,
                               .n_uses = is_tree(cache) ? 0 : 1};
    kv_cache_touch(cache, name, cache->clock);
    if (entry->parent >= 0)
        cache->entries[entry->parent].n_children++;
}

void kv_cache_divide(struct kv_cache *cache, uint32_t name, const uint32_t *names)
{
    ifl_assert(cache->entries[name].cached);
    ifl_assert(cache->entries[name].n_blocks == 1 || !cache->entries[name].listed);
    struct kv_entry *last = &cache->entries[name];
    const int32_t n = last->n_blocks - 1;
    for (int32_t i = 0; i < n; i++) {
        struct kv_entry *entry = &cache->entries[names[i]];
        *entry = *last;
        entry->n_blocks = entry->n_children = 1;
        entry->depth_tokens -= (n - i) * cache->options.block_tokens;
        entry->parent = i == 0 || !is_tree(cache) ? last->parent : (int32_t)names[i - 1];
        entry->ends_node = false;
    }
    last->n_blocks = 1;
    if (n > 0 && is_tree(cache))
        last->parent = (int32_t)names[n - 1];
}

void kv_cache_publish(struct kv_cache *cache, uint32_t block, uint64_t identity, int32_t before,
                      int32_t depth_tokens, enum kv_seekers seekers)
{
    kv_cache_publish_run(cache, block, 1, before, depth_tokens);
    cache->entries[block].identity = identity;
    if (seekers != KV_SOUGHT_BY_NONE)
        kv_cache_list(cache, block, identity);
    cache->epoch += seekers == KV_SOUGHT_BY_ALL;
}

static void strike_out(struct kv_cache *cache, uint32_t block)
{
    const struct kv_entry *entry = &cache->entries[block];
    int32_t *at = &cache->buckets[entry->identity & cache->mask];
    while (*at != (int32_t)block + 1)
        at = &cache->entries[*at - 1].next;
    *at = entry->next;
    cache->n_listed--;
}

void kv_cache_withdraw(struct kv_cache *cache, uint32_t block)
{
    ifl_assert(cache->entries[block].cached);
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
}

/* A block, or one of a run that no lookup asks for, goes to the tier below. */
static void drop_below(struct kv_cache *cache, uint32_t block, int32_t n)
{
    const struct kv_entry *entry = &cache->entries[block];
    for (int32_t i = 0; i < n; i++)
        kv_tier_put(cache->options.below, entry->identity, entry->listed && n == 1, &block);
}

static void forget(struct kv_cache *cache, uint32_t block)
{
    if (cache->options.below)
        drop_below(cache, block, cache->entries[block].n_blocks);
    kv_cache_withdraw(cache, block);
}

/* ---- losing ---- */

/* A block as the evict module sees it. */
struct shown_block {
    struct ifl_cached pub; /* first: the module holds a pointer to it */
    struct kv_cache *cache;
    uint32_t block;
};

static bool is_wanted(const struct ifl_cached *cached)
{
    const struct shown_block *shown = (const struct shown_block *)(const void *)cached;
    shown->cache->asks_wanted = true;
    return shown->cache->entries[shown->block].wanted;
}

static struct kv_rank rank_of(struct kv_cache *cache, uint32_t block)
{
    const struct kv_entry *entry = &cache->entries[block];
    const struct shown_block shown = {.cache = cache,
                                      .block = block,
                                      .pub = {.last_used = entry->last_used,
                                              .last_used_ns = entry->last_used_ns,
                                              .n_uses = entry->n_uses,
                                              .depth_tokens = entry->depth_tokens,
                                              .wanted = is_wanted}};
    const struct kv_cache_options *o = &cache->options;
    return (struct kv_rank){.key = o->evict->key(o->evict_self, o->view, &shown.pub),
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
    ifl_assert(cache->entries[block].cached);
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
    ifl_assert(cache->n_idle >= cache->entries[block].n_blocks);
    if (kv_evictor_has(&cache->evictor, block))
        kv_evictor_remove(&cache->evictor, block);
    cache->n_idle -= cache->entries[block].n_blocks;
}

bool kv_cache_retire(struct kv_cache *cache, uint32_t block)
{
    struct kv_entry *entry = &cache->entries[block];
    if (!entry->cached && cache->options.unhashed == KV_UNHASHED_FIRST)
        return false;
    if (!entry->cached) /* deeper than every cached block of its request */
        *entry = (struct kv_entry){.last_used = entry->last_used,
                                   .last_used_ns = entry->last_used_ns,
                                   .n_blocks = 1,
                                   .depth_tokens = INT32_MAX,
                                   .parent = -1};
    cache->n_idle += entry->n_blocks;
    if (entry->n_children == 0 || !is_tree(cache))
        offer(cache, block);
    return true;
}

void kv_cache_queue(struct kv_cache *cache, uint32_t name, int32_t n_blocks)
{
    ifl_assert(n_blocks > 0 && !cache->entries[name].cached);
    cache->entries[name] =
        (struct kv_entry){.n_blocks = n_blocks, .depth_tokens = INT32_MAX, .parent = -1};
    kv_cache_touch(cache, name, cache->clock);
    cache->n_idle += n_blocks;
    offer(cache, name);
}

/* Evicts a leaf node from its end to its beginning. If this makes the node above a leaf, that node
 * is offered for eviction. */
static struct kv_loss lose_leaf(struct kv_cache *cache, const uint32_t *n_refs, int32_t block,
                                uint32_t *lost)
{
    struct kv_loss loss = {0};
    for (;;) {
        const int32_t above = cache->entries[block].parent;
        forget(cache, (uint32_t)block);
        lost[loss.n_names++] = (uint32_t)block;
        loss.n_blocks += cache->entries[block].n_blocks;
        const bool bare = above >= 0 && cache->entries[above].n_children == 0 && n_refs[above] == 0;
        if (bare && cache->entries[above].ends_node)
            offer(cache, (uint32_t)above);
        if (!bare || cache->entries[above].ends_node)
            return loss;
        block = above;
    }
}

/* Evicts the last blocks of a run, at least one of which remains.
 *   - If the shorter run is certain to stay first in line: up to n_most blocks at once.
 *   - Otherwise: one block. The run is ranked again, since it is less deep now. */
static struct kv_loss lose_last(struct kv_cache *cache, uint32_t name, int32_t n_most)
{
    struct kv_entry *entry = &cache->entries[name];
    const int32_t block_tokens = entry->cached ? cache->options.block_tokens : 0;
    int32_t n = n_most < entry->n_blocks ? n_most : entry->n_blocks - 1;
    const bool stays =
        cache->options.evict->ignores_depth &&
        kv_evictor_shorten_first(&cache->evictor, name, entry->depth_tokens - n * block_tokens);
    n = stays ? n : 1;
    entry->n_blocks -= n;
    entry->depth_tokens -= n * block_tokens;
    if (cache->options.below && entry->cached)
        drop_below(cache, name, n);
    if (!stays)
        kv_evictor_rerank_first(&cache->evictor, rank_of(cache, name));
    return (struct kv_loss){.n_blocks = n};
}

struct kv_loss kv_cache_evict(struct kv_cache *cache, const uint32_t *n_refs, int32_t n_most,
                              uint32_t *lost)
{
    ifl_assert(n_most > 0);
    const int32_t block = kv_evictor_first(&cache->evictor);
    struct kv_loss loss = {0};
    if (block < 0)
        return loss;
    struct kv_entry *entry = &cache->entries[block];
    if (cache->joins_runs && !entry->cached && entry->n_blocks > n_most) {
        entry->n_blocks -= n_most;
        loss.n_blocks = n_most;
    } else if (entry->n_blocks > 1 && !(entry->cached && is_tree(cache))) {
        loss = lose_last(cache, (uint32_t)block, n_most);
    } else {
        kv_evictor_remove(&cache->evictor, (uint32_t)block);
        loss = (struct kv_loss){1, 1};
        lost[0] = (uint32_t)block;
        if (is_tree(cache))
            loss = lose_leaf(cache, n_refs, block, lost);
        else if (entry->cached)
            forget(cache, (uint32_t)block);
    }
    cache->n_idle -= loss.n_blocks;
    return loss;
}
