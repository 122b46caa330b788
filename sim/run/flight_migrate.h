/* Requests that move between replicas while they decode (fleet/migration.h, and replica_migrate.c).
 *
 * Such a request has two records until its last stage has come: the one that decodes, and one at
 * the other replica that holds blocks for what comes. Whatever becomes of the first one in the
 * meantime, as it finishes, gives way or leaves, is noticed as the stage under way has come; then
 * the second one's blocks are free. In the last stage the request stands still. Where its client
 * leaves then, it counts as gone at once, and the blocks of both are free when that stage has come.
 *
 * Steps end first, then stages, then requests leave, then replicas are paired. */
#ifndef SIM_RUN_FLIGHT_MIGRATE_H
#define SIM_RUN_FLIGHT_MIGRATE_H

#include "fleet/migration.h"
#include "run/flight.h"

struct loop;
struct migrating;

/* NULL and *error on failure. Everything is borrowed until migrating_destroy. */
struct migrating *migrating_create(struct loop *loop, struct ifl_error *error);
void migrating_destroy(struct migrating *migrating);

/* When a stage may come next, or replicas are paired while something runs. */
int64_t migrating_next_ns(const struct migrating *migrating);
/* What has come by now. */
int migrating_end(struct migrating *migrating, struct ifl_error *error);
/* Pairs the replicas, if it is time to. */
int migrating_pair(struct migrating *migrating, struct ifl_error *error);
/* A step of the replica has ended: requests that waited for that begin their last stages. */
int migrating_hear_step(struct migrating *migrating, struct replica *replica,
                        struct ifl_error *error);
/* The client of a request has gone, or its time is up. *waits: the request stands still, and counts
 * as gone from now on. */
int migrating_leave(struct migrating *migrating, struct replica *replica, struct live_request *r,
                    enum ifl_status status, bool *waits, struct ifl_error *error);

#endif
