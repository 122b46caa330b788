/* Creates the state of a run's loop, and frees it. */
#include <stdlib.h>

#include "run/flight_apart.h"
#include "run/flight_loop.h"
#include "run/flight_migrate.h"
#include "run/flight_swap.h"
#include "run/flight_tiers.h"

/* What carries K/V beside steps. */
static int open_carriers(struct loop *loop, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    if (flight->handover && !(loop->moves = moves_create(loop, error)))
        return error->code;
    if (flight->migration && !(loop->migrating = migrating_create(loop, error)))
        return error->code;
    if (flight->swaps && !(loop->swapping = swapping_create(loop, error)))
        return error->code;
    if (flight->tiers && !(loop->tiering = tiering_create(loop, error)))
        return error->code;
    return 0;
}

int loop_open(struct loop *loop, struct ifl_error *error)
{
    const struct flight *flight = loop->flight;
    const struct routing_options routing = {.replicas = flight->replicas,
                                            .n = flight->n_replicas,
                                            .pools = flight->pools,
                                            .n_pools = flight->n_pools,
                                            .router = flight->router,
                                            .news = flight->news,
                                            .gateway = flight->gateway,
                                            .hands_over = flight->handover != NULL,
                                            .checks = flight->check_steady,
                                            .seed = flight->seed};
    if (!loop->due || !loop->was_due || !loop->held)
        return ifl_fail_nomem(error);
    int rc = routing_create(&loop->routing, &routing, error);
    if (rc == 0)
        rc = lockstep_create(&loop->lockstep, flight->pools, flight->n_pools, error);
    if (rc == 0)
        rc = open_carriers(loop, error);
    if (rc == 0 && apart_flies(flight))
        rc = apart_take_off(loop, error);
    if (rc == 0 && !loop->lone && routing_open_news(&loop->routing) < 0)
        rc = ifl_fail_nomem(error);
    return rc == 0 ? outside_open(loop, error) : rc;
}

void loop_close(struct loop *loop)
{
    lockstep_destroy(&loop->lockstep);
    routing_destroy(&loop->routing);
    event_heap_destroy(&loop->wakes);
    moves_destroy(loop->moves);
    migrating_destroy(loop->migrating);
    swapping_destroy(loop->swapping);
    tiering_destroy(loop->tiering);
    loop_drop_departures(loop);
    free(loop->places);
    apart_end(loop);
    free(loop->due);
    free(loop->was_due);
    free(loop->held);
}
