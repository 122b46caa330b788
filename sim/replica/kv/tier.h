/* Tiers below the device: K/V of prefixes in host memory, on disk, or in a store.
 *
 * A tier stores units of K/V. A unit is one or more whole blocks. Its name is the identity of its
 * last block, which covers all tokens before it (identity.h). A unit can be found once its K/V has
 * arrived. It is not evicted before that, while a load reads it, and for another unit of a prompt
 * that it belongs to. enum tier_evict says which unit is evicted if there is no room. A unit counts
 * as used when a request loads it, and when a request offers it, whether the tier has it or gets it
 * then. Of the units of one prompt, those at the end count as used before those at the beginning
 * (vLLM's lru_manager.py and LMCache's touch_cache go through the units from the last to the
 * first). Memory of units that were never stored is not touched. */
#ifndef SIM_REPLICA_KV_TIER_H
#define SIM_REPLICA_KV_TIER_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/error.h"

#include "replica/kv/evictor.h"
#include "replica/kv/tier_places.h"

enum { TIER_HOST, TIER_DISK, TIER_STORE, N_TIERS };

/* When K/V is stored in a tier: as it is computed; or as it is evicted from the tier above, where
 * the device is the first tier. */
enum tier_store { TIER_STORES_COMPUTED, TIER_STORES_EVICTED };
/* When K/V is loaded: while steps run; before the step that starts the request begins; or during
 * this step, layer by layer. */
enum tier_load { TIER_LOADS_APART, TIER_LOADS_BEFORE, TIER_LOADS_BY_LAYER };
/* Which unit is evicted first.
 * - LRU: the one used least recently
 * - LFU: the one used by the fewest requests; of several, the one used least recently
 * - FIFO: the one stored first
 * - MRU: the one used most recently
 * - FILO: the one stored last
 * - SLRU: as LRU, but units that only one request has used go before all others
 *
 * LMCache 0.5.6, cache_policy/: LRU, LFU, FIFO, MRU; SGLang 0.5.23, mem_cache/evict_policy.py: all
 * of them. */
enum tier_evict {
    TIER_EVICTS_LRU,
    TIER_EVICTS_LFU,
    TIER_EVICTS_FIFO,
    TIER_EVICTS_MRU,
    TIER_EVICTS_FILO,
    TIER_EVICTS_SLRU
};

/* How a waiting request gets K/V that is in a tier below the first. LOADS_ITSELF: the request loads
 * the K/V when it starts. PREFETCH: the K/V is moved to the first tier, from the request's arrival
 * on. When a plan reaches a request before all its K/V has come, then
 * - BEST_EFFORT: the request starts on what has come
 * - WAIT: the plan passes over the request until all has come
 * - TIMEOUT: the same, but at most for prefetch_ns plus prefetch_token_ns a token
 *
 * SGLang 0.5.23, mem_cache/unified_radix_cache.py, _can_terminate_prefetch; LMCache 0.5.6,
 * storage_manager.py, async_lookup_and_prefetch, waits. */
enum tier_prefetch {
    TIER_LOADS_ITSELF,
    TIER_PREFETCH_BEST_EFFORT,
    TIER_PREFETCH_WAIT,
    TIER_PREFETCH_TIMEOUT
};

struct tier_rules {
    bool on;
    int32_t n_units;     /* units that the tier holds */
    int32_t unit_blocks; /* blocks of a unit */
    int32_t min_tokens;  /* fewer tokens than this are computed, not loaded */
    int32_t store_after; /* number of requests that must have offered a unit before it is stored */
    enum tier_store stores;
    enum tier_load loads;
    enum tier_evict evicts;
    enum tier_prefetch prefetch;
    int32_t prefetch_tokens; /* fewer tokens than this are not prefetched */
    int64_t prefetch_ns;
    double prefetch_token_ns;
    bool begin_older; /* units stored together are ordered as if the beginning of their prompt had
                         been stored first; otherwise as if the end had */
    bool answers;     /* K/V of answers is stored, too */
    bool keeps;       /* loaded units stay in the tier */
    bool linked;      /* loads and stores take time */
    double hit_frac;  /* share of each prompt that the tier has from the beginning of the run */
};

enum { TIER_NONE = -1 };

struct tier_unit {
    uint64_t identity;
    int32_t next;           /* next unit in its bucket, or in the list of free units */
    int32_t older, younger; /* neighbours in the order of use */
    int32_t behind;         /* the next one in a chain of units to come */
    int32_t n_uses;         /* requests that have used the unit, including the one that stored it;
                               for a unit that is only counted: requests that have offered it */
    bool stored, there;     /* the unit has room in the tier; its K/V has arrived */
    bool listed;            /* it has its place in the order in which units are evicted */
    bool offered;           /* the unit was offered while its K/V was to come */
    uint32_t fetched_for; /* tag of the request that its K/V was prefetched for; 0: it was stored */
    int32_t n_loads;      /* loads under way that read the unit */
    uint64_t used;        /* time of the clock of its last use, if it is listed; not under LRU */
    int32_t place;        /* place of its K/V, if the tier has places (tier_places.h) */
    uint32_t prompt;      /* number of the last prompt that was offered with the unit; 0: none */
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
    int32_t free, n_slots, n_ever; /* n_ever: units that were ever taken */
    int32_t touched_last;          /* unit of the current prompt that was used last; TIER_NONE:
                                      none yet */
    int32_t marked_last;           /* touched_last and n_touched at the place that is marked */
    uint32_t n_marked;
    int32_t n_held;                 /* stored units, including those whose K/V is to come */
    struct tier_list kept, counted; /* kept: listed units, under LRU; counted: units offered too
                                       rarely to be stored */
    struct kv_evictor order;        /* units whose K/V is there, under any other rule */
    struct kv_seat *seats;          /* [n_slots], the seats of `order` */
    uint64_t clock;                 /* number of uses so far */
    uint32_t n_touched;             /* units of the current prompt that were passed */
    uint32_t n_prompts;             /* number of the current prompt */
    int32_t aside;                  /* units of the current prompt that are off the order until the
                                       next one, chained by `older`; TIER_NONE: none */
    int32_t n_most_counted;
    uint64_t n_changes;       /* changes of what can be found */
    struct kv_tier *below;    /* the tier that gets what this one evicts; NULL: none */
    int32_t coming, n_coming; /* units stored since kv_tier_take_coming was last called: the head
                                 of their chain, and their number */
    uint64_t n_anonymous;
    struct tier_places *places; /* owned; NULL: the run only simulates the tier */
};

