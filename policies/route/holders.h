/* A router's own index of the replicas that hold a block. It records what the router sends and
 * nothing else, so it may differ from the caches.
 *
 * Its memory is allocated when it is created; pages that are never written stay untouched. To find,
 * add or remove a pair of block and replica takes a walk over the replicas that hold the block. */
#ifndef POLICIES_ROUTE_HOLDERS_H
#define POLICIES_ROUTE_HOLDERS_H

#include <stdlib.h>
#include <string.h>

#include "inflight/policy.h"

/* One block at one replica. Numbers of pairs begin at 1; 0: none. */
struct holding {
    uint64_t key; /* key of the block */
    int64_t at;   /* for the caller's use: a time or a count */
    uint32_t replica;
    uint32_t next;         /* next pair in the bucket; pairs with one key are in order of addition,
                              the latest first */
    uint32_t older, newer; /* neighbours among the replica's pairs, by last use */
    uint32_t parent;       /* for the caller's use */
    uint32_t n_children;
};

struct replica_holdings {
    uint32_t oldest, newest, n;
};

struct holders {
    struct holding *of;                /* [1 + cap] */
    uint32_t *buckets;                 /* [2^k >= cap], of which [0, mask] are in use */
    struct replica_holdings *replicas; /* [n_replicas] */
    uint32_t cap, mask, n_used, n;     /* cap: most pairs; n_used: pairs ever used; n: pairs now */
    uint32_t free;                     /* first of the pairs that were removed, linked by next */
};

/* Fills `error` with the size of the index that found no memory. Returns IFL_E_NOMEM. */
IFL_COLD static inline int holders_fail_nomem(uint64_t cap, uint64_t n_buckets, size_t n_replicas,
                                              const char *key, struct ifl_error *error)
{
    const double n_bytes = (double)(1 + cap) * sizeof(struct holding) +
                           (double)n_buckets * sizeof(uint32_t) +
                           (double)n_replicas * sizeof(struct replica_holdings);
    return ifl_fail(error, IFL_E_NOMEM,
                    "out of memory: the router's index has %llu blocks for each of %zu replicas, "
                    "%.1f GB (%s), expected fewer than 4294967295 in all, and room for them",
                    (unsigned long long)(cap / n_replicas), n_replicas, n_bytes * 1e-9, key);
}

/* Allocates room for per_replica pairs of each replica; `key` names the parameter that per_replica
 * comes from. Returns 0 or IFL_E_NOMEM; zeroed memory is valid for holders_destroy. */
static inline int holders_create(struct holders *h, size_t n_replicas, int32_t per_replica,
                                 const char *key, struct ifl_error *error)
{
    const uint64_t cap = (uint64_t)n_replicas * (uint64_t)per_replica;
    uint64_t n_buckets = 1024;
    while (n_buckets < cap)
        n_buckets *= 2;
    if (cap >= UINT32_MAX)
        return holders_fail_nomem(cap, n_buckets, n_replicas, key, error);
    *h = (struct holders){.of = calloc(1 + cap, sizeof *h->of),
                          .buckets = calloc(n_buckets, sizeof *h->buckets),
                          .replicas = calloc(n_replicas, sizeof *h->replicas),
                          .cap = (uint32_t)cap,
                          .mask = 1023};
    return h->of && h->buckets && h->replicas
               ? 0
               : holders_fail_nomem(cap, n_buckets, n_replicas, key, error);
}

static inline void holders_destroy(struct holders *h)
{
    free(h->of);
    free(h->buckets);
    free(h->replicas);
    *h = (struct holders){0};
}

static inline uint32_t holders_same_key(const struct holders *h, uint64_t key, uint32_t at)
{
    while (at && h->of[at].key != key)
        at = h->of[at].next;
    return at;
}

/* Returns the pair of that block that was added last; 0: no replica holds the block. */
static inline uint32_t holders_latest(const struct holders *h, uint64_t key)
{
    return holders_same_key(h, key, h->buckets[key & h->mask]);
}

