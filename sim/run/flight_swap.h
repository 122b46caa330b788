/* Swaps beside steps (serving.swap: overlap; replica_swap.c): a link in each direction between a
 * replica and its host, on which requests go one after the other. */
#ifndef SIM_RUN_FLIGHT_SWAP_H
#define SIM_RUN_FLIGHT_SWAP_H

#include "run/flight.h"

struct loop;
struct swapping;

/* NULL and *error on failure. Everything is borrowed until swapping_destroy. */
struct swapping *swapping_create(struct loop *loop, struct ifl_error *error);
void swapping_destroy(struct swapping *swapping);

/* When something has come next. */
int64_t swapping_next_ns(const struct swapping *swapping);
/* What has come by now. */
int swapping_end(struct swapping *swapping, struct ifl_error *error);
/* The replica has made a plan; a step of it has ended. */
int swapping_hear_plan(struct swapping *swapping, struct replica *replica, struct ifl_error *error);
void swapping_hear_step(struct swapping *swapping, const struct replica *replica,
                        const struct ifl_done *done);
/* The client of a request has gone, or its time is up. *waits: it is on its way, counts as gone
 * from now on, and its blocks are free when it has come. */
int swapping_leave(struct swapping *swapping, struct replica *replica, struct live_request *r,
                   enum ifl_status status, bool *waits, struct ifl_error *error);

#endif
