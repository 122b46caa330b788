/* The prefix cache: blocks with known K/V that requests can find by identity and use again.
 *
 * As a flat table, as in vLLM, from identities to blocks.
 *   - A block that is published twice is kept twice.
 *   - Unused blocks are evicted one by one.
 * As a tree, as SGLang's radix tree: a page is a block, and an edge leads to the next block.
 *   - A node is a run of blocks that were published or matched together. It ends where another
 *     publication or match began.
 *   - A block that is published twice is merged.
 *   - Unused nodes are evicted whole, leaves first. A block with an owner locks its node.
 *
 * Consecutive blocks that no lookup can ask for may share one entry, a run. In a tree a run is one
 * node or the end of one; in a table it is evicted block by block from its end. A block that a
 * lookup can find has an entry of its own.
 *
 * The pool (pool.h) owns the blocks and calls the cache. The cache has no requests. */
#ifndef SIM_REPLICA_KV_CACHE_H
#define SIM_REPLICA_KV_CACHE_H

#include <stddef.h>

#include "inflight/policy.h"

#include "replica/kv/evictor.h"
#include "replica/kv/tier.h"

enum prefix_cache { PREFIX_CACHE_NONE, PREFIX_CACHE_HASH, PREFIX_CACHE_RADIX };

/* What happens to free blocks that hold no cached K/V. */
enum kv_unhashed {
    KV_UNHASHED_FIRST,   /* free blocks without cached K/V are used before any cached block is
                            evicted */
    KV_UNHASHED_IN_ORDER /* they are in the same eviction queue as cached blocks */
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
    struct kv_tier *below; /* the tier that gets evicted blocks; NULL: none. Borrowed */
};

/* The state of a block, or of a run of blocks: 56 bytes. A fleet has as many entries as its
 * replicas have ever cached blocks, so fields that are never needed at the same time share their
 * place. */
struct kv_entry {
    union {
        struct kv_seat seat; /* while the evictor has the block */
        struct {
            uint32_t n_refs; /* references, while the evictor does not have the block; in the place
                                of the seat's key. No block that the evictor has is referenced */
            int32_t n_children;   /* in a tree: children; no block that the evictor has has any */
            uint64_t last_used;   /* this field and the next are valid at any time, in the places
                                     of the seat's rank */
            int32_t depth_tokens; /* tokens of the prefix that ends with these blocks */
            int32_t of_evictor[2];
            uint16_t n_uses;     /* uses modulo 2^16 */
            uint8_t n_uses_high; /* upper bits of the uses; the flags are in another word than
                                    n_uses, since reading a word of which a part was just written
                                    is slow */
            bool cached : 1;     /* kept for its K/V */
            bool listed : 1;     /* in its bucket, so a lookup can find it */
            bool ends_node : 1;  /* in a tree: last entry of its node */
            bool asked : 1;      /* part of a hit that was shown for a waiting request */
            bool wanted : 1;     /* part of the hit on which a waiting request would start */
        };
    };
    uint64_t identity; /* placed beside `next`, since lookups read both */
    union {
        int32_t next;  /* if listed: 1 + the next entry in the bucket; 0: none */
        int32_t n_run; /* if not listed: blocks of the entry, more than 1 for a run */
    };
    int32_t parent; /* in a tree: the entry before this one, -1: none */
    int64_t last_used_ns;
};

_Static_assert(offsetof(struct kv_entry, last_used) == offsetof(struct kv_seat, touched) &&
                   offsetof(struct kv_entry, depth_tokens) ==
                       offsetof(struct kv_seat, depth_tokens) &&
                   offsetof(struct kv_entry, identity) == sizeof(struct kv_seat),
               "an entry has the rank of its seat, and its flags where the seat has room");

/* Number of uses of the entry; 2^24 - 1 means that or more. */
static inline uint32_t kv_entry_uses(const struct kv_entry *entry)
{
    return (uint32_t)entry->n_uses_high << 16 | entry->n_uses;
}

/* Number of blocks of the entry. */
static inline int32_t kv_entry_blocks(const struct kv_entry *entry)
{
    return entry->listed ? 1 : entry->n_run;
}

/* Calls on_list when lookups can find a block, and on_strike when they no longer can. */
struct kv_listener {
    void *self;
    void (*on_list)(void *self, uint32_t of, uint64_t identity);
    void (*on_strike)(void *self, uint32_t of, uint64_t identity);
};

