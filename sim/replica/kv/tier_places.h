/* Places for the K/V of a tier's units, for an executor that really copies it. A place has the
 * blocks of one unit.
 *
 * A plan may find a unit, evict it from the tier, and still load it. Therefore the place of an
 * evicted unit is used again only once the loop has handled the plan and no load reads the place.
 */
#ifndef SIM_REPLICA_KV_TIER_PLACES_H
#define SIM_REPLICA_KV_TIER_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/executor.h"

struct tier_place {
    int32_t n_readers; /* blocks of the place that loads under way read */
    bool lost;         /* its unit was evicted: the place is free once it has no readers */
};

struct tier_lost {
    uint64_t identity;
    int32_t place;
};

struct tier_places {
    int32_t unit_blocks;
    struct tier_place *of; /* [n] places that were ever used */
    int32_t *free;         /* [n_free] free places */
    int32_t n, n_free, cap;
    struct tier_lost *lost; /* [n_lost] units evicted since tier_places_settle was last called */
    size_t n_lost, cap_lost;
    struct ifl_copy *stores; /* [n_stores] copies from blocks of the device to blocks of places,
                                since then */
    size_t n_stores, cap_stores;
};

/* Returns NULL if memory is short. */
struct tier_places *tier_places_create(int32_t unit_blocks);
void tier_places_destroy(struct tier_places *places);

/* Returns a place for the unit in these blocks of the device, and lists the copies of the blocks to
 * that place. */
int32_t tier_places_store(struct tier_places *places, const uint32_t *blocks);
void tier_places_lose(struct tier_places *places, uint64_t identity, int32_t place);
/* Returns the place of a unit that was evicted since tier_places_settle was last called; -1: none.
 */
int32_t tier_places_lost(const struct tier_places *places, uint64_t identity);

/* Counts a load that reads the i-th block of the place. Returns the number of that block among the
 * blocks of all places. */
uint32_t tier_places_read(struct tier_places *places, int32_t place, int32_t i);
/* The load of that block has ended. */
void tier_places_done(struct tier_places *places, uint32_t block);

/* Call it when the loop has taken over the stores: places of evicted units without readers become
 * free. */
void tier_places_settle(struct tier_places *places);

#endif
