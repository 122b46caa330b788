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

/* Returns NULL, with *error set, on failure. The loop is borrowed until tiering_destroy. */
struct tiering *tiering_create(struct loop *loop, struct ifl_error *error);
void tiering_destroy(struct tiering *tiering);

/* Returns the next time at which a load or a store may end. */
int64_t tiering_next_ns(const struct tiering *tiering);
/* Handles the loads and stores that have ended by now. */
int tiering_end(struct tiering *tiering, struct ifl_error *error);
/* Call them when the replica has made a plan (submits: a step may follow), and when a step of it
 * has ended. */
int tiering_hear_plan(struct tiering *tiering, struct replica *replica, bool submits,
                      struct ifl_error *error);
int tiering_hear_step(struct tiering *tiering, struct replica *replica, struct ifl_error *error);
/* True if the committed step of the replica must wait for loads. */
bool tiering_awaited(const struct tiering *tiering, const struct replica *replica);
/* Call it when r has joined the replica: K/V that r needs may be moved to the first tier while r
 * waits. */
int tiering_hear_join(struct tiering *tiering, struct replica *replica, struct live_request *r,
                      struct ifl_error *error);
/* Call it when the client of a request has gone, or its deadline has passed. *waits: K/V of the
 * request is being moved; it counts as gone from now on, and its blocks are free when the move has
 * ended. */
int tiering_leave(struct tiering *tiering, struct replica *replica, struct live_request *r,
                  enum ifl_status status, bool *waits, struct ifl_error *error);

#endif
