/* The loop of a flight: its state, and what flight.c and flight_arrive.c share. */
#ifndef SIM_RUN_FLIGHT_LOOP_H
#define SIM_RUN_FLIGHT_LOOP_H

#include "fleet/routing.h"
#include "run/flight.h"

/* What the loop keeps while it runs. */
struct loop {
    struct flight *flight;
    struct routing routing;
    uint32_t *due; /* [n_due] replicas to plan */
    uint32_t n_due;
    uint32_t n_busy;         /* replicas with a step at the executor */
    bool sees_ahead;         /* steps may end without having been submitted */
    uint64_t n_untold;       /* requests that have ended, for the progress line */
    struct event_heap wakes; /* payload: the replica */
    bool asks_held; /* requests have left since those at the gateway were last asked about */
    int64_t now_ns;
};

static inline void loop_tell_progress(struct loop *loop)
{
    if (loop->flight->n_ended)
        atomic_fetch_add_explicit(loop->flight->n_ended, loop->n_untold, memory_order_relaxed);
    loop->n_untold = 0;
}

/* Adds many at once if requests end fast: an atomic addition waits for all earlier writes. */
static inline void loop_count_ended(struct loop *loop, uint64_t n)
{
    loop->n_untold += n;
    if (loop->n_untold >= 256 || !loop->sees_ahead)
        loop_tell_progress(loop);
}

static inline void loop_fall_due(struct loop *loop, struct replica *replica)
{
    if (replica->wakes.due || replica->in_flight.busy)
        return;
    wakes_set_due(&replica->wakes, true);
    loop->due[loop->n_due++] = replica->fixed.number;
}

/* ---- flight_arrive.c ---- */

/* The workload's next request arrives: it is turned away, or goes where the router says. */
int loop_let_one_arrive(struct loop *loop, struct ifl_error *error);

static inline int loop_let_arrive(struct loop *loop, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0 && workload_next_ns(loop->flight->workload) <= loop->now_ns)
        rc = loop_let_one_arrive(loop, error);
    return rc;
}

/* The router is asked again about the requests that it holds back, in order of arrival. */
int loop_ask_held(struct loop *loop, struct ifl_error *error);
/* No event is left after which the router would be asked again: drops the first request that it
 * holds back. 1: it has; 0: it holds none. */
int loop_give_up_held(struct loop *loop, struct ifl_error *error);

#endif
