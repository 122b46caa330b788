/* What a router and a scaling rule see: the replicas of a cluster, by number.
 *
 * Numbers are never reused: a replica that has gone keeps its number. The loop keeps counts and
 * indices up to date for the fleet, so that no module walks over ten thousand replicas. A load is
 * passed by pointer and may grow at its end. No pointer that a module is given is NULL unless its
 * comment says so; all are borrowed until the module returns.
 *
 * Replicas of a cluster with pools differ: each load has its replica's limits and its pool.
 *
 * In this version a cluster keeps its size and running requests stay where they are: every replica
 * is up, and a router with `balance` and every scaling rule are refused when they are loaded.
 * Replicas have both roles unless their pool has a role (cluster.pools.NAME.role). */
#ifndef INFLIGHT_FLEET_H
#define INFLIGHT_FLEET_H

#include "inflight/assert.h"
#include "inflight/step.h"

/* What a replica is for: bits. Both if the cluster has no hand-over. */
enum ifl_role { IFL_PREFILLS = 1, IFL_DECODES = 2 };

enum ifl_replica_state {
    IFL_UP,       /* takes requests */
    IFL_DRAINING, /* finishes those it has, and takes no other */
    IFL_GONE      /* has ended, or was lost with all its requests */
};

struct ifl_load {
    /* The replica's own report, as of taken_ns: exact, unless cluster.news makes it old. */
    int32_t n_running, n_waiting, n_swapped; /* requests */
    int32_t n_free_blocks;                   /* on the device */
    int64_t n_waiting_tokens; /* of the waiting requests: prompts, and tokens generated before a
                                 preemption */
    /* The router's own counts, exact at any time. */
    uint64_t n_routed; /* all requests that were sent to it so far */
    /* Constant during a run. */
    const struct ifl_limits *limits;
    unsigned roles; /* bits of enum ifl_role */
    /* Of the report. */
    int64_t taken_ns; /* now if it is exact; 0 if none has come yet */
    uint64_t n_sent;  /* of n_routed, those that the report does not include; 0 if it is exact */
    uint32_t pool;    /* constant: number of its pool (cluster.pools, in the order of the file),
                         from 0 */
    /* Of the report: requests that are being moved to this replica from other replicas. A request
     * that has left since counts until its transfer has ended. The sending replica counts a request
     * as long as it computes tokens of it, and keeps its blocks until the transfer has ended. */
    int32_t n_moving;
};

/* Requests at a replica, by its own report: running, waiting, swapped, and being moved to it. */
static inline int32_t ifl_outstanding(const struct ifl_load *load)
{
    return load->n_running + load->n_waiting + load->n_swapped + load->n_moving;
}

/* The same with those that were sent to it since the report. */
static inline int64_t ifl_outstanding_and_sent(const struct ifl_load *load)
{
    return ifl_outstanding(load) + (int64_t)load->n_sent;
}

/* The part of a load that changes only when requests arrive or end. */
struct ifl_load_counts {
    int64_t n_outstanding; /* ifl_outstanding_and_sent */
    uint64_t n_routed;
};

struct ifl_fleet;

