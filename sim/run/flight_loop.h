/* The event loop of a flight: its state, and the functions that its files (flight*.c) share, one
 * section per file. */
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
    struct event_heap at; /* times to leave; payload: a slot */
    struct departure *of; /* [slots.n] */
    struct slots slots;
};

/* Predicted durations of the committed step and of steps that may follow it; the first `at` have
 * been used. */
struct outlook {
    size_t n, at;
    int64_t duration_ns[REPLICA_MAX_STRETCH];
};

/* How many ends of steps of a replica are noted ahead, so that the replica need not be simulated
 * before the last of them. */
enum { APART_ENDS_AHEAD = 16 };

/* A replica that is simulated apart from the others (flight_apart.c). */
struct lone {
    int64_t end_ns;          /* end of the committed step; IFL_NEVER: no step is in flight */
    int64_t due_ns;          /* time of the next plan; IFL_NEVER: no plan is due */
    int64_t last_ns;         /* time of its last event, or of the last request that joined */
    int64_t heard_ns;        /* with old news: the router knows its load as of this time */
    int64_t count_ns;        /* the number of its requests, those in its mailbox included, stays
                                the same until then; kept if loop.follows_counts */
    struct event_heap wakes; /* wakes of this replica */
    struct mailbox mailbox;  /* requests sent to this replica that have not joined it yet */
    bool stale;              /* the replica has been simulated further since its load was noted */
    uint32_t n_ends;
    int64_t ends_ns[APART_ENDS_AHEAD]; /* ends of the steps after the one in flight, if no request
                                          arrives */
};

struct place;

/* The state of the loop while it runs. */
struct loop {
    struct flight *flight;
    struct routing routing;
    uint32_t *due, *was_due; /* due: [n_due] replicas to plan; was_due: replicas that are being
                                planned */
    uint32_t n_due;
    bool *held;              /* [replicas] the committed step waits for K/V */
    uint32_t n_busy;         /* replicas with a step at the executor */
    bool sees_ahead;         /* durations can be predicted: steps may end without being submitted */
    bool rotates;            /* steps of a pipeline may begin again without a plan */
    bool one_pool;           /* there is one pool; it takes any request that fits and has no door */
    uint64_t open_pools;     /* bit set of the pools that the router may send to; 0: any */
    uint64_t n_untold;       /* ended requests that the progress line does not count yet */
    struct event_heap wakes; /* times of wakes; payload: the replica */
    struct departures departures;
    struct place *places; /* [rows] where requests of a source are (flight_outside.c); NULL: there
                             is no source */
    bool open;            /* more requests may come from the source */
    bool has_stamped;     /* some requests have come from the source */
    struct carried carried;
    bool carries;     /* K/V moves while steps run: by moves, migrating, swapping or tiering */
    bool tells_steps; /* the end of a step concerns more than the requests that leave with it */
    struct lockstep lockstep;
    struct moves *moves;            /* NULL: requests stay where they are */
    struct migrating *migrating;    /* NULL: running requests stay where they are */
    struct swapping *swapping;      /* NULL: swaps are part of steps */
    struct tiering *tiering;        /* NULL: there are no tiers below the device */
    struct lone *lone;              /* [replicas]; NULL: replicas are simulated together */
    struct outlook outlook;         /* outlook of the replica that is being simulated */
    struct mail mail;               /* contents of the mailboxes of all replicas */
    struct tournament lone_changes; /* replicas by the time at which their loads may change next */
    int64_t counts_heard_ns;        /* with old news: the router knows the request counts of all
                                       replicas as of this time */
    bool follows_counts;            /* the router asks for numbers of requests */
    bool follows_loads;             /* lone_changes is kept: the router asks for the least load */
    bool follows_caches;            /* lone_changes is kept up to each step: the router asks what
                                       all caches hold */
    bool takes_news;                /* old news of all replicas are taken together, when they are
                                       due */
    bool shares_pipelines;          /* some replicas are virtual engines */
    bool asks_held; /* something has happened since the router was last asked about requests held
                       at the gateway */
    int64_t now_ns;
};

static inline void loop_tell_progress(struct loop *loop)
{
    if (loop->flight->n_ended)
        atomic_fetch_add_explicit(loop->flight->n_ended, loop->n_untold, memory_order_relaxed);
    loop->n_untold = 0;
}

/* Counts n ended requests. In virtual time, where requests end fast, many are added to the progress
 * line at once: an atomic addition waits for all earlier writes. */