struct kv_cache {
    struct kv_cache_options options;
    const struct kv_listener *listener; /* borrowed; NULL: none */
    uint32_t listener_of;               /* the number by which the listener knows this cache */
    struct kv_entry *entries;           /* [cap], the entry of the last block first (see
                                           kv_entry) */
    int32_t n_blocks, last_block, cap;
    int32_t free_name; /* 1 + the name that was given back last, 0: none; its entry links to the
                          next free name */
    int32_t *buckets;  /* [mask + 1] 1 + the number of the first entry; 0: none */
    uint64_t mask, n_listed; /* n_listed: entries in the buckets */
    struct kv_evictor evictor;
    int32_t n_asked;  /* entries with `asked` set */
    uint32_t *wanted; /* [n_wanted] entries with `wanted` set */
    size_t n_wanted, cap_wanted;
    bool joins_runs;  /* runs are joined, as in kv_cache_tally */
    bool asks_wanted; /* the evict module reads `wanted`, so the caller has to set it */
    int32_t n_idle;   /* blocks that are free and not on the pool's stack */
    uint64_t clock;   /* number of uses so far */
    uint64_t epoch;   /* number that rises when the hit of a waiting request may have changed */
    bool asked_lost;  /* an entry with `asked` set was lost; the caller clears the flag */
};

/* Creates an empty cache, in which nothing is found. Zeroed memory is valid for kv_cache_destroy.
 */
void kv_cache_create(struct kv_cache *cache, const struct kv_cache_options *options);
/* Allocates the buckets; there is no memory for entries yet. Call it once, before any block is
 * published. Returns 0 or IFL_E_NOMEM. */
int kv_cache_open_blocks(struct kv_cache *cache, int32_t n_blocks);
/* Allocates zeroed memory for all entries; no physical memory backs those that are never used.
 * Returns 0 or IFL_E_NOMEM. */
int kv_cache_reserve_all(struct kv_cache *cache);
/* Makes room for the entries of the last n blocks, of which the last n_used may be in use. Up to
 * FEW_ENTRIES (cache.c) entries get as much memory as they need, since a fleet has thousands of
 * caches. Beyond that, memory for all entries is allocated, of which no physical memory backs what
 * is never used: small arrays that grow would leave holes as large as themselves. Pointers to
 * entries become invalid. An entry must be written before it is read. Returns 0 or IFL_E_NOMEM. */
int kv_cache_reserve(struct kv_cache *cache, int32_t n_used, int32_t n);
void kv_cache_destroy(struct kv_cache *cache);
/* From now on blocks are only counted, and only entries have numbers. joins_runs is set if blocks
 * are evicted in the order in which they became unused: then blocks that no lookup asks for need no
 * entry of their own. One run in the queue stands for all blocks that became unused one after the
 * other, since only their number decides when a block behind them is evicted. */
void kv_cache_tally(struct kv_cache *cache);

/* Entries lie in reverse order of the blocks, since blocks are used from the last to the first. */
static inline struct kv_entry *kv_entry(const struct kv_cache *cache, int32_t block)
{
    ifl_assert(block >= cache->n_blocks - cache->cap && block < cache->n_blocks);
    return &cache->entries[(uint32_t)(cache->last_block - block)];
}

/* From now on the listener is called for this cache, and at once for each block that is listed
 * already. of: the number by which the listener knows the cache. */
void kv_cache_listen(struct kv_cache *cache, const struct kv_listener *listener, uint32_t of);

/* Returns the block that was listed first under that identity, or -1. */
int32_t kv_cache_find(const struct kv_cache *cache, uint64_t identity);
/* Which lookups may ask for a block. */
enum kv_seekers {
    KV_SOUGHT_BY_ALL,     /* any request: hits of waiting requests may change, the epoch rises */
    KV_SOUGHT_BY_ITS_OWN, /* only the request that publishes it, when it recomputes */
    KV_SOUGHT_BY_NONE     /* no request: the block is kept until it is evicted */
};

/* The cache keeps the block from now on. before: the entry in front of the block, -1: none. */
void kv_cache_publish(struct kv_cache *cache, uint32_t block, uint64_t identity, int32_t before,
                      int32_t depth_tokens, enum kv_seekers seekers);
/* Publishes n_blocks blocks that no lookup will ask for as one entry. */
void kv_cache_publish_run(struct kv_cache *cache, uint32_t name, int32_t n_blocks, int32_t before,
                          int32_t depth_tokens);
