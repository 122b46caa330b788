/* Requests that move between replicas while they decode (fleet/migration.h,
 * replica/replica_migrate.c).
 *
 * Such a request has two records until its last stage has come: one at its replica, where it
 * decodes, and one at the other replica, which holds blocks for the K/V. If the request ends, gives
 * way or leaves meanwhile, this is noticed when the stage under way has come; the blocks of the
 * second record are free then. During the last stage the request does not decode. If its client
 * leaves during that stage the request counts as gone at once, and the blocks of both records are
 * free when the stage has come.
 *
 * At equal times steps end first, then stages, then requests leave, then replicas are paired. */
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