/* Returns the pair of the same block that was added before `pair`; 0: none. */
static inline uint32_t holders_before(const struct holders *h, uint32_t pair)
{
    return holders_same_key(h, h->of[pair].key, h->of[pair].next);
}

static inline uint32_t holders_find(const struct holders *h, uint64_t key, size_t replica)
{
    uint32_t pair = holders_latest(h, key);
    while (pair && h->of[pair].replica != replica)
        pair = holders_before(h, pair);
    return pair;
}

/* Doubles the number of buckets; the pairs keep their order. */
static inline void holders_split_buckets(struct holders *h)
{
    const uint32_t bit = h->mask + 1;
    for (uint32_t b = 0; b < bit; b++) {
        uint32_t *tails[2] = {&h->buckets[b], &h->buckets[b + bit]};
        for (uint32_t pair = h->buckets[b], next; pair; pair = next) {
            uint32_t **tail = &tails[(h->of[pair].key & bit) != 0];
            next = h->of[pair].next;
            **tail = pair;
            *tail = &h->of[pair].next;
        }
        *tails[0] = *tails[1] = 0;
    }
    h->mask = 2 * bit - 1;
}

static inline void holders_link_newest(struct holders *h, uint32_t pair)
{
    struct replica_holdings *own = &h->replicas[h->of[pair].replica];
    h->of[pair].older = own->newest;
    h->of[pair].newer = 0;
    if (own->newest)
        h->of[own->newest].newer = pair;
    else
        own->oldest = pair;
    own->newest = pair;
}

static inline void holders_unlink(struct holders *h, uint32_t pair)
{
    struct replica_holdings *own = &h->replicas[h->of[pair].replica];
    const uint32_t older = h->of[pair].older, newer = h->of[pair].newer;
    *(older ? &h->of[older].newer : &own->oldest) = newer;
    *(newer ? &h->of[newer].older : &own->newest) = older;
}

/* Makes the pair the most recently used one of its replica. */
static inline void holders_touch(struct holders *h, uint32_t pair)
{
    holders_unlink(h, pair);
    holders_link_newest(h, pair);
}

/* Adds a pair that does not exist yet, as used now. Returns 0 if there is no room; a replica with
 * no more than its share of pairs always has room. */
static inline uint32_t holders_add(struct holders *h, uint64_t key, size_t replica)
{
    uint32_t pair = h->free;
    if (!pair && h->n_used == h->cap)
        return 0;
    if (pair)
        h->free = h->of[pair].next;
    else
        pair = ++h->n_used;
    if (h->n > h->mask)
        holders_split_buckets(h);
    uint32_t *bucket = &h->buckets[key & h->mask];
    h->of[pair] = (struct holding){.key = key, .replica = (uint32_t)replica, .next = *bucket};
    *bucket = pair;
    holders_link_newest(h, pair);
    h->replicas[replica].n++;
    h->n++;
    return pair;
}

static inline void holders_remove(struct holders *h, uint32_t pair)
{
    uint32_t *link = &h->buckets[h->of[pair].key & h->mask];
    while (*link != pair)
        link = &h->of[*link].next;
    *link = h->of[pair].next;
    holders_unlink(h, pair);
    h->replicas[h->of[pair].replica].n--;
    h->n--;
    h->of[pair].next = h->free;
    h->free = pair;
}

/* Returns the pair, which is added or marked as used. A replica with more than `most` pairs loses
 * its oldest one; `most` is at least 1 and at most the per_replica of holders_create. */
static inline uint32_t holders_use(struct holders *h, uint64_t key, size_t replica, uint32_t most)
{
    uint32_t pair = holders_find(h, key, replica);
    if (pair) {
        holders_touch(h, pair);
        return pair;
    }
    while (h->replicas[replica].n >= most)
        holders_remove(h, h->replicas[replica].oldest);
    return holders_add(h, key, replica);
}

#endif