/* Divides a run into one entry per block. names: [n_blocks - 1] the names of all blocks but the
 * last, which keeps `name`. */
void kv_cache_divide(struct kv_cache *cache, uint32_t name, const uint32_t *names);
/* The cache no longer keeps the block, because it will not be computed. Its owner keeps it. */
void kv_cache_withdraw(struct kv_cache *cache, uint32_t block);
/* From now on a lookup can find the block under that identity. */
void kv_cache_list(struct kv_cache *cache, uint32_t block, uint64_t identity);

/* Notes that the block is part of a hit that is shown for a waiting request. */
static inline void kv_cache_ask(struct kv_cache *cache, uint32_t block)
{
    struct kv_entry *entry = kv_entry(cache, block);
    cache->n_asked += !entry->asked;
    entry->asked = true;
}

/* Call it when an unused block gets an owner again. */
void kv_cache_revive(struct kv_cache *cache, uint32_t block);
/* Call it when the last owner has given the block up. Returns true if the block stays in the cache
 * until it is evicted, false if it belongs on the pool's stack. */
bool kv_cache_retire(struct kv_cache *cache, uint32_t block);
/* Queues for eviction a run of free blocks that no lookup asks for. */
void kv_cache_queue(struct kv_cache *cache, uint32_t name, int32_t n_blocks);
/* As kv_cache_queue, but without a name: the blocks are added to the last run in the queue. Returns
 * false if the last entry is no such run. */
static inline bool kv_cache_join(struct kv_cache *cache, int32_t n_blocks)
{
    const int32_t last = cache->evictor.last;
    if (!cache->joins_runs || last < 0 || cache->evictor.n_heap > 0)
        return false;
    struct kv_entry *entry = kv_entry(cache, last);
    if (entry->cached)
        return false;
    entry->n_run += n_blocks;
    cache->n_idle += n_blocks;
    return true;
}

/* Gives back a name without blocks; kv_cache_take_name returns the name given back last. */
void kv_cache_give_name(struct kv_cache *cache, uint32_t name);
/* Takes the name that was given back last; -1: none. */
int32_t kv_cache_take_name(struct kv_cache *cache);

struct kv_loss {
    int32_t n_blocks, n_names;
};
/* Evicts the blocks that are next in line and returns their number:
 *   - a run in a table loses at most n_most blocks;
 *   - a tree loses the whole leaf node, which may be more than n_most;
 *   - {0} if no block can be evicted.
 * lost: receives the names that become free; it has room for n_blocks names. NULL: the names are
 * given back. */
struct kv_loss kv_cache_evict(struct kv_cache *cache, int32_t n_most, uint32_t *lost);

/* References to the block. */
static inline uint32_t kv_cache_refs(const struct kv_cache *cache, uint32_t block)
{
    const struct kv_entry *entry = kv_entry(cache, block);
    return kv_seat_is_taken(&entry->seat) ? 0 : entry->n_refs;
}

/* want: marks the block as part of the hit of a waiting request. want_none: clears all marks. Both
 * ask the evict module again for the keys of blocks that change. */
void kv_cache_want(struct kv_cache *cache, uint32_t block);
void kv_cache_want_none(struct kv_cache *cache);

/* Counts one more use and returns its number. Blocks that are touched with the same number count as
 * used at the same time. */
static inline uint64_t kv_cache_tick(struct kv_cache *cache)
{
    return ++cache->clock;
}

/* Call it when a plan begins: no hit shown in this plan has been lost yet. */
static inline void kv_cache_open(struct kv_cache *cache)
{
    cache->asked_lost = false;
}
static inline void kv_cache_count_use(struct kv_cache *cache, uint32_t block)
{
    struct kv_entry *entry = kv_entry(cache, block);
    if (entry->n_uses < UINT16_MAX) {
        entry->n_uses++;
    } else if (entry->n_uses_high < UINT8_MAX) {
        entry->n_uses_high++;
        entry->n_uses = 0;
    }
}
static inline void kv_cache_end_node(struct kv_cache *cache, uint32_t block)
{
    kv_entry(cache, block)->ends_node = true;
}

static inline void kv_cache_touch(struct kv_cache *cache, uint32_t block, uint64_t use)
{
    struct kv_entry *entry = kv_entry(cache, block);
    entry->last_used = use;
    entry->last_used_ns = cache->options.view->now_ns;
}

#endif
