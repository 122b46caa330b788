#include "replica/kv/tier.h"

#include <stdlib.h>

#include "inflight/assert.h"
#include "inflight/minmax.h"
#include "inflight/random.h"

/* Units of which store_after counts how often they were offered: vLLM's max_tracker_size. */
enum { MOST_COUNTED = 64000 };

static uint64_t n_buckets_for(int64_t n)
{
    uint64_t n_buckets = 16;
    while (n_buckets < 2 * (uint64_t)n)
        n_buckets *= 2;
    return n_buckets;
}

static int create_order(struct kv_tier *tier)
{
    tier->seats = calloc((size_t)tier->n_slots + 1, sizeof *tier->seats);
    kv_evictor_create(&tier->order, tier->n_slots, tier->seats, sizeof *tier->seats);
    return tier->seats ? 0 : IFL_E_NOMEM;
}

int kv_tier_create(struct kv_tier *tier, const struct tier_rules *rules)
{
    const int32_t n_counted = rules->store_after > 1 ? MOST_COUNTED : 0;
    const int64_t n_slots = (int64_t)rules->n_units + n_counted;
    const uint64_t n_buckets = n_buckets_for(n_slots);
    ifl_assert(n_slots < INT32_MAX);
    *tier = (struct kv_tier){.rules = *rules,
                             .units = malloc((size_t)(n_slots + 1) * sizeof *tier->units),
                             .buckets = calloc(n_buckets, sizeof *tier->buckets),
                             .mask = n_buckets - 1,
                             .free = TIER_NONE,
                             .touched_last = TIER_NONE,
                             .aside = TIER_NONE,
                             .n_slots = (int32_t)n_slots,
                             .kept = {TIER_NONE, TIER_NONE, 0},
                             .counted = {TIER_NONE, TIER_NONE, 0},
                             .n_most_counted = n_counted,
                             .coming = TIER_NONE};
    const bool ordered = rules->evicts != TIER_EVICTS_LRU;
    if (tier->units && tier->buckets && (!ordered || create_order(tier) == 0))
        return 0;
    kv_tier_destroy(tier);
    return IFL_E_NOMEM;
}

void kv_tier_destroy(struct kv_tier *tier)
{
    free(tier->units);
    free(tier->buckets);
    free(tier->seats);
    kv_evictor_destroy(&tier->order);
    tier_places_destroy(tier->places);
    *tier = (struct kv_tier){0};
}

/* ---- units ---- */

static int32_t find(const struct kv_tier *tier, uint64_t identity)
{
    int32_t at = tier->buckets[identity & tier->mask] - 1;
    while (at != TIER_NONE && tier->units[at].identity != identity)
        at = tier->units[at].next;
    return at;
}

static void append(struct kv_tier *tier, struct tier_list *list, int32_t at)
{
    tier->units[at].older = list->youngest;
    tier->units[at].younger = TIER_NONE;
    *(list->youngest == TIER_NONE ? &list->oldest : &tier->units[list->youngest].younger) = at;
    list->youngest = at;
    list->n++;
}

static void take_off(struct kv_tier *tier, struct tier_list *list, int32_t at)
{
    const struct tier_unit *unit = &tier->units[at];
    *(unit->older == TIER_NONE ? &list->oldest : &tier->units[unit->older].younger) = unit->younger;
    *(unit->younger == TIER_NONE ? &list->youngest : &tier->units[unit->younger].older) =
        unit->older;
    list->n--;
}

static int32_t add(struct kv_tier *tier, uint64_t identity)
{
    const int32_t at = tier->free != TIER_NONE ? tier->free : tier->n_ever++;
    int32_t *bucket = &tier->buckets[identity & tier->mask];
    ifl_require(at < tier->n_slots);
    if (at == tier->free)
        tier->free = tier->units[at].next;
    tier->units[at] = (struct tier_unit){.identity = identity, .next = *bucket - 1};
    *bucket = at + 1;
    return at;
}

static void discard(struct kv_tier *tier, int32_t at)
{
    int32_t *bucket = &tier->buckets[tier->units[at].identity & tier->mask];
    const int32_t next = tier->units[at].next;
    int32_t before = *bucket - 1;
    while (before != at && tier->units[before].next != at)
        before = tier->units[before].next;
    if (before == at)
        *bucket = next + 1;
    else
        tier->units[before].next = next;
    tier->units[at].next = tier->free;
    tier->free = at;
}

/* ---- the order in which they go ---- */

