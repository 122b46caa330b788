/* A flight with a source: requests arrive, and clients leave, while the flight is under way. */
#include "run/executor_paced.h"
#include "run/flight_loop.h"

#include "base/array.h"

/* Where the request of a row is. */
struct place {
    uint64_t serial;
    struct live_request *r; /* NULL: held at the gateway, or still in front of it */
    uint32_t replica;
    bool arrived;   /* the router has been asked about it */
    int32_t n_told; /* tokens of each of its answers */
};

int outside_open(struct loop *loop, struct ifl_error *error)
{
    const struct source *source = loop->flight->source;
    if (!source)
        return 0;
    loop->places = calloc(source->trace->n + 1, sizeof *loop->places);
    if (!loop->places)
        return ifl_fail_nomem(error);
    loop->open = true;
    source->ops->begin(source->self, loop->flight);
    return 0;
}

void outside_note_place(struct loop *loop, struct arrival *a, uint32_t replica,
                        struct live_request *r)
{
    struct place *place = &loop->places[a->row];
    a->said.abort_ns = loop->flight->workload->trace->abort_ns[a->row];
    place->serial = a->serial;
    place->r = r;
    place->replica = replica;
    place->arrived = true;
}

void outside_move_place(struct loop *loop, uint32_t replica, struct live_request *r)
{
    struct place *place = &loop->places[r->row];
    if (place->serial != r->pub.serial)
        return;
    place->r = r;
    place->replica = replica;
}

/* Behind all that the loop has handled: nothing, when the first request comes. */
static int64_t stamp(struct loop *loop, size_t row, enum source_says what)
{
    const struct source *source = loop->flight->source;
    const int64_t clock_ns = source->ops->now(source->self);
    const int64_t at_ns = ifl_max(clock_ns, loop->now_ns + loop->has_stamped);
    loop->has_stamped = true;
    source->ops->stamp(source->self, row, what, at_ns);
    return at_ns;
}

static int let_go(struct loop *loop, size_t row, struct ifl_error *error)
{
    const struct place *place = &loop->places[row];
    const int64_t at_ns = stamp(loop, row, SOURCE_LEAVES);
    if (!place->arrived) {
        workload_leave_front(loop->flight->workload, row, at_ns);
        return 0;
    }
    return loop_note_leaving(loop, at_ns, place->serial, place->replica, place->r, error);
}

int outside_look(struct loop *loop, struct ifl_error *error)
{
    const struct source *source = loop->flight->source;
    int rc = 0;
    while (rc == 0 && loop->open && !workload_is_offered(loop->flight->workload)) {
        size_t row = 0;
        switch (source->ops->take(source->self, &row, error)) {
        case SOURCE_ARRIVAL:
            loop->places[row] = (struct place){0};
            workload_offer(loop->flight->workload, row, stamp(loop, row, SOURCE_ARRIVAL));
            break;
        case SOURCE_LEAVES:
            rc = let_go(loop, row, error);
            break;
        case SOURCE_CLOSED:
            loop->open = false;
            break;
        case SOURCE_EMPTY:
            return 0;
        case SOURCE_FAILED:
            return error->code;
        }
    }
    return rc;
}

/* ---- calls of the source ---- */

static void tell_answers(const struct loop *loop, const struct replica *replica,
                         struct live_request *r)
{
    const struct flight *flight = loop->flight;
    const struct source *source = flight->source;
    struct place *place = &loop->places[r->row];
    const int32_t n_out = ifl_n_out(&r->pub);
    for (; place->n_told < n_out; place->n_told++)
        for (int32_t seq = 0; seq < r->pub.n_seqs; seq++) {
            struct source_token token = {
                r->row, seq, place->n_told, -1, replica->fixed.number, loop->now_ns, NULL};
            if (flight->executor->token)
                token.id =
                    flight->executor->token(flight->executor_self, &r->pub, seq, place->n_told);
            if (flight->executor->logprobs && place->n_told + 1 == n_out)
                token.logprobs = flight->executor->logprobs(
                    flight->executor_self, replica->fixed.number, &r->pub, seq, token.id);
            source->ops->token(source->self, &token);
        }
}

/* The first answer of a group stands for all of them, which go on in lockstep. */
void outside_tell_step(const struct loop *loop, const struct replica *replica,
                       const struct ifl_done *done)
{
    const struct source *source = loop->flight->source;
    for (size_t i = 0; i < replica->in_flight.desc.n_work; i++) {
        const struct ifl_work *work = &replica->in_flight.work[i];
        if (work->request && work->seq == 0)
            tell_answers(loop, replica, live(work->request));
    }
    source->ops->step(source->self, replica, done);
}

void outside_tell_end(const struct flight *flight, size_t row,
                      const struct ifl_request_record *record, int64_t now_ns)
{
    if (IFL_RARE(flight->source != NULL))
        flight->source->ops->ended(flight->source->self, row, record, now_ns);
}