/* A router calls these as ifl_load_of, ifl_least and so on, below. */
struct ifl_fleet_ops {
    size_t size_bytes; /* sizeof(struct ifl_fleet_ops): it may grow at its end */
    /* The load of replica i, below fleet->n. */
    const struct ifl_load *(*load)(const struct ifl_fleet *, size_t i);
    /* The number of the k-th eligible replica, in order of number. A replica is eligible if it is
     * up, has all of these roles (bits of enum ifl_role; 0: any), and, in `pick`, may get
     * fleet->request: its pool serves the model and has room for the request. k must be below `up`.
     * With every replica up it costs a look at each pool. */
    size_t (*nth)(const struct ifl_fleet *, unsigned roles, size_t k);
    /* How many eligible replicas there are: in `pick` at least one. */
    size_t (*up)(const struct ifl_fleet *, unsigned roles);
    /* The eligible replica with the fewest requests (ifl_outstanding_and_sent), ties by number;
     * fleet->n: there is none. */
    size_t (*least)(const struct ifl_fleet *, unsigned roles);
    /* Tokens of the prompt of fleet->request that the prefix cache of replica i holds now, however
     * old the news; 0 without a cache. Costs one look-up for each cached block of the prompt. Only
     * from `pick` and on_sent; elsewhere it returns 0. */
    int32_t (*cached)(const struct ifl_fleet *, size_t i);
    /* 64 random bits that depend on (workload.arrivals.seed, request, index) alone: the same index
     * gives the same number again. Only where fleet->request is not NULL. */
    uint64_t (*draw)(const struct ifl_fleet *, uint32_t index);
    /* Requests on the device of replica i, in order of start. Called only from `balance`; in this
     * version this pointer and the next one are NULL. */
    struct ifl_requests (*running)(const struct ifl_fleet *, size_t i);
    /* Moves a running request to replica `to`, below fleet->n, while it goes on decoding. Called
     * only from `balance`. Returns false if the request is being moved already, or if the replica
     * takes no requests. */
    bool (*migrate)(const struct ifl_fleet *, const struct ifl_request *, size_t to);
    /* The same numbers as in the load of replica i, below fleet->n. Costs less: most steps of a
     * replica need not be simulated to know them. */
    struct ifl_load_counts (*counts)(const struct ifl_fleet *, size_t i);
    /* As `least`: the replica with the most requests; the one with the smallest n_routed. */
    size_t (*most)(const struct ifl_fleet *, unsigned roles);
    size_t (*least_routed)(const struct ifl_fleet *, unsigned roles);
    /* The eligible replica with the largest `cached`, ties by number, and that number of tokens;
     * fleet->n and 0: no replica has any. Costs a look-up for each block that it holds, and a look
     * at each replica that holds as much. */
    size_t (*longest)(const struct ifl_fleet *, unsigned roles, int32_t *n_tokens);
};

struct ifl_fleet {
    const struct ifl_fleet_ops *ops;
    int64_t now_ns;
    size_t n;                          /* replicas so far, those that are gone included */
    uint64_t n_routed;                 /* requests of the run that were routed before */
    const struct ifl_request *request; /* of this call; NULL if it has none */
    /* The router's own word for that request: 0 when `pick` is called, then what `pick` or
     * on_first_token wrote last; what on_sent writes is lost. */
    uint64_t *note;
};

static inline const struct ifl_load *ifl_load_of(const struct ifl_fleet *fleet, size_t i)
{
    ifl_assert(i < fleet->n);
    return fleet->ops->load(fleet, i);
}

static inline struct ifl_load_counts ifl_counts_of(const struct ifl_fleet *fleet, size_t i)
{
    ifl_assert(i < fleet->n);
    return fleet->ops->counts(fleet, i);
}

static inline size_t ifl_nth(const struct ifl_fleet *fleet, unsigned roles, size_t k)
{
    ifl_assert(k < fleet->ops->up(fleet, roles));
    return fleet->ops->nth(fleet, roles, k);
}

static inline size_t ifl_up(const struct ifl_fleet *fleet, unsigned roles)
{
    return fleet->ops->up(fleet, roles);
}

static inline size_t ifl_least(const struct ifl_fleet *fleet, unsigned roles)
{
    return fleet->ops->least(fleet, roles);
}

static inline size_t ifl_most(const struct ifl_fleet *fleet, unsigned roles)
{
    return fleet->ops->most(fleet, roles);
}

static inline size_t ifl_least_routed(const struct ifl_fleet *fleet, unsigned roles)
{
    return fleet->ops->least_routed(fleet, roles);
}

static inline size_t ifl_longest_cached(const struct ifl_fleet *fleet, unsigned roles,
                                        int32_t *n_tokens)
{
    return fleet->ops->longest(fleet, roles, n_tokens);
}

static inline int32_t ifl_cached_tokens(const struct ifl_fleet *fleet, size_t i)
{
    ifl_assert(i < fleet->n);
    return fleet->ops->cached(fleet, i);
}

static inline uint64_t ifl_fleet_draw(const struct ifl_fleet *fleet, uint32_t index)
{
    return fleet->ops->draw(fleet, index);
}

static inline struct ifl_requests ifl_running_at(const struct ifl_fleet *fleet, size_t i)
{
    ifl_assert(i < fleet->n);
    return fleet->ops->running(fleet, i);
}

