/* Functions that the waiting queue (waiting.c) and the recomputing of its keys (waiting_anew.c)
 * share. */
#ifndef SIM_REPLICA_WAITING_PARTS_H
#define SIM_REPLICA_WAITING_PARTS_H

#include "replica/waiting.h"

/* Sizes of the arrays, in multiples of `cap`: a run may start anywhere in its array, runs and the
 * heap have holes, and near gets up to as many entries again during a plan. */
enum { FAR_ROOM = 2, NEAR_ROOM = 3 };

static inline bool before(const struct waiter *a, const struct waiter *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    if (a->arrival_ns != b->arrival_ns)
        return a->arrival_ns < b->arrival_ns;
    return a->serial < b->serial;
}

/* True if the entry is valid. An entry without a record is: a request cannot leave before it has
 * one. */
static inline bool waits(const struct waiter *w)
{
    return !w->r || w->r->ticket == w->ticket;
}

/* Removes the holes of [from, to) and moves the rest to the left. Returns where the rest ends. */
size_t waiting_keep(struct waiter *of, size_t from, size_t to);
/* Moves the entries to the start of their array. */
void waiting_run_to_start(struct waiter_run *run);
/* Gives a record to the first request in line that has none. */
void waiting_describe(struct waiting *waiting, struct waiter *w);

#endif
