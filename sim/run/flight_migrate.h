/* Requests that move between replicas while they decode (fleet/migration.h,
 * replica/replica_migrate.c).
 *
 * Such a request has two records until its last stage has come: one at its replica, where it
 * decodes, and one at the other replica, which holds blocks for the K/V. If the request ends, is
 * preempted or leaves meanwhile, the loop notices this when the stage under way has ended; only
 * then are the blocks of the second record free. During the last stage the request does not decode.
 * If its client leaves during that stage, the request counts as gone at once, and the blocks of
 * both records are free when the stage has ended.
 *
 * At equal times steps end first, then stages, then requests leave, then replicas are paired. */
#ifndef SIM_RUN_FLIGHT_MIGRATE_H
#define SIM_RUN_FLIGHT_MIGRATE_H

#include "fleet/migration.h"
#include "run/flight.h"

struct loop;
struct migrating;

/* Returns NULL, with *error set, on failure. The loop is borrowed until migrating_destroy. */
struct migrating *migrating_create(struct loop *loop, struct ifl_error *error);
void migrating_destroy(struct migrating *migrating);

/* Returns the next time at which a stage may end or replicas are paired, while something runs. */
int64_t migrating_next_ns(const struct migrating *migrating);
/* Handles the stages that have ended by now. */
int migrating_end(struct migrating *migrating, struct ifl_error *error);
/* Pairs the replicas if a multiple of the interval has come. */
int migrating_pair(struct migrating *migrating, struct ifl_error *error);
/* Call it when a step of the replica has ended: requests that waited for that begin their last
 * stages. */
int migrating_hear_step(struct migrating *migrating, struct replica *replica,
                        struct ifl_error *error);
/* Call it when the client of a request has gone, or its deadline has passed. *waits: the request is
 * in its last stage, and counts as gone from now on. */
int migrating_leave(struct migrating *migrating, struct replica *replica, struct live_request *r,
                    enum ifl_status status, bool *waits, struct ifl_error *error);

#endif