static inline bool ifl_migrate(const struct ifl_fleet *fleet, const struct ifl_request *r,
                               size_t to)
{
    ifl_assert(to < fleet->n);
    return fleet->ops->migrate(fleet, r, to);
}

/* ---- what a router answers ---- */

enum ifl_destination {
    IFL_SEND, /* to the named replicas */
    IFL_HOLD, /* not yet: the request waits at the gateway, and `pick` is called again when a step
                 has ended, a plan has been made, or news have come; if no event is left, the first
                 held request is dropped, and reports count it as shed */
    IFL_REFUSE_ARRIVAL /* drop it; reports count it as shed */
};

struct ifl_route {
    enum ifl_destination what;
    size_t prefill, decode; /* below fleet->n; equal: one replica computes all of it */
    const char *why; /* of a refusal: a constant text that follows the router's name and stays valid
                        until the run ends; NULL: "it drops it" */
};

/* One replica computes all of the request. It must be one of those that `nth` shows, with both
 * roles: any other replica ends the run with IFL_E_POLICY. */
static inline struct ifl_route ifl_send(size_t replica)
{
    return (struct ifl_route){IFL_SEND, replica, replica, NULL};
}

/* One replica computes the prompt and hands the request over to another one, which decodes
 * (cluster.handover). Without roles in cluster.pools two different numbers end the run with
 * IFL_E_POLICY. */
static inline struct ifl_route ifl_send_pair(size_t prefill, size_t decode)
{
    return (struct ifl_route){IFL_SEND, prefill, decode, NULL};
}

/* The answer IFL_HOLD. */
static inline struct ifl_route ifl_hold_back(void)
{
    return (struct ifl_route){IFL_HOLD, 0, 0, NULL};
}

/* Drops the request; `why` is as in struct ifl_route. */
static inline struct ifl_route ifl_shed(const char *why)
{
    return (struct ifl_route){IFL_REFUSE_ARRIVAL, 0, 0, why};
}

struct ifl_route_ops {
    /* Returns the destination of fleet->request, which has just arrived, or was held. The request
     * is not yet at a replica: it waits, and only the fields that come from the trace are set. */
    struct ifl_route (*pick)(const void *self, const struct ifl_fleet *);
    /* Optional. Returns the number of the replica that decodes, another one than that of the
     * prompt. Called when the whole prompt has been computed, if `pick` named two replicas and the
     * order is pull. Without it the answer of `pick` counts. */
    size_t (*pick_decode)(const void *self, const struct ifl_fleet *);
    /* Optional hooks. The request is fleet->request, and `replica` the number of its replica. For
     * each request that `pick` has sent, on_sent and on_end are called once, and on_first_token at
     * most once between them. For a request that was shed, or left while it was held, none is
     * called.
     *   - on_sent: the request has joined the replica, and loads that are not old count it. Of two
     *     replicas, `replica` is that of the prompt.
     *   - on_first_token: a step with its first token has ended; the request may have ended, too.
     *     `replica` is the one that gives the token.
     *   - on_end: the request has its last token, was dropped, or has left. `replica` is the one
     *     where it ends; if requests move while they decode (cluster.migration), the one of
     *     on_sent. */
    void (*on_sent)(void *self, const struct ifl_fleet *, size_t replica);
    void (*on_first_token)(void *self, const struct ifl_fleet *, size_t replica);
    void (*on_end)(void *self, const struct ifl_fleet *, size_t replica);
    /* The replica has entered that state. Not called in this version. */
    void (*on_replica)(void *self, const struct ifl_fleet *, size_t replica,
                       enum ifl_replica_state);
    /* Optional: moves requests between replicas (ifl_migrate). Returns the time of the next call,
     * later than fleet->now_ns. First called at time 0. fleet->request is NULL. In this version a
     * router that has it is refused when it is loaded. */
    int64_t (*balance)(void *self, const struct ifl_fleet *);
};

/* ---- what a scaling rule answers ---- */

struct ifl_scale_ops {
    /* Returns the number of replicas that should be up. The loop boots missing ones and drains
     * surplus ones, the highest numbers first. Always sets *again_ns, which is not NULL, to the
     * time of the next call, later than fleet->now_ns. fleet->request is NULL. In this version a
     * module of this kind is refused when it is loaded. */
    int32_t (*want)(void *self, const struct ifl_fleet *, int64_t *again_ns);
};

#endif
