/* A flight: one workload against the replicas of a cluster on one executor, from the first arrival
 * to the last token. The loop is the same in virtual and in wall time: it waits for the next event,
 * delivers arrivals, and plans for the replicas that fell due.
 *
 * At equal times: ends of steps, then moves of K/V, then requests that leave, then news, then
 * wakes, then requests that a router holds back, then arrivals, then plans. Of several of a kind:
 * by the number of the replica, then by the serial of the request. */
#ifndef SIM_RUN_FLIGHT_H
#define SIM_RUN_FLIGHT_H

#include <signal.h>
#include <stdatomic.h>

#include "inflight/executor.h"
#include "inflight/report.h"

#include "config/config.h"
#include "fleet/handover.h"
#include "fleet/migration.h"
#include "fleet/news.h"
#include "fleet/pools.h"
#include "fleet/swap_link.h"
#include "fleet/tier_links.h"
#include "replica/replica.h"
#include "run/source.h"
#include "run/workload.h"

/* Requests that no replica received: of a model that no pool serves; longer than the model; larger
 * than the K/V pool; refused at the door. If the pools refuse a request for different reasons, it
 * counts for the reason that comes last in this list. Requests that modules refuse are counted by
 * the replicas. */
struct flight_rejections {
    uint64_t n_unserved, n_beyond_model, n_beyond_pool, n_at_door;
    uint64_t n_too_late, n_beyond_gateway; /* dropped by the gateway */
    int32_t least_prompt_tokens; /* shortest prompt of the requests beyond the model or the pool;
                                    0: there are none */
};

struct flight {
    struct replica *replicas; /* [n_replicas], numbered from 0, alike in each pool */
    uint32_t n_replicas;
    const struct fleet_pool *pools; /* [n_pools] of all replicas, in order of number */
    size_t n_pools;
    const struct module *router; /* NULL: there is one replica, and it takes every request */
    struct news_options news;    /* of the replicas, for the router */
    struct gateway gateway;      /* requires a router, if it is used */
    uint64_t seed;               /* seed of the router's draws */
    const struct handover_rules *handover;   /* NULL: requests stay where they are */
    const struct migration_rules *migration; /* NULL: running requests stay where they are */
    struct handover_size moved;
    const struct swap_link *swaps;  /* [n_pools]; NULL: swaps are part of steps */
    const struct tier_links *tiers; /* [n_pools]; NULL: no replica has tiers */
    struct link_spec link;          /* out of each replica, and into it */
    struct workload *workload;
    const struct source *source; /* source of requests during the run; NULL: the workload has all
                                    requests */
    const struct ifl_executor_ops *executor;
    void *executor_self;
    struct ifl_recorder *recorder;
    bool records_in_any_order; /* the recorder takes the steps of different replicas in any order */
    bool steady_runs;
    bool records_work; /* the replicas list the work of each step, and the recorder takes it */
    bool check_steady; /* plan promised steps as well, and compare */
    const volatile sig_atomic_t *stop; /* set by a signal: the flight ends with an error */
    atomic_ullong *n_ended;            /* requests ended so far, for a progress line, or NULL */
    uint64_t n_plans, n_repeats;       /* out: planned steps; promised steps */
    struct flight_rejections rejected; /* out */
    struct refusals shed;              /* out: requests shed by the router */
    uint64_t n_beyond_queue;           /* out: requests shed by replicas because too many wait */
    uint64_t n_dummies;                /* out: steps in which a replica in lockstep had no work */
};

/* Returns 0, or a negative code if the run failed; the recorder is then only good to be destroyed.
 */
int flight_run(struct flight *flight, struct ifl_error *error);

#endif
