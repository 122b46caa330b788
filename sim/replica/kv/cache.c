#include "replica/kv/cache.h"

#include <stdlib.h>

#include "inflight/error.h"
#include "inflight/minmax.h"

#include "base/array.h"

/* ---- creating and destroying ---- */

enum { FIRST_BUCKETS = 64, FIRST_ENTRIES = 16, FEW_ENTRIES = 128, FIRST_WANTED = 64 };

void kv_cache_create(struct kv_cache *cache, const struct kv_cache_options *options)
{
    *cache = (struct kv_cache){.options = *options, .epoch = 1};
}

int kv_cache_open_blocks(struct kv_cache *cache, int32_t n_blocks)
{
    cache->n_blocks = n_blocks;
    cache->last_block = n_blocks - 1;
    cache->buckets = calloc(FIRST_BUCKETS, sizeof *cache->buckets);
    cache->mask = FIRST_BUCKETS - 1;
    kv_evictor_create(&cache->evictor, n_blocks, NULL, sizeof *cache->entries);
    return cache->buckets ? 0 : IFL_E_NOMEM;
}

static void use(struct kv_cache *cache, struct kv_entry *entries, int32_t cap)
{
    cache->entries = entries;
    cache->cap = cap;
    kv_evictor_move(&cache->evictor, entries);
}

int kv_cache_reserve_all(struct kv_cache *cache)
{
    ifl_assert(cache->cap == 0);
    struct kv_entry *entries = calloc((size_t)cache->n_blocks + 1, sizeof *entries);
    if (!entries)
        return IFL_E_NOMEM;
    use(cache, entries, cache->n_blocks);
    return 0;
}

int kv_cache_reserve(struct kv_cache *cache, int32_t n_used, int32_t n)
{
    ifl_assert(n_used <= n && n <= cache->n_blocks);
    struct kv_entry *entries = cache->entries;
    if (n <= cache->cap)
        return 0;
    const int32_t more = ifl_max(n, cache->cap + cache->cap / 4 + FIRST_ENTRIES);
    const int32_t cap = more > FEW_ENTRIES ? cache->n_blocks : ifl_min(more, cache->n_blocks);
    if (array_grow(&entries, (size_t)n_used, (size_t)cap, sizeof *entries) < 0)
        return IFL_E_NOMEM;
    use(cache, entries, cap);
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
    while (at > 0 && kv_entry(cache, at - 1)->identity != identity)
        at = kv_entry(cache, at - 1)->next;
    return at - 1;
}

static void append(struct kv_cache *cache, int32_t block)
{
    int32_t *end = &cache->buckets[kv_entry(cache, block)->identity & cache->mask];
    while (*end > 0)
        end = &kv_entry(cache, *end - 1)->next;
    *end = block + 1;
    kv_entry(cache, block)->next = 0;
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
            next = kv_entry(cache, at - 1)->next;
            append(cache, at - 1);
        }
    free(were);
}

/* Appends to the bucket, so that lookups keep finding the first of equal identities. */
void kv_cache_list(struct kv_cache *cache, uint32_t block, uint64_t identity)
{
    ifl_assert(!kv_entry(cache, block)->listed || kv_entry(cache, block)->identity == identity);
    ifl_assert(kv_entry(cache, block)->cached);
    ifl_assert(kv_entry_blocks(kv_entry(cache, block)) == 1);
    struct kv_entry *entry = kv_entry(cache, block);
    entry->identity = identity;
    if (entry->listed)
        return;
    if (++cache->n_listed > cache->mask / 2)
        widen(cache);
    append(cache, (int32_t)block);
    entry->listed = true;
    if (IFL_RARE(cache->listener != NULL))
        cache->listener->on_list(cache->listener->self, cache->listener_of, identity);
}