static inline void loop_count_ended(struct loop *loop, uint64_t n)
{
    loop->n_untold += n;
    if (loop->n_untold >= 256 || !loop->flight->executor->durations)
        loop_tell_progress(loop);
}

/* Makes a plan of the replica, which is simulated apart, due now, unless a step is in flight. */
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

/* Call it when the replica has changed between plans: makes a plan due and updates the router's
 * load of the replica. */
static inline void loop_note_change(struct loop *loop, struct replica *replica)
{
    loop_fall_due(loop, replica);
    routing_note(&loop->routing, replica, loop->now_ns);
}

/* ---- steps that follow one another without an event ---- */

/* Predicts durations of the committed step and of steps behind it. Returns false if the duration,
 * or the reason why there is none, is known only by submitting the step. */
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

/* Ends the committed step, which must end before until_ns, and as many equal steps behind it as
 * possible. Returns 1 if the next step is committed, 0 if a plan is due, or a negative code. */
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

/* Submits the replica's committed step to the executor. */
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

/* True if the committed step begins only when K/V has come: loop_let_step_go then submits it. */
bool loop_hold_step(struct loop *loop, const struct replica *replica);
/* Call it when K/V has come: a held step that waits for nothing else begins now. */
int loop_let_step_go(struct loop *loop, struct replica *replica, struct ifl_error *error);

/* ---- flight.c ---- */

/* Plans until a step is committed (returns 1), or until a plan changes nothing (returns 0). A plan
 * that only preempts or rejects is followed by another one at the same time. Returns a negative
 * code on error. */
int loop_commit(struct loop *loop, struct replica *replica, struct ifl_error *error);
/* Call it when no event is left. At each replica with requests, drops one refused request and makes
 * a plan due for the others; then drops one request held by the gateway. Returns 0 if no request is
 * left. */
int loop_give_up(struct loop *loop, struct ifl_error *error);
int loop_check_stop(const struct loop *loop, struct ifl_error *error);

/* ---- flight_open.c ---- */

/* Opens the parts of the loop when a run begins. The flight and the arrays per replica must be
 * there, or NULL if memory was short. Call loop_close after an error, too. */
int loop_open(struct loop *loop, struct ifl_error *error);
void loop_close(struct loop *loop);

/* ---- flight_end.c ---- */

/* True if the end of a step concerns other parts of the loop than the replica. Call it once the
 * loop has all its parts. */
bool loop_tells_steps(const struct loop *loop);
/* Call it when the run ends. Returns the code of a breach of the contract after the last plan, or
 * 0. */
int loop_check_contract(const struct loop *loop, struct ifl_error *error);
/* Records the requests that have left the replica, and reports them to the workload and the router.
 */
int loop_report_gone(struct loop *loop, struct replica *replica, struct ifl_error *error);
/* Call it when the replica has changed and requests may have left it: a step that waited for their
 * K/V begins. */
int loop_note_gone(struct loop *loop, struct replica *replica, struct ifl_error *error);
/* Records one request that has left, and reports it to the workload and the router. */
int loop_report_one(struct loop *loop, const struct replica *replica, const struct live_request *r,
                    struct ifl_error *error);
/* As loop_report_one, while K/V of the request is still moving. The request is not reported again.
 */
int loop_report_early(struct loop *loop, const struct replica *replica, struct live_request *r,
                      struct ifl_error *error);
/* Handles the end of the step in flight. */
int loop_end(struct loop *loop, struct replica *replica, const struct ifl_done *done,
             struct ifl_error *error);

/* Records the stages that the ended step has passed. */
int loop_record_stages(const struct loop *loop, const struct replica *replica,
                       const struct ifl_done *done, struct ifl_error *error);

/* ---- flight_rotate.c ---- */

/* True if the only replica may rotate (replica/rotation.h). Call it once the loop has all its
 * parts. */
bool loop_may_rotate(const struct loop *loop);
/* Call it when the replica has a new step in flight. Lets its steps end and begin again before
 * until_ns, as long as no plan is needed. Returns 0 or the code of `error`. */
int loop_rotate(struct loop *loop, struct replica *replica, int64_t until_ns,
                struct ifl_error *error);

/* ---- flight_apart.c ---- */

/* True if the flight's replicas may be simulated apart, each up to the next event that concerns it.
 */
bool apart_flies(const struct flight *flight);
/* From now on replicas are simulated apart. */
int apart_take_off(struct loop *loop, struct ifl_error *error);
/* Simulates all replicas up to now; from now on they are simulated together. */
int apart_land(struct loop *loop, struct ifl_error *error);
/* Runs the flight with replicas apart. Returns 0 if it has ended, 1 if replicas are simulated
 * together from now on and plans are due, or a negative code. */
