/* Finds the replica with the fewest requests, or the first one by another count (enum least_by);
 * kept up to date while loads change. Of equal counts the lower replica number is first. */
#ifndef SIM_FLEET_LEAST_H
#define SIM_FLEET_LEAST_H

#include "inflight/fleet.h"

#include "base/tournament.h"

enum least_by { LEAST_REQUESTS, MOST_REQUESTS, LEAST_ROUTED, N_LEAST };

struct least {
    const struct ifl_load *loads; /* [n], borrowed */
    enum least_by by;
    struct tournament of; /* replicas by their counts */
};

/* Creates the order of n loads. Returns 0 or IFL_E_NOMEM. Zeroed memory is valid for least_destroy.
 */
int least_create(struct least *least, enum least_by by, const struct ifl_load *loads, uint32_t n);
void least_destroy(struct least *least);
static inline bool least_is_kept(const struct least *least)
{
    return tournament_is_there(&least->of);
}
/* True if the count of replica b is before that of a; numbers do not matter. */
static inline bool least_goes_before(const struct least *least, uint32_t b, uint32_t a)
{
    return least->of.key[b] < least->of.key[a];
}
/* Call it when the load of replica i has changed. */
void least_note(struct least *least, uint32_t i);
/* Call it when all loads have changed. */
void least_note_all(struct least *least);
/* Returns the first of the replicas [from, to), or n if there is none. */
static inline uint32_t least_of(const struct least *least, uint32_t from, uint32_t to)
{
    return tournament_first_of(&least->of, from, to);
}

#endif
