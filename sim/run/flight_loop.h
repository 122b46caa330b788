/* The loop of a flight: its state, and what flight.c and flight_arrive.c share. */
#ifndef SIM_RUN_FLIGHT_LOOP_H
#define SIM_RUN_FLIGHT_LOOP_H

#include "inflight/minmax.h"

#include "base/slots.h"
#include "base/tournament.h"
#include "fleet/routing.h"
#include "run/carrier.h"
#include "run/flight.h"
#include "run/flight_mail.h"
#include "run/flight_migrate.h"
#include "run/flight_moves.h"
#include "run/flight_swap.h"
#include "run/flight_tiers.h"
#include "run/lockstep.h"

/* Requests with a known time to leave (flight_leave.c). */
struct departures {
    struct event_heap at; /* payload: a slot */
    struct departure *of; /* [slots.n] */
    struct slots slots;
};

/* Durations of the committed step and of some that may follow it, of which `at` have been used. */
struct outlook {
    size_t n, at;
    int64_t duration_ns[REPLICA_MAX_STRETCH];
};

/* Ends of steps of a replica that are noted, so that it need not be looked at before the last of
 * them. */
enum { APART_ENDS_AHEAD = 16 };

/* A replica that flies apart from the others (flight_apart.c). */
struct lone {
    int64_t end_ns;          /* of the committed step; IFL_NEVER: none is under way */
    int64_t due_ns;          /* of the plan that is due; IFL_NEVER: none is */
    int64_t last_ns;         /* of its last event, or of the last request that joined */
    int64_t heard_ns;        /* old news: the router knows its load as of then */
    int64_t count_ns;        /* it has as many requests, and in its mailbox, until then; where
                                loop.follows_counts */
    struct event_heap wakes; /* its own */
    struct mailbox mailbox;  /* requests that were sent to it, and that it does not have yet */
    bool stale;              /* it has flown since its load was noted */
    uint32_t n_ends;
    int64_t ends_ns[APART_ENDS_AHEAD]; /* of the steps behind the one under way, if nothing comes */
};

struct place;

/* What the loop keeps while it runs. */
struct loop {
    struct flight *flight;
    struct routing routing;
    uint32_t *due, *was_due; /* [n_due] replicas to plan; those that are being planned */
    uint32_t n_due;
    bool *held;              /* [replicas] the committed step waits for K/V */
    uint32_t n_busy;         /* replicas with a step at the executor */
    bool sees_ahead;         /* steps may end without having been submitted */
    bool rotates;            /* steps of a pipeline may begin again without a plan */
    bool one_pool;           /* open to any request that fits, without a door that may be closed */
    uint64_t open_pools;     /* bits of those that the router may send to; 0: any */
    uint64_t n_untold;       /* requests that have ended, for the progress line */
    struct event_heap wakes; /* payload: the replica */
    struct departures departures;
    struct place *places; /* [rows] of requests from outside (flight_outside.c); NULL: none come */
    bool open;            /* more may come */
    bool has_stamped;     /* some have come */
    struct carried carried;
    bool carries;     /* K/V moves beside steps, by moves, migrating, swapping or tiering */
    bool tells_steps; /* more happens as a step ends than that requests leave */
    struct lockstep lockstep;
    struct moves *moves;            /* NULL: requests stay where they are */
    struct migrating *migrating;    /* NULL: running requests stay where they are */
    struct swapping *swapping;      /* NULL: swaps are part of steps */
    struct tiering *tiering;        /* NULL: there are no tiers below the device */
    struct lone *lone;              /* [replicas]; NULL: they fly together */
    struct outlook outlook;         /* of the one that flies */
    struct mail mail;               /* what is in the mailboxes of all of them */
    struct tournament lone_changes; /* of replicas, by when their loads may change next */
    int64_t counts_heard_ns;        /* old news: the router knows all counts as of then */
    bool follows_counts;            /* the router asks for numbers of requests */
    bool follows_loads;             /* lone_changes is kept: the router asks for the least load */
    bool follows_caches;            /* ... as of each step: the router asks what all caches hold */
    bool takes_news;                /* old ones of all replicas at a time, as they fall due */
    bool shares_pipelines;          /* some replicas are virtual engines */
    bool asks_held; /* something has happened since those at the gateway were last asked about */
    int64_t now_ns;
};

