/* The prefix cache: blocks with known K/V that requests can find by identity and use again.
 *
 * Flat, as in vLLM: a table from identities to blocks.
 *   - A block that is published twice is kept twice.
 *   - Unused blocks are evicted one by one.
 * As a tree, as SGLang's radix tree: a page is a block, an edge leads to the next block.
 *   - A node is a run of blocks that were published or matched together. It ends where another
 *     publication or match began.
 *   - A block that is published twice is merged.
 *   - Unused nodes are evicted whole, leaves first. A block with an owner locks its node.
 *
 * Consecutive blocks that no lookup can ask for may share one entry, a run. In a tree a run is one
 * node or the end of one; in a table it is evicted block by block from its end. A block that a
 * lookup can find has an entry of its own.
 *
 * The pool (pool.h) owns the blocks and calls the cache. The cache knows no requests. */
#ifndef SIM_REPLICA_KV_CACHE_H
#define SIM_REPLICA_KV_CACHE_H

#include "inflight/policy.h"

#include "replica/kv/evictor.h"
#include "replica/kv/tier.h"

enum prefix_cache { PREFIX_CACHE_NONE, PREFIX_CACHE_HASH, PREFIX_CACHE_RADIX };

/* What happens to free blocks that hold no cached K/V. */
enum kv_unhashed {
    KV_UNHASHED_FIRST,   /* they are used before any cached block is evicted */
    KV_UNHASHED_IN_ORDER /* they wait in the same queue as cached blocks */
};

/* When other requests can find a block of a prompt. */
enum kv_publish {
    KV_PUBLISH_COMPUTED, /* once the step that fills it has ended */
    KV_PUBLISH_SCHEDULED /* as soon as a plan holds the step that fills it */
};

struct kv_cache_options {
    enum prefix_cache kind;
    enum kv_unhashed unhashed;
    enum kv_publish publish; /* a tree holds computed blocks only */
    /* The evict module: it ranks the unused blocks. Borrowed. */
    const struct ifl_evict_ops *evict;
    const void *evict_self;
    const struct ifl_view *view;
    int32_t block_tokens;
    struct kv_tier *below; /* gets what is evicted; NULL: none. Borrowed */
};

struct kv_entry {
    uint64_t identity;
    uint64_t last_used, n_uses;
    int64_t last_used_ns;
    int32_t next;         /* in its bucket, its number + 1; 0: it is the last */
    int32_t n_blocks;     /* blocks of the entry, more than 1 for a run */
    int32_t depth_tokens; /* of the prefix that ends with these blocks */
    int32_t parent;       /* tree: the entry before this one, -1: none */
    int32_t n_children;   /* tree */
    bool cached;          /* kept for its K/V */
    bool listed;          /* in its bucket, so a lookup can find it */
    bool ends_node;       /* tree: last entry of its node */
    bool asked;           /* part of a hit that a waiting request was told of */
    bool wanted;          /* part of the hit that a waiting request would start on */
};

struct kv_cache {
    struct kv_cache_options options;
    struct kv_entry *entries; /* [n_blocks] */
    int32_t *buckets;         /* [mask + 1] the number of the first entry + 1; 0: none */
    uint64_t mask, n_listed;  /* n_listed: entries in the buckets */
    struct kv_evictor evictor;
    int32_t n_asked;  /* entries with `asked` set */
    uint32_t *wanted; /* [n_wanted] entries with `wanted` set */
    int32_t n_wanted;
    bool joins_runs;  /* see kv_cache_tally */
    bool asks_wanted; /* the evict module reads `wanted`, so the caller has to set it */
    int32_t n_idle;   /* blocks that are free and not on the pool's stack */
    uint64_t clock;   /* counts uses */
    uint64_t epoch;   /* rises when the hit of a waiting request may have changed */
    bool asked_lost;  /* an entry with `asked` set was lost; the caller clears the flag */
};

/* An empty cache, in which nothing is found. Zeroed memory is valid for kv_cache_destroy. */
void kv_cache_create(struct kv_cache *cache, const struct kv_cache_options *options);
/* Memory for n_blocks entries, once, before any is published: 0 or IFL_E_NOMEM. */
int kv_cache_open_blocks(struct kv_cache *cache, int32_t n_blocks);
void kv_cache_destroy(struct kv_cache *cache);
/* From here on blocks are counted, and only entries have numbers. If blocks are evicted in the
 * order in which they became unused, those that no lookup asks for need no entry of their own
 * (joins_runs): one run in the queue stands for all that became unused one after the other, since
 * only their number tells when a block behind them is evicted. */