/* Returns 0 or IFL_E_NOMEM. Zeroed memory is valid for kv_tier_destroy. */
int kv_tier_create(struct kv_tier *tier, const struct tier_rules *rules);
void kv_tier_destroy(struct kv_tier *tier);

/* True if the unit can be found. */
bool kv_tier_has(const struct kv_tier *tier, uint64_t identity);
/* Puts the units of the prompt so far back into the order in which units are evicted. */
void kv_tier_put_back(struct kv_tier *tier);
/* Call it before the units of another prompt are used or offered, from its beginning on. */
static inline void kv_tier_begin(struct kv_tier *tier)
{
    if (tier->aside != TIER_NONE)
        kv_tier_put_back(tier);
    tier->touched_last = TIER_NONE;
    tier->clock += UINT64_C(1) << 32; /* more than a prompt has units */
    tier->n_touched = 0;
    tier->n_prompts++;
}
/* A request loads the unit, which could be found when the plan began: counts as a use, or, if
 * `keeps` is false, removes the unit. Does nothing if the unit has been evicted since. */
void kv_tier_use(struct kv_tier *tier, uint64_t identity);
/* A load begins to read the unit, which is not evicted until kv_tier_let_go. Returns the slot of
 * the unit; TIER_NONE: the tier no longer has it. */
int32_t kv_tier_pin(struct kv_tier *tier, uint64_t identity);
void kv_tier_let_go(struct kv_tier *tier, int32_t slot);
/* A request has computed the unit, or found it on the device. If the tier has the unit, this counts
 * as a use, and the answer is true; if the unit is one of a prompt, it makes no room for others of
 * this prompt. counts: the request has not had it before. */
bool kv_tier_renew(struct kv_tier *tier, uint64_t identity, bool counts);
/* The next unit to be stored takes the room of another one. */
static inline bool kv_tier_is_full(const struct kv_tier *tier)
{
    return tier->n_held >= tier->rules.n_units;
}
/* Passes a unit of the prompt that the tier lacks. */
static inline void kv_tier_pass(struct kv_tier *tier)
{
    tier->n_touched++;
}
/* Marks a place in the prompt, and goes back there. */
static inline void kv_tier_mark(struct kv_tier *tier)
{
    tier->marked_last = tier->touched_last;
    tier->n_marked = tier->n_touched;
}
static inline void kv_tier_rewind(struct kv_tier *tier)
{
    tier->touched_last = tier->marked_last;
    tier->n_touched = tier->n_marked;
}
/* Call it behind kv_tier_renew. If the tier lacks the unit, it is stored, as a unit to come, if it
 * was offered often enough and there is room. blocks: the device blocks of the unit; read only if
 * the tier has places. */
void kv_tier_offer(struct kv_tier *tier, uint64_t identity, const uint32_t *blocks);
/* As kv_tier_renew and kv_tier_offer, for a unit that was evicted from the tier above. known:
 * requests may look for the unit. */
void kv_tier_put(struct kv_tier *tier, uint64_t identity, bool known, const uint32_t *blocks);
/* Returns the place of the K/V of a unit that can be found now, or could be when the plan began. */
int32_t kv_tier_place(const struct kv_tier *tier, uint64_t identity);

/* Makes room for a unit that comes from another tier. Returns false if there is none. A unit that
 * is not in the tier yet is put in front of the chain. serial: of the request that it comes for. */
bool kv_tier_expect(struct kv_tier *tier, uint64_t identity, uint64_t serial, int32_t *chain);
/* True if the unit can be found, and has come for the request with that serial. */
bool kv_tier_has_for(const struct kv_tier *tier, uint64_t identity, uint64_t serial);
/* Returns the units stored since the last call, as a chain for kv_tier_land, the end of a prompt
 * before its beginning; TIER_NONE: none. */
int32_t kv_tier_take_coming(struct kv_tier *tier, int32_t *n_units);
/* The K/V of the units in the chain has arrived: the units can be found from now on. */
void kv_tier_land(struct kv_tier *tier, int32_t chain);
/* The K/V of the units in the chain, which kv_tier_expect has made, will not come: forgets the
 * units. Those that were offered meanwhile are offered again. */
void kv_tier_drop(struct kv_tier *tier, int32_t chain);

#endif
