/* The pools of a cluster: consecutive replicas that are alike. */
#ifndef SIM_FLEET_POOLS_H
#define SIM_FLEET_POOLS_H

#include <stdint.h>

#include "inflight/fleet.h"

/* Which request is shed if too many wait at a replica: the arrival; or, of the waiting requests and
 * the arrival, the one with the worst priority, of several the one queued last. */
enum shed { SHED_ARRIVAL, SHED_WORST };

/* The queue limits above which a server refuses arrivals; 0: no limit. */
struct door {
    int32_t max_queued_reqs;   /* sequences in the pool that wait, run or are swapped out */
    int32_t max_queued_tokens; /* prompt tokens of the requests in the pool without a first token */
    int32_t max_waiting_reqs;  /* requests that wait at one replica */
    enum shed shed;            /* which request is shed beyond max_waiting_reqs */
};

struct fleet_pool {
    const char *name;   /* borrowed; NULL: the pool is the whole cluster, which has no named
                           pools */
    uint32_t first, n;  /* numbers of its replicas; each rank counts as one; n may be 0 */
    uint32_t n_ranks;   /* consecutive replicas that run in lockstep; 0 and 1: none do */
    uint32_t n_engines; /* consecutive replicas (virtual engines) that share a pipeline; a request
                           goes to the one with the fewest requests; 0 counts as 1 */
    uint32_t model;     /* number of the model that the pool serves, as in the trace; 0: any */
    unsigned roles;     /* bits of enum ifl_role; 0: both */
    struct door door;
};

static inline unsigned fleet_pool_roles(const struct fleet_pool *pool)
{
    return pool->roles ? pool->roles : IFL_PREFILLS | IFL_DECODES;
}

#endif