static inline void loop_tell_progress(struct loop *loop)
{
    if (loop->flight->n_ended)
        atomic_fetch_add_explicit(loop->flight->n_ended, loop->n_untold, memory_order_relaxed);
    loop->n_untold = 0;
}

/* Adds many at once if requests end fast, in virtual time: an atomic addition waits for all earlier
 * writes. */
static inline void loop_count_ended(struct loop *loop, uint64_t n)
{
    loop->n_untold += n;
    if (loop->n_untold >= 256 || !loop->flight->executor->durations)
        loop_tell_progress(loop);
}

/* A plan of the replica, which flies apart, is due now, unless a step is under way. */
void apart_fall_due(struct loop *loop, const struct replica *replica);

static inline void loop_fall_due(struct loop *loop, struct replica *replica)
{
    if (IFL_RARE(loop->lone != NULL)) {
        apart_fall_due(loop, replica);
        return;
    }
    if (replica->wakes.due || replica->in_flight.busy || replica->moving.n_before > 0 ||
        lockstep_flies(&loop->lockstep, replica->fixed.number))
        return;
    wakes_set_due(&replica->wakes, true);
    loop->due[loop->n_due++] = replica->fixed.number;
}

/* The replica has changed between plans: it is to plan again, and its load is another one. */
static inline void loop_note_change(struct loop *loop, struct replica *replica)
{
    loop_fall_due(loop, replica);
    routing_note(&loop->routing, replica, loop->now_ns);
}

/* ---- steps that follow one another without an event ---- */

/* False: only submitting the step tells its duration, or why there is none. */
static inline bool loop_look_ahead(const struct flight *flight, const struct replica *replica,
                                   int64_t until_ns, struct outlook *outlook)
{
    if (outlook->at == outlook->n) {
        outlook->at = 0;
        outlook->n = flight->executor->durations(flight->executor_self, &replica->in_flight.desc,
                                                 replica_stretch_steps(replica, until_ns),
                                                 outlook->duration_ns);
    }
    return outlook->n > 0 &&
           outlook->duration_ns[outlook->at] <= IFL_LAST_NS - replica->in_flight.desc.start_ns;
}

/* Ends the committed step, which ends before until_ns, and as many like it as it can. 1: the one
 * behind them is committed; 0: a plan is due. */
static inline int loop_coast(struct loop *loop, struct replica *replica,
                             const struct ifl_done *done, int64_t until_ns, struct outlook *outlook,
                             struct ifl_error *error)
{
    struct flight *flight = loop->flight;
    const int n = replica_coast(replica, done, outlook->duration_ns + outlook->at,
                                outlook->n - outlook->at, until_ns, flight->recorder, error);
    loop->now_ns = replica->view.now_ns;
    if (IFL_RARE(n < 0))
        return n;
    outlook->at += (size_t)n;
    flight->n_repeats += (uint64_t)n - 1;
    if (!replica_next_tick(replica, loop->now_ns))
        return 0;
    flight->n_repeats++;
    return 1;
}

/* The replica's last step, committed, goes to the executor. */
static inline int loop_submit(const struct flight *flight, struct replica *replica,
                              const struct ifl_step_desc *desc, struct ifl_error *error)
{
    const int rc = flight->executor->submit(flight->executor_self, desc, error);
    if (rc == 0 && IFL_RARE(replica_overlaps(replica)) && flight->executor->begins)
        replica_note_begin(replica,
                           flight->executor->begins(flight->executor_self, replica->fixed.number));
    return rc;
}

/* ---- flight_held.c: steps that begin when K/V has come ---- */

