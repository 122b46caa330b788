/* Prefetches into the processor's caches what the next step of a replica will touch. With a
 * thousand replicas little of it is in the caches. No state changes. */
#ifndef SIM_REPLICA_WARM_H
#define SIM_REPLICA_WARM_H

#include "replica/replica.h"

/* Prefetches the fields of the replica itself. */
void replica_warm(const struct replica *replica);
/* Prefetches the memory that the replica points to. Call replica_warm some time before. joins: a
 * request is about to join. */
void replica_warm_lists(const struct replica *replica, bool joins);
/* Prefetches the record of the request of its cohort that ends next. Call replica_warm_lists
 * before. */
void replica_warm_end(const struct replica *replica);

#endif