void kv_cache_listen(struct kv_cache *cache, const struct kv_listener *listener, uint32_t of)
{
    cache->listener = listener;
    cache->listener_of = of;
    for (uint64_t i = 0; cache->n_listed > 0 && i <= cache->mask; i++)
        for (int32_t at = cache->buckets[i]; at > 0; at = kv_entry(cache, at - 1)->next)
            listener->on_list(listener->self, of, kv_entry(cache, at - 1)->identity);
}

void kv_cache_publish_run(struct kv_cache *cache, uint32_t name, int32_t n_blocks, int32_t before,
                          int32_t depth_tokens)
{
    ifl_assert(n_blocks > 0 && !kv_entry(cache, name)->cached);
    struct kv_entry *entry = kv_entry(cache, name);
    *entry = (struct kv_entry){.n_refs = entry->n_refs,
                               .depth_tokens = depth_tokens,
                               .cached = true,
                               .n_uses = is_tree(cache) ? 0 : 1,
                               .n_run = n_blocks,
                               .parent = is_tree(cache) ? before : -1};
    kv_cache_touch(cache, name, cache->clock);
    if (entry->parent >= 0)
        kv_entry(cache, entry->parent)->n_children++;
}

void kv_cache_divide(struct kv_cache *cache, uint32_t name, const uint32_t *names)
{
    ifl_assert(kv_entry(cache, name)->cached);
    struct kv_entry *last = kv_entry(cache, name);
    const int32_t n = kv_entry_blocks(last) - 1;
    for (int32_t i = 0; i < n; i++) {
        struct kv_entry *entry = kv_entry(cache, names[i]);
        const uint32_t n_refs = entry->n_refs;
        *entry = *last;
        entry->n_refs = n_refs;
        entry->n_run = entry->n_children = 1;
        entry->depth_tokens -= (n - i) * cache->options.block_tokens;
        entry->parent = i == 0 || !is_tree(cache) ? last->parent : (int32_t)names[i - 1];
        entry->ends_node = false;
    }
    if (n > 0)
        last->n_run = 1;
    if (n > 0 && is_tree(cache))
        last->parent = (int32_t)names[n - 1];
}

void kv_cache_publish(struct kv_cache *cache, uint32_t block, uint64_t identity, int32_t before,
                      int32_t depth_tokens, enum kv_seekers seekers)
{
    kv_cache_publish_run(cache, block, 1, before, depth_tokens);
    kv_entry(cache, block)->identity = identity;
    if (seekers != KV_SOUGHT_BY_NONE)
        kv_cache_list(cache, block, identity);
    cache->epoch += seekers == KV_SOUGHT_BY_ALL;
}

static void strike_out(struct kv_cache *cache, uint32_t block, struct kv_entry *entry)
{
    int32_t *at = &cache->buckets[entry->identity & cache->mask];
    while (*at != (int32_t)block + 1)
        at = &kv_entry(cache, *at - 1)->next;
    *at = entry->next;
    entry->listed = false;
    entry->n_run = 1;
    cache->n_listed--;
    if (IFL_RARE(cache->listener != NULL))
        cache->listener->on_strike(cache->listener->self, cache->listener_of, entry->identity);
}

static void lose_asked(struct kv_cache *cache, struct kv_entry *entry)
{
    cache->epoch++;
    cache->n_asked--;
    cache->asked_lost = true;
    entry->asked = false;
}

static void withdraw(struct kv_cache *cache, uint32_t block, struct kv_entry *entry)
{
    if (entry->listed)
        strike_out(cache, block, entry);
    entry->cached = false;
    if (entry->parent >= 0)
        kv_entry(cache, entry->parent)->n_children--;
    if (entry->asked)
        lose_asked(cache, entry);
}

void kv_cache_withdraw(struct kv_cache *cache, uint32_t block)
{
    ifl_assert(kv_entry(cache, block)->cached);
    withdraw(cache, block, kv_entry(cache, block));
}

/* A block, or one of a run that no lookup asks for, goes to the tier below. */
IFL_APART static void drop_below(struct kv_cache *cache, uint32_t block, int32_t n)
{
    const struct kv_entry *entry = kv_entry(cache, block);
    for (int32_t i = 0; i < n; i++)
        kv_tier_put(cache->options.below, entry->identity, entry->listed && n == 1, &block);
}

