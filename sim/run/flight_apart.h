/* Functions that flight_apart.c and flight_news.c share. */
#ifndef SIM_RUN_FLIGHT_APART_H
#define SIM_RUN_FLIGHT_APART_H

#include "run/flight_loop.h"

/* Returns when the load of the replica may change next, provided that no request comes or leaves
 * early. Plans come after arrivals of the same time, hence the 1 ns. */
static inline int64_t apart_next_change_ns(const struct lone *lone)
{
    if (lone->end_ns != IFL_NEVER)
        return lone->end_ns;
    const int64_t wake_ns = event_next_ns(&lone->wakes);
    const int64_t due_ns = ifl_min(lone->due_ns, wake_ns);
    return due_ns == IFL_NEVER ? IFL_NEVER : due_ns + 1;
}

/* True if the router knows how many requests the replica has, those sent to it included, at at_ns.
 */
static inline bool apart_knows_count(const struct lone *lone, int64_t at_ns)
{
    return !lone->stale && at_ns < lone->count_ns;
}

/* Simulates the replica up to until_ns, ends of steps at that time included, and lets arrivals
 * until joined_ns join, which must not be later. Returns 0 or the code of `error`. */
int apart_reach(struct loop *loop, uint32_t number, int64_t until_ns, int64_t joined_ns,
                struct ifl_error *error);

/* ---- flight_news.c ---- */

/* With old news: brings the loads of that replica, or of all (ROUTING_ALL), to what the router
 * knows at now_ns. */
int apart_hear(struct loop *loop, uint32_t number, enum routing_look look, struct ifl_error *error);
/* With old news: from now on reports of all replicas are taken together, when they are due. Does
 * nothing on a second call. */
int apart_take_news(struct loop *loop, struct ifl_error *error);
/* Gives the router the reports that have arrived by now, after the ends of steps and the leaving
 * requests of that time. Requires apart_take_news. */
int apart_hear_reports(struct loop *loop, struct ifl_error *error);

#endif
