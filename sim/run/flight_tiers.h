/* K/V that moves between tiers below the device and the device (replica/tiers.h).
 *
 * A step is held while one of its requests waits for K/V that must be there before the step begins.
 * If K/V is loaded layer by layer this is the part that the step does not hide: a step of L layers
 * that lasts T, with a load of x, ends max(T + x / L, x + T / L) after the load's beginning. */
#ifndef SIM_RUN_FLIGHT_TIERS_H
#define SIM_RUN_FLIGHT_TIERS_H

#include "run/flight.h"

struct loop;
struct tiering;

/* NULL and *error on failure. Everything is borrowed until tiering_destroy. */
struct tiering *tiering_create(struct loop *loop, struct ifl_error *error);
void tiering_destroy(struct tiering *tiering);

/* When something may come next. */
int64_t tiering_next_ns(const struct tiering *tiering);
/* What has come by now. */
int tiering_end(struct tiering *tiering, struct ifl_error *error);
/* The replica has made a plan, which a step may follow (submits); a step of it has ended. */
int tiering_hear_plan(struct tiering *tiering, struct replica *replica, bool submits,
                      struct ifl_error *error);
int tiering_hear_step(struct tiering *tiering, struct replica *replica, struct ifl_error *error);
/* The committed step of the replica begins only when loads have come. */
bool tiering_awaited(const struct tiering *tiering, const struct replica *replica);
/* r has joined the replica: what it needs may come to the first tier while it waits. */
int tiering_hear_join(struct tiering *tiering, struct replica *replica, struct live_request *r,
                      struct ifl_error *error);
/* The client of a request has gone, or its time is up. True if its K/V is on its way: it counts as
 * gone, and its blocks are free when that has come. */
int tiering_leave(struct tiering *tiering, struct replica *replica, struct live_request *r,
                  enum ifl_status status, bool *waits, struct ifl_error *error);

#endif
