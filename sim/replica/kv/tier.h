/* Tiers below the device: K/V of prefixes in host memory, on disk, or in a store.
 *
 * A tier stores units of K/V. A unit is one or more whole blocks. Its name is the identity of its
 * last block, which covers all tokens before it (identity.h). A unit can be found once its K/V has
 * come; until then it is not evicted. enum tier_evict says which unit is evicted if there is no
 * room. A request uses a unit when it loads it, and when it offers a unit that the tier has. Of the
 * units of one prompt those at the end count as used before those at the beginning (vLLM's
 * lru_manager.py and LMCache's touch_cache go through them from the last to the first). Memory of
 * units that were never stored is not touched. */
#ifndef SIM_REPLICA_KV_TIER_H
#define SIM_REPLICA_KV_TIER_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/error.h"

#include "replica/kv/evictor.h"
#include "replica/kv/tier_places.h"

enum { TIER_HOST, TIER_DISK, TIER_STORE, N_TIERS };

/* When K/V is stored: as it is computed; as it is evicted from the tier above, of which the device
 * is the first. */
enum tier_store { TIER_STORES_COMPUTED, TIER_STORES_EVICTED };
/* While steps go on; before the step that starts the request begins; beside it, layer by layer. */
enum tier_load { TIER_LOADS_APART, TIER_LOADS_BEFORE, TIER_LOADS_BY_LAYER };
/* The unit that goes first: used least recently; had by the fewest requests, of these used least
 * recently; stored first; used most recently; stored last; as LRU, those that one request has had
 * before all others (LMCache 0.5.6, cache_policy/: LRU, LFU, FIFO, MRU; SGLang 0.5.23,
 * mem_cache/evict_policy.py: all of them). */
enum tier_evict {
    TIER_EVICTS_LRU,
    TIER_EVICTS_LFU,
    TIER_EVICTS_FIFO,
    TIER_EVICTS_MRU,
    TIER_EVICTS_FILO,
    TIER_EVICTS_SLRU
};

/* How a waiting request gets what lies in a tier below the first: as it starts; or by way of the
 * first tier, from its arrival on. When its turn comes it makes do with what has come; is passed
 * over until all has come; or until then and at most for prefetch_ns and prefetch_token_ns a token
 * (SGLang 0.5.23, mem_cache/unified_radix_cache.py, _can_terminate_prefetch; LMCache 0.5.6,
 * storage_manager.py, async_lookup_and_prefetch, waits). */
enum tier_prefetch {
    TIER_LOADS_ITSELF,
    TIER_PREFETCH_BEST_EFFORT,
    TIER_PREFETCH_WAIT,
    TIER_PREFETCH_TIMEOUT
};

struct tier_rules {
    bool on;
    int32_t n_units;     /* that it holds */
    int32_t unit_blocks; /* blocks of a unit */
    int32_t min_tokens;  /* fewer are computed rather than loaded */
    int32_t store_after; /* requests that had a unit before it is stored */
    enum tier_store stores;
    enum tier_load loads;
    enum tier_evict evicts;
    enum tier_prefetch prefetch;
    int32_t prefetch_tokens; /* fewer are not prefetched */
    int64_t prefetch_ns;
    double prefetch_token_ns;
    bool begin_older; /* what is stored together is as old as if the beginning of its prompt had
                         come first; else as if the end had */
    bool answers;     /* K/V of answers is stored, too */
    bool keeps;       /* what is loaded stays in the tier */
    bool linked;      /* loads and stores take time */
    double hit_frac;  /* of each prompt that is there from the beginning */
};

enum { TIER_NONE = -1 };

struct tier_unit {
    uint64_t identity;
    int32_t next;           /* in its bucket, or of the free ones */
    int32_t older, younger; /* in the order of use; in a chain of units to come: the next one */
    int32_t n_uses;         /* requests that have had it, the one that stored it included; of a unit
                               that is only counted, those that have offered it */
    bool stored, there;     /* it has room; its K/V has come */
    int32_t place;          /* of its K/V, if the tier has places */
};

/* Units in order of use; the counted ones of store_after are a second list of this kind. */
struct tier_list {
    int32_t oldest, youngest, n;
};

struct kv_tier {
    struct tier_rules rules;
    struct tier_unit *units; /* [n_slots] */
    int32_t *buckets;        /* [mask + 1] first unit + 1, 0: none */
    uint64_t mask;
    int32_t free, n_slots, n_ever;  /* n_ever: that were ever taken */
    int32_t touched_last;           /* of the prompt under way; TIER_NONE: none yet */
    int32_t n_held;                 /* stored units, those that come included */
    struct tier_list kept, counted; /* that are there, under LRU; that were offered too rarely */
    struct kv_evictor order;        /* of those that are there, under any other rule */
    struct kv_seat *seats;          /* [n_slots], of it */
    uint64_t clock;                 /* of uses */
    uint32_t n_touched;             /* of the prompt under way */
    int32_t n_most_counted;
    uint64_t n_changes;       /* of what can be found */
    struct kv_tier *below;    /* gets what this one evicts; NULL: none */
    int32_t coming, n_coming; /* put since kv_tier_take_coming was last called */
    uint64_t n_anonymous;
    struct tier_places *places; /* owned; NULL: nothing is really stored */
};

/* 0 or IFL_E_NOMEM. Zeroed memory is valid for kv_tier_destroy. */
int kv_tier_create(struct kv_tier *tier, const struct tier_rules *rules);
void kv_tier_destroy(struct kv_tier *tier);

/* True if the unit can be found. */
bool kv_tier_has(const struct kv_tier *tier, uint64_t identity);
/* From here on units of another prompt are used or offered, from its beginning. */
static inline void kv_tier_begin(struct kv_tier *tier)
{
    tier->touched_last = TIER_NONE;
    tier->clock += UINT64_C(1) << 32; /* more than a prompt has units */
    tier->n_touched = 0;
}
/* A request loads the unit, which can be found: it was used now, or, with keeps false, is gone. */
void kv_tier_use(struct kv_tier *tier, uint64_t identity);
/* A request has computed the unit, or found it on the device. It is stored if it was offered often
 * enough and is not there, and then comes. Without room it is not. blocks: of the device, that it
 * is in; not read unless the tier has places. */
void kv_tier_offer(struct kv_tier *tier, uint64_t identity, const uint32_t *blocks);
/* The same of a unit that was evicted from the tier above. known: requests may look for it. */
void kv_tier_put(struct kv_tier *tier, uint64_t identity, bool known, const uint32_t *blocks);
/* Where the K/V of a unit is that can be found, or could be when the plan began. */
int32_t kv_tier_place(const struct kv_tier *tier, uint64_t identity);

/* Room for a unit that comes from another tier. False: there is none. One that is not there yet is
 * put in front of the chain. */
bool kv_tier_expect(struct kv_tier *tier, uint64_t identity, int32_t *chain);
/* The units put since the last call, in a chain that kv_tier_land takes, the end of a prompt before
 * its beginning; TIER_NONE: none. */
int32_t kv_tier_take_coming(struct kv_tier *tier, int32_t *n_units);
/* Their K/V has come: they can be found from now on. */
void kv_tier_land(struct kv_tier *tier, int32_t chain);
/* It will not come. */
void kv_tier_drop(struct kv_tier *tier, int32_t chain);

#endif
