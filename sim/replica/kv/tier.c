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

int kv_tier_create(struct kv_tier *tier, const struct tier_rules *rules)
{
    const int32_t n_counted = rules->store_after > 1 ? MOST_COUNTED : 0;
    const int64_t n_slots = (int64_t)rules->n_units + n_counted;
    const uint64_t n_buckets = n_buckets_for(n_slots);
    ifl_assert(n_slots < INT32_MAX);
    *tier = (struct kv_tier){.rules = *rules,
                             .units = malloc((size_t)(n_slots + 1) * sizeof *tier->units),
                             .buckets = malloc(n_buckets * sizeof *tier->buckets),
                             .mask = n_buckets - 1,
                             .free = TIER_NONE,
                             .touched_last = TIER_NONE,
                             .n_slots = (int32_t)n_slots,
                             .kept = {TIER_NONE, TIER_NONE, 0},
                             .counted = {TIER_NONE, TIER_NONE, 0},
                             .n_most_counted = n_counted,
                             .coming = TIER_NONE};
    if (!tier->units || !tier->buckets) {
        kv_tier_destroy(tier);
        return IFL_E_NOMEM;
    }
    for (uint64_t i = 0; i < n_buckets; i++)
        tier->buckets[i] = TIER_NONE;
    for (int32_t i = tier->n_slots; i-- > 0;) {
        tier->units[i].next = tier->free;
        tier->free = i;
    }
    return 0;
}

void kv_tier_destroy(struct kv_tier *tier)
{
    free(tier->units);
    free(tier->buckets);
    tier_places_destroy(tier->places);
    *tier = (struct kv_tier){0};
}

/* ---- units ---- */

static int32_t find(const struct kv_tier *tier, uint64_t identity)
{
    int32_t at = tier->buckets[identity & tier->mask];
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
    const int32_t at = tier->free;
    int32_t *bucket = &tier->buckets[identity & tier->mask];
    ifl_require(at != TIER_NONE);
    tier->free = tier->units[at].next;
    tier->units[at] = (struct tier_unit){.identity = identity, .next = *bucket};
    *bucket = at;
    return at;
}

static void discard(struct kv_tier *tier, int32_t at)
{
    int32_t *link = &tier->buckets[tier->units[at].identity & tier->mask];
    while (*link != at)
        link = &tier->units[*link].next;
    *link = tier->units[at].next;
    tier->units[at].next = tier->free;
    tier->free = at;
}

/* ---- finding ---- */

bool kv_tier_has(const struct kv_tier *tier, uint64_t identity)
{
    const int32_t at = find(tier, identity);
    return at != TIER_NONE && tier->units[at].there;
}

int32_t kv_tier_place(const struct kv_tier *tier, uint64_t identity)
{
    const int32_t at = find(tier, identity);
    return at != TIER_NONE && tier->units[at].there ? tier->units[at].place
                                                    : tier_places_lost(tier->places, identity);
}

/* Used now, and lost before what stands in front of it in its prompt. */
static void touch(struct kv_tier *tier, int32_t at)
{
    const int32_t last = tier->touched_last;
    take_off(tier, &tier->kept, at);
    if (last == TIER_NONE || last == at) {
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

static void lose(struct kv_tier *tier, int32_t at)
{
    take_off(tier, &tier->kept, at);
    if (tier->touched_last == at)
        tier->touched_last = TIER_NONE;
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
        return; /* a unit before it in the same load has pushed it out */
    if (tier->rules.keeps)
        touch(tier, at);
    else
        lose(tier, at);
}

/* ---- storing ---- */

/* Room for one more unit; false: all that is held is still on its way. */
static bool make_room(struct kv_tier *tier)
{
    const int32_t oldest = tier->kept.oldest;
    if (tier->n_held < tier->rules.n_units)
        return true;
    if (oldest == TIER_NONE)
        return false;
    const uint64_t identity = tier->units[oldest].identity;
    lose(tier, oldest);
    if (tier->below)
        kv_tier_put(tier->below, identity, true, NULL);
    return true;
}

static void store(struct kv_tier *tier, int32_t at, const uint32_t *blocks)
{
    if (tier->places)
        tier->units[at].place = tier_places_store(tier->places, blocks);
    tier->units[at].stored = true;
    tier->units[at].younger = tier->coming;
    tier->coming = at;
    tier->n_coming++;
    tier->n_held++;
}

/* How many requests had the unit before, of those that are counted. */
static int32_t count_offer(struct kv_tier *tier, int32_t at, uint64_t identity)
{
    struct tier_list *counted = &tier->counted;
    if (at != TIER_NONE) {
        take_off(tier, counted, at);
        append(tier, counted, at);
        return ++tier->units[at].n_offers;
    }
    if (counted->n == tier->n_most_counted) {
        const int32_t oldest = counted->oldest;
        take_off(tier, counted, oldest);
        discard(tier, oldest);
    }
    at = add(tier, identity);
    tier->units[at].n_offers = 1;
    append(tier, counted, at);
    return 1;
}

void kv_tier_offer(struct kv_tier *tier, uint64_t identity, const uint32_t *blocks)
{
    int32_t at = find(tier, identity);
    if (at != TIER_NONE && tier->units[at].stored) {
        if (tier->units[at].there)
            touch(tier, at);
        return;
    }
    if (tier->rules.store_after > 1) {
        if (count_offer(tier, at, identity) < tier->rules.store_after)
            return;
        at = find(tier, identity);
        take_off(tier, &tier->counted, at);
        discard(tier, at);
    }
    if (make_room(tier))
        store(tier, add(tier, identity), blocks);
}

void kv_tier_put(struct kv_tier *tier, uint64_t identity, bool known, const uint32_t *blocks)
{
    const uint64_t as = known ? identity : ifl_mix(~++tier->n_anonymous);
    const int32_t at = find(tier, as);
    if (at != TIER_NONE) {
        if (tier->units[at].there)
            touch(tier, at);
        return;
    }
    if (make_room(tier))
        store(tier, add(tier, as), blocks);
}

int32_t kv_tier_take_coming(struct kv_tier *tier, int32_t *n_units)
{
    const int32_t chain = tier->coming;
    *n_units = tier->n_coming;
    tier->coming = TIER_NONE;
    tier->n_coming = 0;
    return chain;
}

void kv_tier_land(struct kv_tier *tier, int32_t chain)
{
    for (int32_t next; chain != TIER_NONE; chain = next) {
        next = tier->units[chain].younger;
        tier->units[chain].there = true;
        append(tier, &tier->kept, chain);
        tier->n_changes++;
    }
}