void kv_cache_tally(struct kv_cache *cache);

/* The first block that was listed under that identity, -1: none. */
int32_t kv_cache_find(const struct kv_cache *cache, uint64_t identity);
/* Which lookups may ask for a block. */
enum kv_seekers {
    KV_SOUGHT_BY_ALL,     /* any request: hits of waiting requests may change, the epoch rises */
    KV_SOUGHT_BY_ITS_OWN, /* only the request that publishes it, when it recomputes */
    KV_SOUGHT_BY_NONE     /* no request: the block is kept until it is evicted */
};

/* The cache keeps the block from now on. before: the entry in front of it, -1: none. */
void kv_cache_publish(struct kv_cache *cache, uint32_t block, uint64_t identity, int32_t before,
                      int32_t depth_tokens, enum kv_seekers seekers);
/* Publishes n_blocks blocks that no lookup will ask for as one entry. */
void kv_cache_publish_run(struct kv_cache *cache, uint32_t name, int32_t n_blocks, int32_t before,
                          int32_t depth_tokens);
/* Divides a run: every block gets an entry of its own. names: [n_blocks - 1] for all blocks but the
 * last, which keeps `name`. */
void kv_cache_divide(struct kv_cache *cache, uint32_t name, const uint32_t *names);
/* The cache does not keep the block any more, because it will not be computed. Its owner keeps it.
 */
void kv_cache_withdraw(struct kv_cache *cache, uint32_t block);
/* From now on a lookup can find the block under that identity. */
void kv_cache_list(struct kv_cache *cache, uint32_t block, uint64_t identity);

/* Notes that the block is part of a hit that a waiting request is told of. */
static inline void kv_cache_ask(struct kv_cache *cache, uint32_t block)
{
    cache->n_asked += !cache->entries[block].asked;
    cache->entries[block].asked = true;
}

/* An unused block has an owner again. */
void kv_cache_revive(struct kv_cache *cache, uint32_t block);
/* The last owner has given the block up. True if the block waits for its eviction in the cache,
 * false if it belongs on the pool's stack. */
bool kv_cache_retire(struct kv_cache *cache, uint32_t block);
/* Queues a run of free blocks for eviction that no lookup asks for. */
void kv_cache_queue(struct kv_cache *cache, uint32_t name, int32_t n_blocks);
/* The same without a name, as part of the run that is last in the queue. False: there is none. */
static inline bool kv_cache_join(struct kv_cache *cache, int32_t n_blocks)
{
    const int32_t last = cache->evictor.last;
    if (!cache->joins_runs || last < 0 || cache->entries[last].cached || cache->evictor.n_heap > 0)
        return false;
    cache->entries[last].n_blocks += n_blocks;
    cache->n_idle += n_blocks;
    return true;
}

struct kv_loss {
    int32_t n_blocks, n_names;
};
/* Evicts the blocks that are next in line and returns how many:
 *   - a run in a table loses at most n_most blocks;
 *   - a tree loses the whole leaf node, which may be more than n_most;
 *   - {0} if no block can be evicted.
 * n_refs: [n_blocks] references of each block. lost: receives the names that are free afterwards,
 * with room for n_blocks names. */
struct kv_loss kv_cache_evict(struct kv_cache *cache, const uint32_t *n_refs, int32_t n_most,
                              uint32_t *lost);

/* Marks the block as part of the hit of a waiting request. kv_cache_want_none clears all marks.
 * Both ask the evict module again for the keys of blocks that change. */
void kv_cache_want(struct kv_cache *cache, uint32_t block);
void kv_cache_want_none(struct kv_cache *cache);

/* Counts one more use and returns its number. Blocks that are touched with the same number count as
 * used at the same time. */
static inline uint64_t kv_cache_tick(struct kv_cache *cache)
{
    return ++cache->clock;
}

/* A plan begins: no hit that it is told of was lost. */
static inline void kv_cache_open(struct kv_cache *cache)
{
    cache->asked_lost = false;
}
static inline void kv_cache_count_use(struct kv_cache *cache, uint32_t block)
{
    cache->entries[block].n_uses++;
}
static inline void kv_cache_end_node(struct kv_cache *cache, uint32_t block)
{
    cache->entries[block].ends_node = true;
}

static inline void kv_cache_touch(struct kv_cache *cache, uint32_t block, uint64_t use)
{
    struct kv_entry *entry = &cache->entries[block];
    entry->last_used = use;
    entry->last_used_ns = cache->options.view->now_ns;
}

#endif
