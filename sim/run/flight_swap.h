/* Swaps while steps run (serving.swap: overlap; replica_swap.c): there is a link in each direction
 * between a replica and its host, which copies one request after the other. */
#ifndef SIM_RUN_FLIGHT_SWAP_H
#define SIM_RUN_FLIGHT_SWAP_H

#include "run/flight.h"

struct loop;
struct swapping;

/* Returns NULL, with *error set, on failure. The loop is borrowed until swapping_destroy. */
struct swapping *swapping_create(struct loop *loop, struct ifl_error *error);
void swapping_destroy(struct swapping *swapping);

/* Returns the next time at which a copy ends. */
int64_t swapping_next_ns(const struct swapping *swapping);
/* Handles the copies that have ended by now. */
int swapping_end(struct swapping *swapping, struct ifl_error *error);
/* Call them when the replica has made a plan, and when a step of it has ended. */
int swapping_hear_plan(struct swapping *swapping, struct replica *replica, struct ifl_error *error);
void swapping_hear_step(struct swapping *swapping, const struct replica *replica,
                        const struct ifl_done *done);
/* Call it when the client of a request has gone, or its deadline has passed. *waits: the request is
 * being copied, counts as gone from now on, and its blocks are free when the copy has ended. */
int swapping_leave(struct swapping *swapping, struct replica *replica, struct live_request *r,
                   enum ifl_status status, bool *waits, struct ifl_error *error);

#endif
