/* Routing: which replica of a cluster gets the request that has just arrived.
 *
 * Code that changes a replica calls routing_note, so that asking the router costs no walk over
 * queues. */
#ifndef SIM_ROUTING_H
#define SIM_ROUTING_H

#include "replica.h"

struct routing {
    struct replica *replicas; /* [n], borrowed */
    uint32_t n;
    const struct module *router;
    uint64_t seed, n_routed;
    struct ifl_load *loads;    /* [n] */
    struct live_request probe; /* the request that is asked about */
};

/* Zeroed memory is valid for routing_destroy. */
int routing_create(struct routing *routing, struct replica *replicas, uint32_t n,
                   const struct module *router, uint64_t seed, struct ifl_error *error);
void routing_destroy(struct routing *routing);

/* The router's answer; negative if it names no replica. */
int64_t routing_ask(struct routing *routing, const struct arrival *arrival,
                    struct ifl_error *error);
static inline int64_t routing_pick(struct routing *routing, const struct arrival *arrival,
                                   struct ifl_error *error)
{
    return routing->n == 1 ? 0 : routing_ask(routing, arrival, error);
}
/* Call it after the replica has changed. */
void routing_note_load(struct routing *routing, const struct replica *replica);
static inline void routing_note(struct routing *routing, const struct replica *replica)
{
    if (routing->n > 1)
        routing_note_load(routing, replica);
}

#endif
