/* State that the engines of an executor share: a clock, one lock, and the tokens of requests.
 *
 * Ends of steps are stamped under the same lock under which the loop reads the clock. So no end
 * that the loop takes is earlier than a time that it has read before. */
#ifndef SIM_RUN_ENGINE_HUB_H
#define SIM_RUN_ENGINE_HUB_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/source.h"
#include "run/token_ids.h"

struct engine_hub {
    const volatile sig_atomic_t *stop;
    const struct source *source; /* NULL: all requests are known */
    struct token_ids ids;
    int64_t epoch_ns; /* time 0 of the run */
    bool has_locks;
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t submitted, ended; /* submitted: there is work; ended: the loop may have
                                        something to take */
    bool closing, has_failed;
};

/* Creates the hub. Deadlines of its condition variables follow the clock that the loop reads.
 * Returns 0 or IFL_E_NOMEM. */
int engine_hub_create(struct engine_hub *hub);
void engine_hub_destroy(struct engine_hub *hub);
/* Time 0 is now. */
void engine_hub_begin(struct engine_hub *hub);
int64_t engine_hub_now(const struct engine_hub *hub);
/* Wakes the loop and work that waits, because something has ended. Call it under the lock. */
void engine_hub_tell(struct engine_hub *hub);
/* Waits until at_ns, until something has ended, or for a short while. Call it under the lock. */
void engine_hub_wait(struct engine_hub *hub, int64_t now_ns, int64_t at_ns);

#endif