/* Its place among those that are there, where it was used at that time of the clock. */
static struct kv_rank rank_of(const struct kv_tier *tier, int32_t at, uint64_t used)
{
    switch (tier->rules.evicts) {
    case TIER_EVICTS_LFU:
        return (struct kv_rank){.key = tier->units[at].n_uses, .touched = used};
    case TIER_EVICTS_SLRU:
        return (struct kv_rank){.key = tier->units[at].n_uses > 1, .touched = used};
    case TIER_EVICTS_MRU:
    case TIER_EVICTS_FILO:
        return (struct kv_rank){.touched = UINT64_MAX - used};
    default:
        return (struct kv_rank){.touched = used};
    }
}

/* It can be found from now on. It is used now, unless it has counted as used since it was offered.
 */
static void enter(struct kv_tier *tier, int32_t at)
{
    struct tier_unit *unit = &tier->units[at];
    unit->there = true;
    if (tier->rules.evicts != TIER_EVICTS_LRU)
        kv_evictor_put(&tier->order, (uint32_t)at,
                       rank_of(tier, at, unit->listed ? unit->used : ++tier->clock));
    else if (!unit->listed)
        append(tier, &tier->kept, at);
    unit->listed = true;
}

static void leave(struct kv_tier *tier, int32_t at)
{
    if (tier->rules.evicts == TIER_EVICTS_LRU)
        take_off(tier, &tier->kept, at);
    else
        kv_evictor_remove(&tier->order, (uint32_t)at);
    if (tier->touched_last == at) /* what stands in front of it in its prompt is next to it */
        tier->touched_last =
            tier->rules.evicts == TIER_EVICTS_LRU ? tier->units[at].younger : TIER_NONE;
}

/* Puts the units of a chain back where they were. */
static void put_back(struct kv_tier *tier, int32_t chain)
{
    for (; chain != TIER_NONE; chain = tier->units[chain].older) {
        const struct kv_seat *seat = kv_seat(&tier->order, chain);
        kv_evictor_put(&tier->order, (uint32_t)chain,
                       (struct kv_rank){.key = seat->key, .touched = seat->touched});
    }
}

void kv_tier_put_back(struct kv_tier *tier)
{
    put_back(tier, tier->aside);
    tier->aside = TIER_NONE;
}

/* It belongs to the prompt that is being offered (vLLM, lru_manager.py, prepare_store: protected).
 */
static bool is_own(const struct kv_tier *tier, const struct tier_unit *unit)
{
    return unit->prompt != 0 && unit->prompt == tier->n_prompts;
}

/* On the way to the first that may go, units that loads read are taken off the order and put back,
 * and those of the prompt stay off it until the next one: else each unit that it stores would pass
 * all of them again. */
static int32_t first_in_order(struct kv_tier *tier)
{
    int32_t passed = TIER_NONE, first;
    while ((first = kv_evictor_first(&tier->order)) >= 0) {
        struct tier_unit *unit = &tier->units[first];
        int32_t *chain = is_own(tier, unit) ? &tier->aside : &passed;
        if (chain == &passed && unit->n_loads == 0)
            break;
        kv_evictor_remove(&tier->order, (uint32_t)first);
        unit->older = *chain;
        *chain = first;
    }
    put_back(tier, passed);
    return first < 0 ? TIER_NONE : first;
}

/* TIER_NONE: all that is held is on its way, to the tier or from it, or of the prompt itself. */
static int32_t first_to_go(struct kv_tier *tier)
{
    int32_t at = tier->kept.oldest;
    if (tier->rules.evicts != TIER_EVICTS_LRU)
        return first_in_order(tier);
    while (at != TIER_NONE && (tier->units[at].n_loads > 0 || !tier->units[at].there ||
                               is_own(tier, &tier->units[at])))
        at = tier->units[at].younger;
    return at;
}

/* Used now, but before what stands in front of it in its prompt. */
static void insert(struct kv_tier *tier, int32_t at)
{
    const int32_t last = tier->touched_last;
    if (last == TIER_NONE) {
        append(tier, &tier->kept, at);
    } else {
        const int32_t older = tier->units[last].older;
        tier->units[at].older = older;
        tier->units[at].younger = last;
        tier->units[last].older = at;
        *(older == TIER_NONE ? &tier->kept.oldest : &tier->units[older].younger) = at;
        tier->kept.n++;
    }
    tier->touched_last = at;
}

static void rerank(struct kv_tier *tier, int32_t at, uint64_t used)
{
    tier->units[at].used = used;
    if (!tier->units[at].there)
        return;
    kv_evictor_remove(&tier->order, (uint32_t)at);
    kv_evictor_put(&tier->order, (uint32_t)at, rank_of(tier, at, used));
}

