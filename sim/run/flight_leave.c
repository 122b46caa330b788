/* Requests that leave a flight before they have their answer, at a time that is known when they
 * arrive. */
#include "run/flight_loop.h"

/* A request that is to leave, at a replica, or held at the gateway. */
struct departure {
    int64_t at_ns;
    int64_t expires_ns;     /* its deadline, if that is later */
    struct live_request *r; /* NULL: held */
    uint64_t serial;        /* r is another request by now if it has another serial */
    uint32_t replica;
    enum ifl_status status;
};

static bool is_held(const struct routing *routing, uint64_t serial)
{
    return routing_find_held(routing, serial) < routing->n_held;
}

/* True if the request is still where it was when its departure was noted. */
static bool is_there(const struct loop *loop, const struct departure *of)
{
    if (!of->r)
        return is_held(&loop->routing, of->serial);
    return of->r->pub.serial == of->serial && of->r->pub.state != IFL_DONE && !of->r->ended &&
           of->r->left == IFL_FINISHED;
}

static const struct departure *next_departure(const struct loop *loop)
{
    return &loop->departures.of[loop->departures.at.of[0].payload];
}

static struct departure take_departure(struct loop *loop)
{
    struct departures *departures = &loop->departures;
    const uint32_t slot = (uint32_t)event_pop(&departures->at).payload;
    slots_give(&departures->slots, slot);
    return departures->of[slot];
}

int64_t loop_next_departure_ns(struct loop *loop)
{
    while (loop->departures.at.n > 0 && !is_there(loop, next_departure(loop)))
        take_departure(loop);
    return event_next_ns(&loop->departures.at);
}

static int note(struct departures *departures, const struct departure *of, struct ifl_error *error)
{
    if (slots_reserve(&departures->slots, &departures->of, sizeof *departures->of) < 0)
        return ifl_fail_nomem(error);
    const uint32_t slot = slots_take(&departures->slots);
    departures->of[slot] = *of;
    return event_push(&departures->at, of->at_ns, of->serial, slot) < 0 ? ifl_fail_nomem(error) : 0;
}

IFL_APART int loop_note_departure(struct loop *loop, const struct arrival *a, uint32_t replica,
                                  struct live_request *r, struct ifl_error *error)
{
    struct arrival current = *a;
    enum ifl_status status;
    if (loop->places)
        outside_note_place(loop, &current, replica, r);
    const int64_t at_ns = arrival_leaves_ns(&current, &status);
    const struct departure of = {at_ns, arrival_expires_ns(a), r, a->serial, replica, status};
    return at_ns == IFL_NEVER ? 0 : note(&loop->departures, &of, error);
}

int loop_note_leaving(struct loop *loop, int64_t at_ns, uint64_t serial, uint32_t replica,
                      struct live_request *r, struct ifl_error *error)
{
    const struct departure of = {at_ns, IFL_NEVER, r, serial, replica, IFL_ABORTED};
    return note(&loop->departures, &of, error);
}

IFL_APART void loop_move_departure(struct loop *loop, const struct live_request *from,
                                   uint32_t replica, struct live_request *to)
{
    const struct departures *departures = &loop->departures;
    for (uint32_t slot = 0; slot < departures->slots.n; slot++) {
        struct departure *of = &departures->of[slot];
        if (of->r != from || of->serial != to->pub.serial)
            continue;
        of->r = to;
        of->replica = replica;
    }
    if (loop->places)
        outside_move_place(loop, replica, to);
}

/* A client that has its first token may have no reason to leave any more. */
static bool is_content(const struct loop *loop, const struct departure *of)
{
    return of->status == IFL_ABORTED && loop->flight->workload->patience.until_first_token &&
           of->r && of->r->pub.first_token_ns <= of->at_ns - loop->flight->workload->token_ns;
}

/* Its patience is over, and it has what it waited for: what is left is its deadline. */
static int note_deadline(struct loop *loop, struct departure of, struct ifl_error *error)
{
    of.at_ns = of.expires_ns;
    of.status = IFL_TIMED_OUT;
    return of.at_ns == IFL_NEVER ? 0 : note(&loop->departures, &of, error);
}

static int leave_gateway(struct loop *loop, const struct departure *of, struct ifl_error *error)
{
    struct arrival a;
    routing_give_up_held(&loop->routing, of->serial, &a);
    loop->asks_held = true; /* another one is the first of its class */
    return loop_turn_away(loop, &a, of->at_ns, of->status, error);
}

static int leave_replica(struct loop *loop, const struct departure *of, struct ifl_error *error)
{
    struct replica *replica = &loop->flight->replicas[of->replica];
    if (of->r->handover > 0 &&
        moves_leave(loop->moves, replica, of->r, of->status, of->at_ns, error) < 0)
        return error->code;
    bool waits = false;
    if (loop->swapping &&
        swapping_leave(loop->swapping, replica, of->r, of->status, &waits, error) < 0)
        return error->code;
    if (loop->migrating && !waits &&
        migrating_leave(loop->migrating, replica, of->r, of->status, &waits, error) < 0)
        return error->code;
    if (of->r->handover == 0 && loop->tiering && !waits &&
        tiering_leave(loop->tiering, replica, of->r, of->status, &waits, error) < 0)
        return error->code;
    if (of->r->handover == 0 && !waits)
        replica_leave(replica, of->r, of->status, of->at_ns);
    return loop_note_gone(loop, replica, error);
}

IFL_APART int loop_let_one_leave(struct loop *loop, struct ifl_error *error)
{
    const struct departure of = take_departure(loop);
    const int64_t now_ns = loop->now_ns;
    if (of.r && loop_bring(loop, of.replica, of.at_ns, error) < 0)
        return error->code;
    if (!is_there(loop, &of))
        return 0;
    if (is_content(loop, &of))
        return note_deadline(loop, of, error);
    loop->now_ns = of.at_ns;
    const int rc = of.r ? leave_replica(loop, &of, error) : leave_gateway(loop, &of, error);
    loop->now_ns = now_ns;
    return rc;
}

int loop_let_leave(struct loop *loop, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0 && loop_next_departure_ns(loop) <= loop->now_ns)
        rc = loop_let_one_leave(loop, error);
    return rc;
}

void loop_drop_departures(struct loop *loop)
{
    event_heap_destroy(&loop->departures.at);
    free(loop->departures.of);
    slots_destroy(&loop->departures.slots);
}
