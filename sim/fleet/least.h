/* The replica with the fewest requests, or the first by another count, kept as loads change: a tree
 * of matches. Each node has the number of the replica that wins below it, so that a change costs
 * one match a level, and so does the winner of a span. Ties go to the lower number. */
#ifndef SIM_FLEET_LEAST_H
#define SIM_FLEET_LEAST_H

#include "inflight/fleet.h"

enum least_by { LEAST_REQUESTS, MOST_REQUESTS, LEAST_ROUTED, N_LEAST };

struct least {
    const struct ifl_load *loads; /* [n], borrowed */
    enum least_by by;
    uint32_t n, n_leaves; /* n_leaves: a power of two */
    uint32_t *winner;     /* [2 n_leaves], the root at 1; n: no replica */
};

/* All matches of n loads. 0 or IFL_E_NOMEM. Zeroed memory is valid for least_destroy. */
int least_create(struct least *least, enum least_by by, const struct ifl_load *loads, uint32_t n);
/* True if replica b goes before a, whatever their numbers. */
bool least_goes_before(const struct least *least, uint32_t b, uint32_t a);
void least_destroy(struct least *least);
static inline bool least_is_kept(const struct least *least)
{
    return least->winner != NULL;
}
/* The load of replica i has changed. */
void least_note(struct least *least, uint32_t i);
/* All loads have changed. */
void least_note_all(struct least *least);
/* The winner of replicas [from, to); n: none. */
uint32_t least_of(const struct least *least, uint32_t from, uint32_t to);

#endif