/* A request uses it, which is listed. counts: it has not had it before. */
static void touch(struct kv_tier *tier, int32_t at, bool counts)
{
    const enum tier_evict evicts = tier->rules.evicts;
    tier->units[at].n_uses += counts;
    if (evicts == TIER_EVICTS_LRU && tier->touched_last != at) {
        take_off(tier, &tier->kept, at);
        insert(tier, at);
    } else if (evicts != TIER_EVICTS_LRU && evicts != TIER_EVICTS_FIFO &&
               evicts != TIER_EVICTS_FILO) {
        rerank(tier, at, tier->clock - tier->n_touched);
    }
    tier->n_touched++;
}

/* What is computed counts as used when it is offered, although it is still to come. Units that were
 * stored together with begin_older are younger than what their prompt has found. */
static void list_offered(struct kv_tier *tier, int32_t at)
{
    const bool begin_older = tier->rules.begin_older;
    tier->units[at].listed = true;
    tier->units[at].used =
        begin_older ? tier->clock + 1 + tier->n_touched : tier->clock - tier->n_touched;
    if (tier->rules.evicts != TIER_EVICTS_LRU)
        return;
    if (begin_older)
        append(tier, &tier->kept, at);
    else
        insert(tier, at);
}

/* ---- finding ---- */

bool kv_tier_has(const struct kv_tier *tier, uint64_t identity)
{
    const int32_t at = find(tier, identity);
    return at != TIER_NONE && tier->units[at].there;
}

/* Two requests at once have not the same one; never 0. */
static uint32_t tag_of(uint64_t serial)
{
    return (uint32_t)serial | UINT32_C(1) << 31;
}

bool kv_tier_has_for(const struct kv_tier *tier, uint64_t identity, uint64_t serial)
{
    const int32_t at = find(tier, identity);
    return at != TIER_NONE && tier->units[at].there &&
           tier->units[at].fetched_for == tag_of(serial);
}

int32_t kv_tier_place(const struct kv_tier *tier, uint64_t identity)
{
    const int32_t at = find(tier, identity);
    return at != TIER_NONE && tier->units[at].there ? tier->units[at].place
                                                    : tier_places_lost(tier->places, identity);
}

static void lose(struct kv_tier *tier, int32_t at)
{
    leave(tier, at);
    tier->n_held--;
    tier->n_changes++;
    if (tier->places)
        tier_places_lose(tier->places, tier->units[at].identity, tier->units[at].place);
    discard(tier, at);
}

void kv_tier_use(struct kv_tier *tier, uint64_t identity)
{
    const int32_t at = find(tier, identity);
    if (at == TIER_NONE || !tier->units[at].there)
        return;            /* a unit before it in the same load has pushed it out */
    if (tier->rules.keeps) /* where it has offered it, or will, it counts then */
        touch(tier, at, tier->rules.stores == TIER_STORES_EVICTED);
    else
        lose(tier, at);
}

int32_t kv_tier_pin(struct kv_tier *tier, uint64_t identity)
{
    const int32_t at = find(tier, identity);
    if (at == TIER_NONE || !tier->units[at].there)
        return TIER_NONE;
    tier->units[at].n_loads++;
    return at;
}

void kv_tier_let_go(struct kv_tier *tier, int32_t slot)
{
    tier->units[slot].n_loads--;
}

/* ---- storing ---- */

/* Room for one more unit; false: all that is held is on its way. */
static bool make_room(struct kv_tier *tier)
{
    if (tier->n_held < tier->rules.n_units)
        return true;
    const int32_t first = first_to_go(tier);
    if (first == TIER_NONE)
        return false;
    const uint64_t identity = tier->units[first].identity;
    lose(tier, first);
    if (tier->below)
        kv_tier_put(tier->below, identity, true, NULL);
    return true;
}

/* It has room from now on, and comes. */
static void hold(struct kv_tier *tier, int32_t at, int32_t *chain)
{
    tier->units[at].stored = true;
    tier->units[at].n_uses = 1;
    tier->units[at].behind = *chain;
    *chain = at;
    tier->n_held++;
}

static void store(struct kv_tier *tier, int32_t at, const uint32_t *blocks)
{
    if (tier->places)
        tier->units[at].place = tier_places_store(tier->places, blocks);
    hold(tier, at, &tier->coming);
    tier->n_coming++;
}

/* How many requests had the unit before, of those that are counted. */
static int32_t count_offer(struct kv_tier *tier, int32_t at, uint64_t identity)
{
    struct tier_list *counted = &tier->counted;
    if (at != TIER_NONE) {
        take_off(tier, counted, at);
        append(tier, counted, at);
        return ++tier->units[at].n_uses;
    }
    if (counted->n == tier->n_most_counted) {
        const int32_t oldest = counted->oldest;
        take_off(tier, counted, oldest);
        discard(tier, oldest);
    }
    at = add(tier, identity);
    tier->units[at].n_uses = 1;
    append(tier, counted, at);
    return 1;
}

