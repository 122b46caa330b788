/* K/V of waiting requests that moves from a lower tier to the first one before their turn comes.
 *
 * A replica has a line of such requests for each tier below the first, in the order of their
 * arrival. The K/V that the first request of a line lacks comes in batches, one after the other
 * (SGLang 0.5.23, managers/cache_controller.py: a thread, and STORAGE_BATCH_SIZE pages a call). A
 * batch can be found in the first tier once it has come. If a request leaves the queue, or starts
 * with what has come, the batch under way is its last one, and is dropped. */
#ifndef SIM_RUN_FLIGHT_PREFETCH_H
#define SIM_RUN_FLIGHT_PREFETCH_H

#include "run/flight.h"

struct loop;
struct prefetching;

/* NULL and *error on failure. Everything is borrowed until prefetching_destroy. */
struct prefetching *prefetching_create(struct loop *loop, struct ifl_error *error);
void prefetching_destroy(struct prefetching *prefetching);

/* When something comes next. */
int64_t prefetching_next_ns(const struct prefetching *prefetching);
/* What has come by now. */
int prefetching_end(struct prefetching *prefetching, struct ifl_error *error);
/* r has joined the replica, which has tiers that are prefetched. */
int prefetching_hear_join(struct prefetching *prefetching, struct replica *replica,
                          struct live_request *r, struct ifl_error *error);

#endif