/* True: the step that is committed begins only then, and loop_let_step_go submits it. */
bool loop_hold_step(struct loop *loop, const struct replica *replica);
/* Something has come: a step that waits for nothing else begins now. */
int loop_let_step_go(struct loop *loop, struct replica *replica, struct ifl_error *error);

/* ---- flight.c ---- */

/* Plans until a step is committed: 1; or until nothing changes any more: 0. A plan that only
 * preempts or rejects is followed by another at the same time. */
int loop_commit(struct loop *loop, struct replica *replica, struct ifl_error *error);
/* No event is left. At each replica with requests, one that is refused is dropped, and a plan is
 * due for the others; then one that is held back. 0: no request is left. */
int loop_give_up(struct loop *loop, struct ifl_error *error);
int loop_check_stop(const struct loop *loop, struct ifl_error *error);

/* ---- flight_open.c ---- */

/* What a run takes when it begins: its flight and the arrays of replicas are there, or NULL for
 * want of memory. loop_close follows also after an error. */
int loop_open(struct loop *loop, struct ifl_error *error);
void loop_close(struct loop *loop);

/* ---- flight_end.c ---- */

/* Once the loop has all its parts: whether an end of a step concerns one beside the replica. */
bool loop_tells_steps(const struct loop *loop);
/* As the run ends: a breach of the contract behind the last plan. */
int loop_check_contract(const struct loop *loop, struct ifl_error *error);
/* Records the requests that have left the replica, and tells the workload and the router. */
int loop_report_gone(struct loop *loop, struct replica *replica, struct ifl_error *error);
/* The replica has changed, and some may have left it: a step that waited for their K/V begins. */
int loop_note_gone(struct loop *loop, struct replica *replica, struct ifl_error *error);
/* Records one of them, and tells of it. */
int loop_report_one(struct loop *loop, const struct replica *replica, const struct live_request *r,
                    struct ifl_error *error);
/* The same while its K/V is still on its way; it is not told of again. */
int loop_report_early(struct loop *loop, const struct replica *replica, struct live_request *r,
                      struct ifl_error *error);
/* The step in flight has ended. */
int loop_end(struct loop *loop, struct replica *replica, const struct ifl_done *done,
             struct ifl_error *error);

/* The stages that it has passed. */
int loop_record_stages(const struct loop *loop, const struct replica *replica,
                       const struct ifl_done *done, struct ifl_error *error);

/* ---- flight_rotate.c ---- */

/* Once the loop has all its parts: whether the only replica may rotate (replica/rotation.h). */
bool loop_may_rotate(const struct loop *loop);
/* The replica has a new step in flight: lets its steps end and begin again before until_ns, as long
 * as that takes no plan. 0, or an error. */
int loop_rotate(struct loop *loop, struct replica *replica, int64_t until_ns,
                struct ifl_error *error);

/* ---- flight_apart.c ---- */

/* True if the flight's replicas may fly apart, each up to the next event that concerns it. */
bool apart_flies(const struct flight *flight);
/* They do so from now on. */
int apart_take_off(struct loop *loop, struct ifl_error *error);
/* All fly up to now, and together from now on. */
int apart_land(struct loop *loop, struct ifl_error *error);
/* 0: all have flown to the end; 1: they have landed, and plans are due. */
int apart_run(struct loop *loop, struct ifl_error *error);
/* Gives back their memory. */
void apart_end(struct loop *loop);
/* Takes the replica through what happens to it before until_ns, and through the end of a step at
 * that time. Where the replicas fly together, it is there already. */
int apart_bring(struct loop *loop, uint32_t number, int64_t until_ns, struct ifl_error *error);
/* True if a request that is sent to a replica may wait in its mailbox. */
bool apart_takes_mail(const struct loop *loop);
/* Puts it there. */
int apart_post(struct loop *loop, uint32_t number, const struct arrival *a,
               struct ifl_error *error);
