/* When the loop plans for a replica next: whether a plan is due, and the wakes that empty plans
 * have asked for. */
#ifndef SIM_REPLICA_WAKES_H
#define SIM_REPLICA_WAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/time.h"

struct wakes {
    bool due;              /* the loop has scheduled a plan of this replica */
    int64_t wake_ns;       /* time for which an empty plan has asked for another plan; IFL_NEVER:
                              none */
    int64_t wake_asked_ns; /* the last wake_ns for which the loop has an event */
    uint64_t wake_step;    /* the step at the last wake */
    uint64_t n_vain_wakes; /* wakes in a row without any event at this replica in between */
};

static inline void wakes_begin(struct wakes *wakes)
{
    wakes->wake_ns = wakes->wake_asked_ns = IFL_NEVER;
}

static inline void wakes_set_due(struct wakes *wakes, bool due)
{
    wakes->due = due;
}

/* Call it when a plan begins: it has asked for no wake yet. */
static inline void wakes_open(struct wakes *wakes)
{
    wakes->wake_ns = IFL_NEVER;
}

/* The plan asks for a wake at at_ns; the earliest counts. */
static inline void wakes_ask(struct wakes *wakes, int64_t at_ns)
{
    if (at_ns < wakes->wake_ns)
        wakes->wake_ns = at_ns;
}

/* The loop has an event for wake_ns. */
static inline void wakes_note_event(struct wakes *wakes)
{
    wakes->wake_asked_ns = wakes->wake_ns;
}

/* Call it at an event at this replica: the wakes before it were not in vain. */
static inline void wakes_end_vain(struct wakes *wakes)
{
    wakes->n_vain_wakes = 0;
}

/* Counts a wake. Returns how many wakes in a row were in vain, this one included. moved: the plan
 * has changed something. */
static inline uint64_t wakes_count(struct wakes *wakes, uint64_t step, bool moved)
{
    if (moved || step != wakes->wake_step)
        wakes->n_vain_wakes = 0;
    wakes->wake_step = step;
    return ++wakes->n_vain_wakes;
}

#endif
