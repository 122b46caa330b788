/* Prefetches into the processor's caches what the next step of a replica will touch. With a
 * thousand replicas little of it is in the caches. No state changes. */
#ifndef SIM_REPLICA_WARM_H
#define SIM_REPLICA_WARM_H

#include "replica/replica.h"

/* What lies in the replica itself. */
void replica_warm(const struct replica *replica);
/* What it points to. By then replica_warm should have been called for it a little earlier. joins: a
 * request is about to join. */
void replica_warm_lists(const struct replica *replica, bool joins);
/* The request of its cohort that ends next. By then replica_warm_lists should have been called. */
void replica_warm_end(const struct replica *replica);

#endif
