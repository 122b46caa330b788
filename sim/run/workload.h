/* The arrivals of a run: rows of a sorted trace that arrive by their stamps, and requests that wait
 * for others.
 *
 * Closed loop: the first `concurrency` rows arrive at time 0, and each request that ends releases
 * the next row. Sessions: a turn with a think time arrives that long after the session's previous
 * turn has ended. All other rows arrive at their stamps.
 *
 * All these times are those of the clients. With a front end a request goes through it first, and
 * comes to the router and the engine when it leaves it; so a request with a short prompt may
 * overtake another one. Clients also get their tokens later than the engine has them, and count
 * from then.
 *
 * A row may repeat another one (retry_of): it arrives as any row does, with the prompt of that row.
 * Requests that their clients send again (workload_retry) are no rows of their own.
 *
 * The tokens that a turn's answer has in common with the next turn's prompt are found here, too. */
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
    struct patience patience;   /* of clients for which the trace says nothing; none unless set */
    struct retries retries;     /* none unless set by workload_retry */
    uint64_t first_retry_id;
    struct arrival plain; /* defaults of what the trace does not say */
    bool says_more;       /* the trace says more than lengths and stamps */
    size_t next, limit;   /* rows [next, limit) stream by their stamps */
    size_t next_held;     /* closed loop: rows [next_held, n) have not arrived */
    bool closed;
    uint64_t *repeats;     /* [n] of struct live_request, for the trace's retries; or NULL */
    uint32_t *first_sent;  /* [n] the row that the row's retries repeat, itself without; or NULL */
    uint32_t *repeated_by; /* [n] row + 1 of the turn that repeats the row's answer, or NULL */
    uint32_t *next_turn;   /* [n] row + 1 of the turn that waits for the row, or NULL */
    bool *waits;           /* [n] the row waits for its previous turn */
    struct event_heap released;
    size_t n_next;       /* of `released`: those that stand for the next row */
    int64_t streamed_ns; /* when the next row that streams is sent, IFL_NEVER without one */
    int64_t next_ns;     /* when the next request comes to the engine */
    uint64_t n_arrived;
    const struct source *source; /* NULL: the trace has all requests */

    struct front_end front;     /* none unless set by workload_go_through */
    int64_t front_free_ns;      /* when it has done the serial part of all requests in it */
    int64_t token_ns;           /* front.token_s */
    struct event_heap in_front; /* requests that are in the front end */
    int64_t *sent_ns;           /* [n] when those of in_front were sent; NULL: no front end */
    int64_t *out_ns;            /* [n] when they leave it, unless their clients leave before */
    uint64_t n_sent;            /* requests that went into it */
};

/* The trace is borrowed and must be sorted by arrival. concurrency 0: not closed. A retry of itself
 * and one with another prompt length than its row are IFL_E_INPUT. */
int workload_create(struct workload *workload, const struct ifl_trace *trace, int32_t concurrency,
                    struct ifl_error *error);
void workload_destroy(struct workload *workload);
/* Deadlines of the tokens of rows that have none of their own; 0: none. */
void workload_slo(struct workload *workload, double ttft_s, double tpot_s);

/* The deadline of rows that have none of their own; 0: none. */
void workload_deadline(struct workload *workload, double deadline_s);
/* Requests and tokens go through that front end. Call it last before the first request is taken:
 * what is known of clients is asked as they send. */
int workload_go_through(struct workload *workload, const struct front_end *front,
                        struct ifl_error *error);
/* Clients try again as said. */
void workload_retry(struct workload *workload, const struct retries *retries);
/* The request_id in the reports of an attempt at the row: that of the trace for the first one, and
 * numbers above all of these for the others. */
static inline uint64_t workload_id(const struct workload *workload, size_t row, int32_t attempt)
{
    return IFL_RARE(attempt > 0)
               ? workload->first_retry_id + (uint64_t)(attempt - 1) * workload->trace->n + row
               : ifl_trace_id(workload->trace, row);
}

/* The trace has a row for each place of that source. No row arrives by its stamp: each is offered
 * as it comes. Call it before workload_go_through. */
void workload_follow(struct workload *workload, const struct source *source);
/* True if a request was offered and neither the engine nor the front end has it yet. */
static inline bool workload_is_offered(const struct workload *workload)
{
    return workload->streamed_ns != IFL_NEVER;
}
/* The request of the row is sent at that time. None may be offered. */
void workload_offer(struct workload *workload, size_t row, int64_t at_ns);
/* The request of the row, which is in the front end, leaves then. */
void workload_leave_front(struct workload *workload, size_t row, int64_t at_ns);

/* True if all requests arrive at their stamps, whenever others end. */
static inline bool workload_is_open(const struct workload *workload)
{
    return !workload->closed && !workload->next_turn && workload->retries.most == 0 &&
           !workload->source;
}

/* When the next request comes to the engine, IFL_NEVER if none is known to. */
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
/* True: a request enters the front end at workload_next_ns, and nothing else happens. Asked before
 * workload_take. */
bool workload_enters_front(struct workload *workload);
/* Takes the request of workload_next_ns. False: its client leaves then, while the request is still
 * in the front end. */
bool workload_take(struct workload *workload, struct arrival *arrival);
/* A request that was taken as the first attempt at that row, once more: as it was then. */
void workload_recall(const struct workload *workload, size_t row, uint64_t serial, int64_t at_ns,
                     struct arrival *arrival);
/* What the row says, before it is sent: without the times of an arrival. */
void workload_describe(const struct workload *workload, size_t row, struct arrival *arrival);
/* Times of the record that are the engine's become the client's. */
void workload_deliver(const struct workload *workload, struct ifl_request_record *record);
/* That attempt at `row`, the serial-th request to arrive, has ended for its client. It may be sent
 * again, or may release another request. Requests that are released for the same time arrive in the
 * order of the serials of those that released them. */
int workload_ended(struct workload *workload, size_t row, uint64_t serial, int32_t attempt,
                   enum ifl_status status, int64_t now_ns, struct ifl_error *error);

#endif
