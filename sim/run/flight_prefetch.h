/* Prefetching: moves K/V of waiting requests from a lower tier to the first tier before a plan
 * reaches the requests.
 *
 * A replica has a queue of such requests for each tier below the first, in the order of their
 * arrival. The K/V that the first request of a queue lacks is moved in batches, one after the other
 * (SGLang 0.5.23, managers/cache_controller.py: a thread, and STORAGE_BATCH_SIZE pages a call). A
 * batch can be found in the first tier once it has arrived. If a request leaves the waiting queue,
 * or starts with what has arrived, the batch under way is its last one, and is dropped. */
#ifndef SIM_RUN_FLIGHT_PREFETCH_H
#define SIM_RUN_FLIGHT_PREFETCH_H

#include "run/flight.h"

struct loop;
struct prefetching;

/* Returns NULL, with *error set, on failure. The loop is borrowed until prefetching_destroy. */
struct prefetching *prefetching_create(struct loop *loop, struct ifl_error *error);
void prefetching_destroy(struct prefetching *prefetching);

/* Returns the next time at which a batch arrives. */
int64_t prefetching_next_ns(const struct prefetching *prefetching);
/* Handles the batches that have arrived by now. */
int prefetching_end(struct prefetching *prefetching, struct ifl_error *error);
/* Drops the batches under way for requests of the replica that no longer wait for them. Each one
 * occupies its link until it would have arrived. */
void prefetching_drop_left(struct prefetching *prefetching, struct replica *replica);
/* Call it when r has joined the replica, which must have a tier to prefetch from. */
int prefetching_hear_join(struct prefetching *prefetching, struct replica *replica,
                          struct live_request *r, struct ifl_error *error);

#endif
