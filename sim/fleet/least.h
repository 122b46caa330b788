/* The replica with the fewest requests, kept as loads change: a tree of matches. Each node has the
 * number of the replica that wins below it, so that a change costs one match a level, and so does
 * the winner of a span. Ties go to the lower number. */
#ifndef SIM_FLEET_LEAST_H
#define SIM_FLEET_LEAST_H

#include "inflight/fleet.h"

struct least {
    const struct ifl_load *loads; /* [n], borrowed */
    uint32_t n, n_leaves;         /* n_leaves: a power of two */
    uint32_t *winner;             /* [2 n_leaves], the root at 1; n: no replica */
};

/* All matches of n loads. 0 or IFL_E_NOMEM. Zeroed memory is valid for least_destroy. */
int least_create(struct least *least, const struct ifl_load *loads, uint32_t n);
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