int apart_run(struct loop *loop, struct ifl_error *error);
/* Frees the memory of `lone`. */
void apart_end(struct loop *loop);
/* Simulates the replica up to until_ns, ends of steps at that time included. Does nothing if
 * replicas are simulated together. */
int apart_bring(struct loop *loop, uint32_t number, int64_t until_ns, struct ifl_error *error);
/* True if a request that is sent to a replica may wait in its mailbox. */
bool apart_takes_mail(const struct loop *loop);
/* Puts the request into the replica's mailbox. */
int apart_post(struct loop *loop, uint32_t number, const struct arrival *a,
               struct ifl_error *error);
/* Call it before a request that may leave early is sent to a replica: see flight_apart.h. */
int apart_take_news(struct loop *loop, struct ifl_error *error);
static inline int loop_bring(struct loop *loop, uint32_t number, int64_t until_ns,
                             struct ifl_error *error)
{
    return IFL_RARE(loop->lone != NULL) ? apart_bring(loop, number, until_ns, error) : 0;
}

/* ---- flight_leave.c ---- */

/* Returns when the next request leaves before it has its answer; IFL_NEVER: none is known to. */
int64_t loop_next_departure_ns(struct loop *loop);
/* Notes when the request leaves, if it ever does, and where it is. r: its record at that replica;
 * NULL: the gateway holds it. */
int loop_note_departure(struct loop *loop, const struct arrival *a, uint32_t replica,
                        struct live_request *r, struct ifl_error *error);
/* As loop_note_departure, for a request that is at that replica, or held, already. */
int loop_note_leaving(struct loop *loop, int64_t at_ns, uint64_t serial, uint32_t replica,
                      struct live_request *r, struct ifl_error *error);
/* The record `to` of the request, at that replica, replaces the record `from` for its departure. */
void loop_move_departure(struct loop *loop, const struct live_request *from, uint32_t replica,
                         struct live_request *to);
/* Lets the request of loop_next_departure_ns leave. */
int loop_let_one_leave(struct loop *loop, struct ifl_error *error);
/* Lets all requests leave that are due. */
int loop_let_leave(struct loop *loop, struct ifl_error *error);
void loop_drop_departures(struct loop *loop);

/* ---- flight_outside.c ---- */

/* Prepares for requests of flight->source; does nothing without a source. */
int outside_open(struct loop *loop, struct ifl_error *error);
/* Asks the source: requests whose clients have gone leave, and the next request is offered to the
 * workload. */
int outside_look(struct loop *loop, struct ifl_error *error);
/* Notes that the request is at that replica; r NULL: the gateway holds it. If its client has gone
 * since it arrived, the arrival gets the time. */
void outside_note_place(struct loop *loop, struct arrival *a, uint32_t replica,
                        struct live_request *r);
/* Notes that the record r, at that replica, continues the request. */
void outside_move_place(struct loop *loop, uint32_t replica, struct live_request *r);
/* Gives the source the tokens of a step that has ended. */
void outside_tell_step(const struct loop *loop, const struct replica *replica,
                       const struct ifl_done *done);
void outside_tell_end(const struct flight *flight, size_t row,
                      const struct ifl_request_record *record, int64_t now_ns);

/* ---- flight_arrive.c ---- */

/* Opens to the router the pools that can take the request. */
void loop_open_pools(struct loop *loop, const struct arrival *a);
/* True if there is one pool, of which only the fit of a request must be checked. */
bool loop_has_one_pool(const struct flight *flight);
/* Handles the workload's next arrival: the request is refused, or goes where the router says. */
int loop_let_one_arrive(struct loop *loop, struct ifl_error *error);

/* Records a request that was refused at now_ns, with that status. */
int loop_turn_away(struct loop *loop, const struct arrival *a, int64_t now_ns,
                   enum ifl_status status, struct ifl_error *error);

/* Asks the gateway and the router again about the held requests, in the order of the gateway
 * (cluster.gateway.order). */
int loop_ask_held(struct loop *loop, struct ifl_error *error);
/* Call it when no event is left after which the router would be asked again: drops the first
 * request that the gateway holds. Returns 1 if it has dropped one, 0 if none is held. */
int loop_give_up_held(struct loop *loop, struct ifl_error *error);

/* Handles departures and arrivals, in order of time, until now_ns. */
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
