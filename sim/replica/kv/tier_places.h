/* Places for the K/V of a tier's units, for an executor that really copies it. A place has the
 * blocks of one unit.
 *
 * A plan may load a unit that it has found before it evicted it from the tier. So the place of an
 * evicted unit is used again only when the loop has handled the plan and no load reads the place.
 */
#ifndef SIM_REPLICA_KV_TIER_PLACES_H
#define SIM_REPLICA_KV_TIER_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/executor.h"

struct tier_place {
    int32_t n_readers; /* blocks that loads under way read */
    bool lost;         /* free when there is none */
};

struct tier_lost {
    uint64_t identity;
    int32_t place;
};

struct tier_places {
    int32_t unit_blocks;
    struct tier_place *of; /* [n] that were ever used */
    int32_t *free;         /* [n_free] */
    int32_t n, n_free, cap;
    struct tier_lost *lost; /* [n_lost] since the loop last heard */
    size_t n_lost, cap_lost;
    struct ifl_copy *stores; /* [n_stores] blocks of the device to blocks of places, since then */
    size_t n_stores, cap_stores;
};

/* NULL without memory. */
struct tier_places *tier_places_create(int32_t unit_blocks);
void tier_places_destroy(struct tier_places *places);

/* A place for the unit in these blocks of the device, which are to be copied there. */
int32_t tier_places_store(struct tier_places *places, const uint32_t *blocks);
void tier_places_lose(struct tier_places *places, uint64_t identity, int32_t place);
/* The place of a unit that was lost since the loop last heard; -1: there is none. */
int32_t tier_places_lost(const struct tier_places *places, uint64_t identity);

/* A load reads the i-th block of the place: its number among the blocks of all places. */
uint32_t tier_places_read(struct tier_places *places, int32_t place, int32_t i);
/* The load of that block has ended. */
void tier_places_done(struct tier_places *places, uint32_t block);

/* The loop has heard of the stores. */
void tier_places_settle(struct tier_places *places);

#endif