static void forget_count(struct kv_tier *tier, int32_t at)
{
    take_off(tier, &tier->counted, at);
    discard(tier, at);
}

/* True if the unit, which is not stored, has been offered often enough. */
static bool is_due(struct kv_tier *tier, int32_t at, uint64_t identity)
{
    return tier->rules.store_after <= 1 ||
           count_offer(tier, at, identity) >= tier->rules.store_after;
}

bool kv_tier_renew(struct kv_tier *tier, uint64_t identity, bool counts)
{
    const int32_t at = find(tier, identity);
    if (at == TIER_NONE || !tier->units[at].stored)
        return false;
    if (tier->rules.stores == TIER_STORES_COMPUTED)
        tier->units[at].prompt = tier->n_prompts;
    if (tier->units[at].listed)
        touch(tier, at, counts);
    else
        tier->units[at].offered = true;
    return true;
}

static void offer(struct kv_tier *tier, int32_t at, uint64_t identity, const uint32_t *blocks)
{
    if (!is_due(tier, at, identity) || !make_room(tier))
        return;
    if (tier->rules.store_after > 1)
        forget_count(tier, find(tier, identity));
    at = add(tier, identity);
    store(tier, at, blocks);
    if (tier->rules.stores == TIER_STORES_COMPUTED)
        list_offered(tier, at);
}

void kv_tier_offer(struct kv_tier *tier, uint64_t identity, const uint32_t *blocks)
{
    const int32_t at = find(tier, identity);
    if (at == TIER_NONE || !tier->units[at].stored)
        offer(tier, at, identity, blocks);
    else if (tier->rules.evicts == TIER_EVICTS_LRU && tier->units[at].listed)
        tier->touched_last = at;
    tier->n_touched++;
}

/* A prompt is evicted from its end on, so the unit that was put last was used last. */
void kv_tier_put(struct kv_tier *tier, uint64_t identity, bool known, const uint32_t *blocks)
{
    tier->touched_last = TIER_NONE;
    tier->clock++;
    tier->n_touched = 0;
    identity = known ? identity : ifl_mix(~++tier->n_anonymous);
    if (!kv_tier_renew(tier, identity, false))
        kv_tier_offer(tier, identity, blocks);
}

bool kv_tier_expect(struct kv_tier *tier, uint64_t identity, uint64_t serial, int32_t *chain)
{
    const int32_t at = find(tier, identity);
    if (at != TIER_NONE && tier->units[at].stored) {
        if (tier->units[at].there)
            touch(tier, at, false);
        return true;
    }
    if (!make_room(tier))
        return false;
    if (at != TIER_NONE)
        forget_count(tier, at);
    hold(tier, add(tier, identity), chain);
    tier->units[*chain].fetched_for = tag_of(serial);
    return true;
}

static int32_t reversed(struct kv_tier *tier, int32_t chain)
{
    int32_t before = TIER_NONE;
    for (int32_t next; chain != TIER_NONE; chain = next) {
        next = tier->units[chain].behind;
        tier->units[chain].behind = before;
        before = chain;
    }
    return before;
}

int32_t kv_tier_take_coming(struct kv_tier *tier, int32_t *n_units)
{
    const int32_t chain = tier->coming;
    *n_units = tier->n_coming;
    tier->coming = TIER_NONE;
    tier->n_coming = 0;
    /* It begins with the unit that was put last: of what was computed the end of a prompt, of what
     * was evicted the beginning. */
    return tier->rules.stores == TIER_STORES_EVICTED ? reversed(tier, chain) : chain;
}

void kv_tier_land(struct kv_tier *tier, int32_t chain)
{
    if (tier->rules.begin_older)
        chain = reversed(tier, chain);
    for (int32_t next; chain != TIER_NONE; chain = next) {
        next = tier->units[chain].behind;
        enter(tier, chain);
        tier->n_changes++;
    }
}

/* What is offered again is put in the order in which such a tier puts it: what was computed from
 * the beginning of its prompt on, what was evicted from the end on. */
void kv_tier_drop(struct kv_tier *tier, int32_t chain)
{
    if (tier->rules.stores == TIER_STORES_COMPUTED)
        chain = reversed(tier, chain);
    kv_tier_begin(tier);
    for (int32_t next; chain != TIER_NONE; chain = next) {
        const struct tier_unit unit = tier->units[chain];
        next = unit.behind;
        tier->n_held--;
        discard(tier, chain);
        if (unit.offered)
            kv_tier_offer(tier, unit.identity, NULL);
    }
}