static void forget(struct kv_cache *cache, uint32_t block, struct kv_entry *entry)
{
    ifl_assert(entry == kv_entry(cache, block) && entry->cached);
    if (IFL_RARE(cache->options.below != NULL))
        drop_below(cache, block, kv_entry_blocks(entry));
    withdraw(cache, block, entry);
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
    return kv_entry(shown->cache, shown->block)->wanted;
}

static struct kv_rank rank_of(struct kv_cache *cache, uint32_t block)
{
    const struct kv_entry *entry = kv_entry(cache, block);
    const struct shown_block shown = {.cache = cache,
                                      .block = block,
                                      .pub = {.last_used = entry->last_used,
                                              .last_used_ns = entry->last_used_ns,
                                              .n_uses = kv_entry_uses(entry),
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

/* The block leaves the evictor, and is without references and children, as it was. */
static void take_out(struct kv_cache *cache, uint32_t block)
{
    struct kv_entry *entry = kv_entry(cache, block);
    kv_evictor_remove(&cache->evictor, block);
    entry->n_refs = 0;
    entry->n_children = 0;
}

static void set_wanted(struct kv_cache *cache, uint32_t block, bool wanted)
{
    kv_entry(cache, block)->wanted = wanted;
    if (!kv_seat_is_taken(&kv_entry(cache, block)->seat))
        return;
    take_out(cache, block);
    offer(cache, block);
}

void kv_cache_want(struct kv_cache *cache, uint32_t block)
{
    ifl_assert(kv_entry(cache, block)->cached);
    if (kv_entry(cache, block)->wanted ||
        array_room(&cache->wanted, cache->n_wanted, &cache->cap_wanted, FIRST_WANTED,
                   sizeof *cache->wanted) < 0)
        return;
    cache->wanted[cache->n_wanted++] = block;
    set_wanted(cache, block, true);
}

void kv_cache_want_none(struct kv_cache *cache)
{
    for (size_t i = 0; i < cache->n_wanted; i++)
        set_wanted(cache, cache->wanted[i], false);
    cache->n_wanted = 0;
}

void kv_cache_revive(struct kv_cache *cache, uint32_t block)
{
    const int32_t n = kv_entry_blocks(kv_entry(cache, block));
    ifl_assert(cache->n_idle >= n);
    if (kv_seat_is_taken(&kv_entry(cache, block)->seat))
        take_out(cache, block);
    cache->n_idle -= n;
}

bool kv_cache_retire(struct kv_cache *cache, uint32_t block)
{
    struct kv_entry *entry = kv_entry(cache, block);
    if (!entry->cached && cache->options.unhashed == KV_UNHASHED_FIRST)
        return false;
    if (!entry->cached) /* deeper than every cached block of its request */
        *entry = (struct kv_entry){.last_used = entry->last_used,
                                   .last_used_ns = entry->last_used_ns,
                                   .depth_tokens = INT32_MAX,
                                   .n_run = 1,
                                   .parent = -1};
    cache->n_idle += kv_entry_blocks(entry);
    if (entry->n_children == 0 || !is_tree(cache))
        offer(cache, block);
    return true;
}

void kv_cache_queue(struct kv_cache *cache, uint32_t name, int32_t n_blocks)
{
    ifl_assert(n_blocks > 0 && !kv_entry(cache, name)->cached);
    *kv_entry(cache, name) =
        (struct kv_entry){.depth_tokens = INT32_MAX, .n_run = n_blocks, .parent = -1};
    kv_cache_touch(cache, name, cache->clock);
    cache->n_idle += n_blocks;
    offer(cache, name);
}

int32_t kv_cache_take_name(struct kv_cache *cache)
{
    const int32_t name = cache->free_name - 1;
    if (name >= 0)
        cache->free_name = kv_entry(cache, name)->next;
    return name;
}

static void give_name(struct kv_cache *cache, uint32_t name, struct kv_entry *entry)
{
    entry->next = cache->free_name;
    cache->free_name = (int32_t)name + 1;
}

void kv_cache_give_name(struct kv_cache *cache, uint32_t name)
{
    give_name(cache, name, kv_entry(cache, name));
}

static void lose_name(struct kv_cache *cache, uint32_t name, struct kv_entry *entry,
                      struct kv_loss *loss, uint32_t *lost)
{
    if (lost)
        lost[loss->n_names] = name;
    else
        give_name(cache, name, entry);
    loss->n_names++;
}

/* Evicts a leaf node from its end to its beginning. If this makes the node above a leaf, that node
 * is offered for eviction. */
static struct kv_loss lose_leaf(struct kv_cache *cache, int32_t block, uint32_t *lost)
{
    struct kv_loss loss = {0};
    struct kv_entry *entry = kv_entry(cache, block);
    for (;;) {
        const int32_t above = entry->parent;
        forget(cache, (uint32_t)block, entry);
        loss.n_blocks += kv_entry_blocks(entry);
        lose_name(cache, (uint32_t)block, entry, &loss, lost);
        if (above < 0)
            return loss;
        entry = kv_entry(cache, above);
        block = above;
        if (entry->n_children > 0 || entry->n_refs > 0)
            return loss;
        if (entry->ends_node) {
            offer(cache, (uint32_t)block);
            return loss;
        }
    }
}

/* Evicts the last blocks of a run, at least one of which remains.
 *   - If the shorter run is certain to stay first in line: up to n_most blocks at once.
 *   - Otherwise: one block. The run keeps its key, and is less deep now. Its depth is that of its
 *     seat, so that it stays as it was until then. */
static struct kv_loss lose_last(struct kv_cache *cache, uint32_t name, int32_t n_most)
{
    struct kv_entry *entry = kv_entry(cache, name);
    const int32_t block_tokens = entry->cached ? cache->options.block_tokens : 0;
    int32_t n = n_most < entry->n_run ? n_most : entry->n_run - 1;
    const bool stays =
        kv_evictor_shorten_first(&cache->evictor, name, entry->depth_tokens - n * block_tokens);
    n = stays ? n : 1;
    entry->n_run -= n;
    if (cache->options.below && entry->cached)
        drop_below(cache, name, n);
    if (!stays)
        kv_evictor_rerank_first(
            &cache->evictor, (struct kv_rank){.key = entry->seat.key,
                                              .touched = entry->last_used,
                                              .depth_tokens = entry->depth_tokens - block_tokens});
    return (struct kv_loss){.n_blocks = n};
}

static struct kv_loss lose_block(struct kv_cache *cache, uint32_t block, uint32_t *lost)
{
    struct kv_loss loss = {.n_blocks = 1};
    if (is_tree(cache))
        return lose_leaf(cache, (int32_t)block, lost);
    struct kv_entry *entry = kv_entry(cache, block);
    if (entry->cached)
        forget(cache, block, entry);
    lose_name(cache, block, entry, &loss, lost);
    return loss;
}

struct kv_loss kv_cache_evict(struct kv_cache *cache, int32_t n_most, uint32_t *lost)
{
    ifl_assert(n_most > 0);
    const int32_t block = kv_evictor_first(&cache->evictor);
    struct kv_loss loss = {0};
    if (block < 0)
        return loss;
    struct kv_entry *entry = kv_entry(cache, block);
    if (cache->joins_runs && !entry->cached && entry->n_run > n_most) {
        entry->n_run -= n_most;
        loss.n_blocks = n_most;
    } else if (kv_entry_blocks(entry) > 1 && !(entry->cached && is_tree(cache))) {
        loss = lose_last(cache, (uint32_t)block, n_most);
    } else {
        take_out(cache, (uint32_t)block);
        loss = lose_block(cache, (uint32_t)block, lost);
    }
    cache->n_idle -= loss.n_blocks;
    return loss;
}
