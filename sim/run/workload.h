/* The arrivals of a run: rows of a sorted trace that arrive by their stamps, and requests that wait
 * for others.
 *
 * Closed loop: the first `concurrency` rows arrive at time 0, and each request that ends releases
 * the next row. Sessions: a turn with a think time arrives that long after the session's previous
 * turn has ended. All other rows arrive at their stamps.
 *
 * All these times are those of the clients. With a front end, a request passes the front end first,
 * and reaches the router and the engine when it leaves the front end; so a request with a short
 * prompt may overtake another one. Clients also get their tokens later than the engine has them,
 * and measure from then.
 *
 * A row may repeat another one (retry_of): it arrives as any row does, with the prompt of that row.
 * Requests that their clients send again (workload_retry) have no rows of their own.
 *
 * workload.c also finds the tokens that a turn's answer has in common with the next turn's prompt.
 */
#ifndef SIM_RUN_WORKLOAD_H
#define SIM_RUN_WORKLOAD_H

#include "inflight/report.h"
#include "inflight/trace.h"

#include "base/event_heap.h"
#include "cost/deployment.h"
#include "fleet/clients.h"
#include "replica/predictor.h"
#include "replica/replica.h"
#include "run/source.h"

struct workload {
    const struct ifl_trace *trace;
    struct predictor predictor; /* an oracle unless set after workload_create */
    struct patience patience;   /* patience of clients for which the trace has no value; none
                                   unless set */
    struct retries retries;     /* none unless set by workload_retry */
    uint64_t first_retry_id;
    struct arrival plain; /* defaults of what the trace does not say */
    bool says_more;       /* the trace has more than lengths and stamps */
    size_t next, limit;   /* rows [next, limit) stream by their stamps */
    size_t next_held;     /* closed loop: rows [next_held, n) have not arrived */
    bool closed;
    uint64_t *repeats;     /* [n] as in struct live_request, for the trace's retries; or NULL */
    uint32_t *first_sent;  /* [n] the row that was sent first (retries_find); or NULL */
    uint32_t *repeated_by; /* [n] row + 1 of the turn that repeats the row's answer, or NULL */
    uint32_t *next_turn;   /* [n] row + 1 of the turn that waits for the row, or NULL */
    bool *waits;           /* [n] the row waits for its previous turn */
    struct event_heap released;
    size_t n_next;       /* entries of `released` that stand for "the next row" (closed loop) */
    int64_t streamed_ns; /* when the next row that streams is sent, IFL_NEVER without one */
    int64_t next_ns;     /* when the next request comes to the engine */
    uint64_t n_arrived;
    const struct source *source; /* NULL: the trace has all requests */

    struct front_end front;     /* none unless set by workload_go_through */
    int64_t front_free_ns;      /* when the front end has done the serial part of all requests in
                                   it */
    int64_t token_ns;           /* front.token_s */
    struct event_heap in_front; /* requests that are in the front end */
    int64_t *sent_ns;           /* [n] when the requests in in_front were sent; NULL: no front
                                   end */
    int64_t *out_ns;            /* [n] when these requests leave the front end, unless their
                                   clients leave earlier */
    uint64_t n_sent;            /* requests that have entered the front end */
};

/* The trace is borrowed and must be sorted by arrival. concurrency 0: no closed loop. Returns 0 or
 * a negative code: IFL_E_INPUT if a row is a retry of itself, or has another prompt length than the
 * row that it repeats. */
int workload_create(struct workload *workload, const struct ifl_trace *trace, int32_t concurrency,
                    struct ifl_error *error);
void workload_destroy(struct workload *workload);
/* Sets deadlines of the tokens of rows without deadlines of their own; 0: none. */
void workload_slo(struct workload *workload, double ttft_s, double tpot_s);

/* Sets the deadline of rows without one of their own; 0: none. */
void workload_deadline(struct workload *workload, double deadline_s);
/* Lets requests and tokens pass the front end. Call it as the last function before the first
 * request is taken, since attributes of clients are read when they send. */
int workload_go_through(struct workload *workload, const struct front_end *front,
                        struct ifl_error *error);
/* Lets clients retry as `retries` says. */
void workload_retry(struct workload *workload, const struct retries *retries);
/* Returns the request_id, in the reports, of an attempt at the row: the id of the trace for the
 * first attempt, and numbers above all these ids for the others. */
static inline uint64_t workload_id(const struct workload *workload, size_t row, int32_t attempt)
{
    return IFL_RARE(attempt > 0)
               ? workload->first_retry_id + (uint64_t)(attempt - 1) * workload->trace->n + row
               : ifl_trace_id(workload->trace, row);
}

/* Takes requests from the source: the trace has a row for each of its places, no row arrives by its
 * stamp, and each request is offered when it comes. Call it before workload_go_through. */
void workload_follow(struct workload *workload, const struct source *source);
/* True if a request was offered and neither the engine nor the front end has it yet. */
static inline bool workload_is_offered(const struct workload *workload)
{
    return workload->streamed_ns != IFL_NEVER;
}
/* Offers the request of the row, sent at that time. No other request may be on offer. */
void workload_offer(struct workload *workload, size_t row, int64_t at_ns);
/* The client of the row's request, which is in the front end, leaves at that time. */
void workload_leave_front(struct workload *workload, size_t row, int64_t at_ns);

/* True if all requests arrive at their stamps, independently of the ends of others. */
static inline bool workload_is_open(const struct workload *workload)
{
    return !workload->closed && !workload->next_turn && workload->retries.most == 0 &&
           !workload->source;
}

/* Returns when the next request reaches the engine or, where ends of requests cause others to be
 * sent, enters the front end; IFL_NEVER: none is known to. */
static inline int64_t workload_next_ns(const struct workload *workload)
{
    return workload->next_ns;
}

/* True if that attempt at the row repeats a request that was sent before it. */
static inline bool workload_is_retry(const struct workload *workload, size_t row, int32_t attempt)
{
    return IFL_RARE(attempt > 0) ||
           (IFL_RARE(workload->trace->retry_of != NULL) && workload->trace->retry_of[row] >= 0);
}
/* Returns true if a request enters the front end at workload_next_ns, and nothing else happens.
 * Call it before workload_take. */
bool workload_enters_front(struct workload *workload);
/* Takes the request of workload_next_ns. Returns false if instead its client leaves then, while the
 * request is still in the front end. */
bool workload_take(struct workload *workload, struct arrival *arrival);
/* Fills *arrival again for a request that was taken as the first attempt at that row, as it was
 * then. */
void workload_recall(const struct workload *workload, size_t row, uint64_t serial, int64_t at_ns,
                     struct arrival *arrival);
/* Fills *arrival from the row, before the request is sent: without times. */
void workload_describe(const struct workload *workload, size_t row, struct arrival *arrival);
/* Converts the times in the record from those at the engine to those at the client. */
void workload_deliver(const struct workload *workload, struct ifl_request_record *record);
/* Call it when that attempt at `row`, the serial-th request to arrive, has ended for its client.
 * The client may send the request again, and its end may release another request. Requests that are
 * released for the same time arrive in the order of the serials of the requests that released them.
 */
int workload_ended(struct workload *workload, size_t row, uint64_t serial, int32_t attempt,
                   enum ifl_status status, int64_t now_ns, struct ifl_error *error);

#endif
