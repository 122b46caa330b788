/* Writes the view of a replica (struct ifl_view, policy.h) as plans begin and steps end. */
#ifndef SIM_REPLICA_VIEW_H
#define SIM_REPLICA_VIEW_H

#include "inflight/policy.h"

#include "replica/accounts.h"
#include "replica/here.h"
#include "replica/moving.h"

static inline void view_set_now(struct ifl_view *view, int64_t now_ns)
{
    view->now_ns = now_ns;
}

/* A plan begins. */
static inline void view_open(struct ifl_view *view, const struct here *here,
                             const struct accounts *kv)
{
    view->n_running = here->running.n;
    view->n_waiting = here->waiting.n;
    view->n_swapped = here->n_swapped;
    view->n_free_blocks = kv->device.n_free;
    view->n_free_host_blocks = kv->host.n_free;
}

static inline void view_open_moving(struct ifl_view *view, const struct moving *moving)
{
    view->n_moving = moving->n;
    view->n_moving_blocks = moving->n_blocks;
    view->n_loaded = moving->n_loaded;
    view->n_loaded_blocks = moving->n_loaded_blocks;
}

/* Counts a plan that has led to no step so far. */
static inline void view_try(struct ifl_view *view)
{
    view->n_tries++;
}

static inline void view_submit(struct ifl_view *view)
{
    view->n_tries = 0;
    view->n_in_flight++;
    view->n_ended_blocks = 0;
}

static inline void view_set_slot(struct ifl_view *view, int32_t slot)
{
    view->slot = slot;
}

/* Sets the number of requests on the device that the plan is shown. */
static inline void view_count_shown(struct ifl_view *view, size_t n)
{
    view->n_running = n;
}

/* n steps have ended, the last one at end_ns. */
static inline void view_end(struct ifl_view *view, size_t n_steps, int64_t end_ns)
{
    ifl_assert(n_steps > 0 && view->n_in_flight > 0);
    view->n_in_flight--;
    view->n_tries = 0; /* counts also plans made while several steps are in flight */
    view->step += n_steps;
    view->now_ns = end_ns;
}

static inline void view_end_prefill(struct ifl_view *view, int64_t duration_ns)
{
    view->last_prefill_ns = duration_ns;
}

/* Adds n blocks that ended requests have given back. */
static inline void view_free_blocks(struct ifl_view *view, int32_t n)
{
    view->n_ended_blocks += n;
}

#endif
