#include "replica/kv/tier_places.h"

#include <stdlib.h>

#include "base/array.h"
#include "inflight/assert.h"
#include "inflight/minmax.h"

struct tier_places *tier_places_create(int32_t unit_blocks)
{
    struct tier_places *places = calloc(1, sizeof *places);
    if (places)
        places->unit_blocks = unit_blocks;
    return places;
}

void tier_places_destroy(struct tier_places *places)
{
    if (!places)
        return;
    free(places->of);
    free(places->free);
    free(places->lost);
    free(places->stores);
    free(places);
}

/* A plan cannot fail here: it has no more than a replica's blocks to store. */
static void reserve_places(struct tier_places *places)
{
    const int32_t cap = ifl_max(2 * places->cap, 64);
    if (places->n < places->cap)
        return;
    ifl_require(array_grow(&places->of, (size_t)places->n, (size_t)cap, sizeof *places->of) == 0);
    ifl_require(
        array_grow(&places->free, (size_t)places->n_free, (size_t)cap, sizeof *places->free) == 0);
    places->cap = cap;
}

static void give(struct tier_places *places, int32_t place)
{
    places->of[place].lost = false;
    places->free[places->n_free++] = place;
}

int32_t tier_places_store(struct tier_places *places, const uint32_t *blocks)
{
    const size_t n = places->n_stores + (size_t)places->unit_blocks, cap = 2 * n + 64;
    reserve_places(places);
    if (n > places->cap_stores) {
        ifl_require(array_grow(&places->stores, places->n_stores, cap, sizeof *places->stores) ==
                    0);
        places->cap_stores = cap;
    }
    const int32_t place = places->n_free > 0 ? places->free[--places->n_free] : places->n++;
    places->of[place] = (struct tier_place){0};
    for (int32_t i = 0; i < places->unit_blocks; i++)
        places->stores[places->n_stores++] =
            (struct ifl_copy){blocks[i], (uint32_t)(place * places->unit_blocks + i)};
    return place;
}

void tier_places_lose(struct tier_places *places, uint64_t identity, int32_t place)
{
    if (places->n_lost == places->cap_lost) {
        const size_t cap = 2 * places->cap_lost + 64;
        ifl_require(array_grow(&places->lost, places->n_lost, cap, sizeof *places->lost) == 0);
        places->cap_lost = cap;
    }
    places->lost[places->n_lost++] = (struct tier_lost){identity, place};
}

int32_t tier_places_lost(const struct tier_places *places, uint64_t identity)
{
    for (size_t i = places->n_lost; i-- > 0;)
        if (places->lost[i].identity == identity)
            return places->lost[i].place;
    return -1;
}

uint32_t tier_places_read(struct tier_places *places, int32_t place, int32_t i)
{
    ifl_assert(place >= 0 && place < places->n && i >= 0 && i < places->unit_blocks);
    places->of[place].n_readers++;
    return (uint32_t)(place * places->unit_blocks + i);
}

void tier_places_done(struct tier_places *places, uint32_t block)
{
    const int32_t place = (int32_t)block / places->unit_blocks;
    ifl_assert(places->of[place].n_readers > 0);
    if (--places->of[place].n_readers == 0 && places->of[place].lost)
        give(places, place);
}

void tier_places_settle(struct tier_places *places)
{
    for (size_t i = 0; i < places->n_lost; i++) {
        const int32_t place = places->lost[i].place;
        places->of[place].lost = true;
        if (places->of[place].n_readers == 0)
            give(places, place);
    }
    places->n_lost = places->n_stores = 0;
}
