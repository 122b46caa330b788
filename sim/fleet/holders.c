#include "fleet/holders.h"

#include <stdlib.h>

#include "inflight/error.h"

#include "replica/kv/identity.h"

enum { FIRST_BUCKETS = 1024 };

/* ---- reports of the caches ---- */

static uint32_t *bucket_of(const struct holders *holders, uint64_t identity)
{
    return &holders->buckets[identity & holders->mask];
}

static void put(struct holders *holders, uint32_t at)
{
    uint32_t *bucket = bucket_of(holders, holders->of[at].identity);
    holders->of[at].next = *bucket;
    *bucket = at + 1;
}

/* Twice the buckets. Without memory for them buckets become longer. */
static void widen(struct holders *holders)
{
    const uint64_t n_were = holders->mask + 1;
    uint32_t *were = holders->buckets, *wider = calloc(2 * n_were, sizeof *wider);
    if (!wider)
        return;
    holders->buckets = wider;
    holders->mask = 2 * n_were - 1;
    for (uint64_t i = 0; i < n_were; i++)
        for (uint32_t at = were[i], next; at > 0; at = next) {
            next = holders->of[at - 1].next;
            put(holders, at - 1);
        }
    free(were);
}

static void add(void *self, uint32_t replica, uint64_t identity)
{
    struct holders *holders = self;
    if (slots_reserve(&holders->slots, &holders->of, sizeof *holders->of) < 0) {
        holders->lacks_memory = true;
        return;
    }
    if (holders->slots.n - holders->slots.n_free > holders->mask)
        widen(holders);
    const uint32_t at = slots_take(&holders->slots);
    holders->of[at].identity = identity;
    holders->of[at].replica = replica;
    put(holders, at);
}

static void drop(void *self, uint32_t replica, uint64_t identity)
{
    struct holders *holders = self;
    uint32_t *link = bucket_of(holders, identity);
    while (*link > 0) {
        struct holding *holding = &holders->of[*link - 1];
        if (holding->identity == identity && holding->replica == replica) {
            const uint32_t at = *link - 1;
            *link = holding->next;
            slots_give(&holders->slots, at);
            return;
        }
        link = &holding->next;
    }
}

/* ---- opening ---- */

int holders_open(struct holders *holders, struct replica *replicas, uint32_t n)
{
    *holders = (struct holders){
        .listener = {.self = holders, .on_list = add, .on_strike = drop},
        .buckets = calloc(FIRST_BUCKETS, sizeof *holders->buckets),
        .mask = FIRST_BUCKETS - 1,
    };
    if (!holders->buckets)
        return IFL_E_NOMEM;
    holders->replicas = replicas;
    for (uint32_t i = 0; i < n; i++) {
        if (!replicas[i].kv.device.cached)
            continue;
        kv_cache_listen(&replicas[i].kv.device.cache, &holders->listener, i);
        holders->n_caches++;
    }
    return holders->lacks_memory ? IFL_E_NOMEM : 0;
}

void holders_close(struct holders *holders)
{
    free(holders->buckets);
    free(holders->of);
    slots_destroy(&holders->slots);
    *holders = (struct holders){0};
}

/* ---- asking ---- */

/* Replicas of which one is looked for. */
struct span {
    uint32_t first, n;
};

static const struct holding *next_in(const struct holders *holders, struct span span,
                                     uint64_t identity, uint32_t at)
{
    for (; at > 0; at = holders->of[at - 1].next) {
        const struct holding *holding = &holders->of[at - 1];
        if (holding->identity == identity && holding->replica - span.first < span.n)
            return holding;
    }
    return NULL;
}

static const struct holding *first_in(const struct holders *holders, struct span span,
                                      uint64_t identity)
{
    return next_in(holders, span, identity, *bucket_of(holders, identity));
}

/* The first replica that holds the first n_blocks blocks of r, the last of which has that identity;
 * the end of the span: none. One that holds the last nearly always holds those before it, too. */
static uint32_t first_with_all(const struct holders *holders, struct span span,
                               const struct live_request *r, int32_t n_blocks, uint64_t identity)
{
    const int32_t n_tokens = n_blocks * holders->replicas[span.first].fixed.limits.block_tokens;
    uint32_t best = span.first + span.n;
    for (const struct holding *h = first_in(holders, span, identity); h;
         h = next_in(holders, span, identity, h->next))
        if (h->replica < best && replica_hit_tokens(&holders->replicas[h->replica], r) >= n_tokens)
            best = h->replica;
    return best;
}

static uint64_t identity_at(const struct live_request *r, int32_t n_blocks, int32_t block_tokens)
{
    uint64_t identity = 0;
    for (int32_t i = 0; i < n_blocks; i++)
        identity = kv_identity(r, identity, i, block_tokens);
    return identity;
}

/* Nothing is held beyond the last block that some replica holds. Where each that holds it has lost
 * one before it, the next shorter beginning is looked for. */
uint32_t holders_longest(const struct holders *holders, uint32_t first, uint32_t n,
                         const struct live_request *r, int32_t *n_tokens)
{
    ifl_assert(n > 0);
    const struct span span = {first, n};
    const struct replica *any = &holders->replicas[first];
    const int32_t block_tokens = any->fixed.limits.block_tokens;
    const int32_t most = replica_longest_hit(any, r);
    uint64_t identity = 0, next;
    uint32_t best = first + n;
    int32_t n_blocks = 0;
    for (; n_blocks < most; n_blocks++, identity = next) {
        next = kv_identity(r, identity, n_blocks, block_tokens);
        if (!first_in(holders, span, next))
            break;
    }
    for (; n_blocks > 0; identity = identity_at(r, --n_blocks, block_tokens)) {
        best = first_with_all(holders, span, r, n_blocks, identity);
        if (best < first + n)
            break;
    }
    *n_tokens = n_blocks * block_tokens;
    return best;
}
