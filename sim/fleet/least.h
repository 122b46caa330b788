/* The replica with the fewest requests, or the first by another count (enum least_by), up to date
 * while loads change. Of equal counts the lower number is first. */
#ifndef SIM_FLEET_LEAST_H
#define SIM_FLEET_LEAST_H

#include "inflight/fleet.h"

#include "base/tournament.h"

enum least_by { LEAST_REQUESTS, MOST_REQUESTS, LEAST_ROUTED, N_LEAST };

struct least {
    const struct ifl_load *loads; /* [n], borrowed */
    enum least_by by;
    struct tournament of; /* by count */
};

/* All of n loads. 0 or IFL_E_NOMEM. Zeroed memory is valid for least_destroy. */
int least_create(struct least *least, enum least_by by, const struct ifl_load *loads, uint32_t n);
void least_destroy(struct least *least);
static inline bool least_is_kept(const struct least *least)
{
    return tournament_is_there(&least->of);
}
/* True if replica b goes before a, whatever their numbers. */
static inline bool least_goes_before(const struct least *least, uint32_t b, uint32_t a)
{
    return least->of.key[b] < least->of.key[a];
}
/* The load of replica i has changed. */
void least_note(struct least *least, uint32_t i);
/* All loads have changed. */
void least_note_all(struct least *least);
/* The first of replicas [from, to); n: none. */
static inline uint32_t least_of(const struct least *least, uint32_t from, uint32_t to)
{
    return tournament_first_of(&least->of, from, to);
}

#endif
