/* The prefix cache: blocks whose K/V is known by its identity and may be used again.
 *
 * Flat, as vLLM's: a table from identities to blocks. A block that is published twice stays twice;
 * unused blocks are lost one by one. As a tree, as SGLang's radix tree: a page is a block, an edge
 * leads to the block that follows, a node is a run of blocks that were published or matched
 * together, which ends where something else began. A block published twice is merged; unused nodes
 * are lost whole, leaves first. A node is locked while a block of it has an owner.
 *
 * Blocks that follow one another and that nobody can look for may share one entry, a run: in a tree
 * it is one node or the end of one, in a table it is lost block by block from its end. Whoever can
 * be found has an entry of its own.
 *
 * The pool (pool.h) owns the blocks and calls this; nothing here knows a request. */
#ifndef SIM_KV_CACHE_H
#define SIM_KV_CACHE_H

#include "inflight/policy.h"

#include "kv/evictor.h"

enum prefix_cache { PREFIX_CACHE_NONE, PREFIX_CACHE_HASH, PREFIX_CACHE_RADIX };

/* What happens to blocks that became free and hold nothing to be found. */
enum kv_unhashed {
    KV_UNHASHED_FIRST,   /* they are used before any cached block is lost */
    KV_UNHASHED_IN_ORDER /* they wait in the same queue */
};

/* When a block of a prompt can be found by others. */
enum kv_publish {
    KV_PUBLISH_COMPUTED, /* once the step that fills it has ended */
    KV_PUBLISH_SCHEDULED /* as soon as a plan holds the step that fills it */
};

struct kv_cache_options {
    enum prefix_cache kind;
    enum kv_unhashed unhashed;
    enum kv_publish publish; /* a tree has computed ones only */
    /* Who is lost first. Borrowed. */
    const struct ifl_evict_ops *evict;
    const void *evict_self;
    const struct ifl_view *view;
    int32_t block_tokens;
};

struct kv_entry {
    uint64_t identity;
    uint64_t last_used, n_uses;
    int64_t last_used_ns;
    int32_t next;         /* in its bucket, -1: the last */
    int32_t n_blocks;     /* that it stands for */
    int32_t depth_tokens; /* of the prefix that ends with them */
    int32_t parent;       /* tree: the block before them, -1: none */
    int32_t n_children;   /* tree */
    bool cached;          /* it is kept for its K/V */
    bool listed;          /* and can be found */
    bool ends_node;       /* tree: its last block, or run */
    bool asked;           /* somebody who waits was told of it */
    bool wanted;          /* somebody who waits would start on it */
};

struct kv_cache {
    struct kv_cache_options options;
    struct kv_entry *entries; /* [n_blocks] */
    int32_t *buckets;         /* [mask + 1] the first entry, -1: none */
    uint64_t mask;
    struct kv_evictor evictor;
    int32_t n_asked;  /* blocks that somebody who waits was told of */
    uint32_t *wanted; /* [n_wanted] blocks that somebody who waits would start on */
    int32_t n_wanted;
    bool asks_wanted; /* the evict module has asked whether a block is; then they are marked */
    int32_t n_idle;   /* blocks that are free and not on the pool's stack */
    uint64_t clock;   /* counts uses */
    uint64_t epoch;   /* rises when an answer to somebody who waits may have changed */
    bool asked_lost;  /* a block that somebody was told of was lost; whoever cares clears it */
    uint64_t n_evicted;
};

/* 0, or -1 without memory. Zeroed memory is valid for kv_cache_destroy. */
int kv_cache_create(struct kv_cache *cache, int32_t n_blocks,
                    const struct kv_cache_options *options);
void kv_cache_destroy(struct kv_cache *cache);

/* The block of that identity that was published first, -1: none. */
int32_t kv_cache_find(const struct kv_cache *cache, uint64_t identity);
/* Who may look for a block. */
enum kv_seekers {
    KV_SOUGHT_BY_ALL,     /* somebody who waits may be told another hit now */
    KV_SOUGHT_BY_ITS_OWN, /* request, after a recompute */
    KV_SOUGHT_BY_NONE     /* it is kept until it is lost */
};

/* The cache keeps the block from now on. before: the block in front of it, -1: none. */
void kv_cache_publish(struct kv_cache *cache, uint32_t block, uint64_t identity, int32_t before,
                      int32_t depth_tokens, enum kv_seekers seekers);
/* n_blocks that nobody is to look for, as one. */
void kv_cache_publish_run(struct kv_cache *cache, uint32_t name, int32_t n_blocks, int32_t before,
                          int32_t depth_tokens);
/* Every block of the run gets an entry of its own, the first ones under the names given; `name`
 * goes on standing for the last. */
void kv_cache_divide(struct kv_cache *cache, uint32_t name, const uint32_t *names);
/* The block is not kept any more, though its owner goes on with it: it will not be computed. */
void kv_cache_withdraw(struct kv_cache *cache, uint32_t block);
/* A block that nobody was to look for can be found, too. */
void kv_cache_list(struct kv_cache *cache, uint32_t block);

/* Somebody who waits is told of the block. */
static inline void kv_cache_ask(struct kv_cache *cache, uint32_t block)
{
    cache->n_asked += !cache->entries[block].asked;
    cache->entries[block].asked = true;
}

/* The block has its first owner again, or no owner any more. True if the cache keeps it. */
void kv_cache_revive(struct kv_cache *cache, uint32_t block);
bool kv_cache_retire(struct kv_cache *cache, uint32_t block);
/* Blocks that hold nothing to be found wait, as a run, in the same queue as the others. */
void kv_cache_queue(struct kv_cache *cache, uint32_t name, int32_t n_blocks);

struct kv_loss {
    int32_t n_blocks, n_names;
};
/* Blocks that are lost next, n_most of them or those that are lost together, {0} if none can be;
 * the names that are free after, in `lost` (room for all there are). */
struct kv_loss kv_cache_evict(struct kv_cache *cache, const uint32_t *n_refs, int32_t n_most,
                              uint32_t *lost);

/* Who waits would start on the block; nobody would start on any. Keys are asked again. */
void kv_cache_want(struct kv_cache *cache, uint32_t block);
void kv_cache_want_none(struct kv_cache *cache);

/* One more use, of several blocks at the same time if they get the same number. */
static inline uint64_t kv_cache_tick(struct kv_cache *cache)
{
    return ++cache->clock;
}

static inline void kv_cache_touch(struct kv_cache *cache, uint32_t block, uint64_t use)
{
    struct kv_entry *entry = &cache->entries[block];
    entry->last_used = use;
    entry->last_used_ns = cache->options.view->now_ns;
}

#endif