/* A request that may leave early is about to be sent to a replica. */
int apart_take_news(struct loop *loop, struct ifl_error *error);
static inline int loop_bring(struct loop *loop, uint32_t number, int64_t until_ns,
                             struct ifl_error *error)
{
    return IFL_RARE(loop->lone != NULL) ? apart_bring(loop, number, until_ns, error) : 0;
}

/* ---- flight_leave.c ---- */

/* When the next request leaves before it is answered; IFL_NEVER: none will. */
int64_t loop_next_departure_ns(struct loop *loop);
/* Notes when the request leaves, if ever, and where it is. r: at that replica; NULL: it is held at
 * the gateway. */
int loop_note_departure(struct loop *loop, const struct arrival *a, uint32_t replica,
                        struct live_request *r, struct ifl_error *error);
/* The same of a request that is at that replica, or held, now. */
int loop_note_leaving(struct loop *loop, int64_t at_ns, uint64_t serial, uint32_t replica,
                      struct live_request *r, struct ifl_error *error);
/* Another record of the request, at that replica, leaves in its place. */
void loop_move_departure(struct loop *loop, const struct live_request *from, uint32_t replica,
                         struct live_request *to);
/* The request of loop_next_departure_ns leaves. */
int loop_let_one_leave(struct loop *loop, struct ifl_error *error);
/* All requests that are due leave. */
int loop_let_leave(struct loop *loop, struct ifl_error *error);
void loop_drop_departures(struct loop *loop);

/* ---- flight_outside.c ---- */

/* Requests come from flight->source, if it is there. */
int outside_open(struct loop *loop, struct ifl_error *error);
/* Asks the source: clients that have gone leave, and the next request is the workload's next. */
int outside_look(struct loop *loop, struct ifl_error *error);
/* The request is at that replica; r NULL: it is held. Its client may have gone since it arrived:
 * the arrival then says when. */
void outside_note_place(struct loop *loop, struct arrival *a, uint32_t replica,
                        struct live_request *r);
/* Another record of the request, at that replica, goes on with it. */
void outside_move_place(struct loop *loop, uint32_t replica, struct live_request *r);
/* The tokens of a step that has ended. */
void outside_tell_step(const struct loop *loop, const struct replica *replica,
                       const struct ifl_done *done);
void outside_tell_end(const struct flight *flight, size_t row,
                      const struct ifl_request_record *record, int64_t now_ns);

/* ---- flight_arrive.c ---- */

/* Opens the pools that can have the request to the router. */
void loop_open_pools(struct loop *loop, const struct arrival *a);
/* True if a pool need only be asked whether a request fits its replicas. */
bool loop_has_one_pool(const struct flight *flight);
/* The workload's next request arrives: it is turned away, or goes where the router says. */
int loop_let_one_arrive(struct loop *loop, struct ifl_error *error);

/* A request turned away at now_ns is recorded with that status. */
int loop_turn_away(struct loop *loop, const struct arrival *a, int64_t now_ns,
                   enum ifl_status status, struct ifl_error *error);

/* The gateway and the router are asked again about the requests that are held back, in the order of
 * the gateway (cluster.gateway.order). */
int loop_ask_held(struct loop *loop, struct ifl_error *error);
/* No event is left after which the router would be asked again: drops the first request that it
 * holds back. 1: it has; 0: it holds none. */
int loop_give_up_held(struct loop *loop, struct ifl_error *error);

/* Requests leave and arrive, in order of time, until now_ns. */
static inline int loop_let_come_and_go(struct loop *loop, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0) {
        const int64_t arrival_ns = workload_next_ns(loop->flight->workload);
        const int64_t until_ns = ifl_min(arrival_ns, loop->now_ns);
        if (IFL_RARE(loop->departures.at.n > 0) && loop_next_departure_ns(loop) <= until_ns)
            rc = loop_let_one_leave(loop, error);
        else if (arrival_ns <= loop->now_ns)
            rc = loop_let_one_arrive(loop, error);
        else
            break;
    }
    return rc;
}

#endif
