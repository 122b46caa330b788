/* What flight_apart.c and flight_news.c share. */
#ifndef SIM_RUN_FLIGHT_APART_H
#define SIM_RUN_FLIGHT_APART_H

#include "run/flight_loop.h"

/* When the load of the replica may change next without a request that comes or leaves early. Plans
 * come behind arrivals of the same time. */
static inline int64_t apart_next_change_ns(const struct lone *lone)
{
    if (lone->end_ns != IFL_NEVER)
        return lone->end_ns;
    const int64_t wake_ns = event_next_ns(&lone->wakes);
    const int64_t due_ns = ifl_min(lone->due_ns, wake_ns);
    return due_ns == IFL_NEVER ? IFL_NEVER : due_ns + 1;
}

/* The router knows how many requests the replica has, and is sent, at at_ns. */
static inline bool apart_knows_count(const struct lone *lone, int64_t at_ns)
{
    return !lone->stale && at_ns < lone->count_ns;
}

/* Takes the replica through what happens to it before until_ns, the end of a step at that time, and
 * arrivals until joined_ns, which is not later. */
int apart_reach(struct loop *loop, uint32_t number, int64_t until_ns, int64_t joined_ns,
                struct ifl_error *error);

/* ---- flight_news.c ---- */

/* The router hears, of old news, what it knows by now of that replica, or of all (ROUTING_ALL). */
int apart_hear(struct loop *loop, uint32_t number, enum routing_look look, struct ifl_error *error);
/* Where news are old: from now on reports of all replicas are taken together, as they fall due. */
int apart_take_news(struct loop *loop, struct ifl_error *error);
/* The router hears the reports that have come by now, behind the ends of steps and requests that
 * leave at that time. Once they are taken. */
int apart_hear_reports(struct loop *loop, struct ifl_error *error);

#endif
