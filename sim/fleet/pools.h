/* The pools of a cluster: consecutive replicas that are alike. */
#ifndef SIM_FLEET_POOLS_H
#define SIM_FLEET_POOLS_H

#include <stdint.h>

#include "inflight/fleet.h"

/* Which request is shed where too many wait at a replica: the one that came last, or of those with
 * the worst priority, the arrival's included, the one that was queued last. */
enum shed { SHED_ARRIVAL, SHED_WORST };

/* The queue limits above which a server refuses arrivals; 0: no limit. */
struct door {
    int32_t max_queued_reqs;   /* sequences in the pool, waiting, running or swapped out */
    int32_t max_queued_tokens; /* prompt tokens of those without a first token */
    int32_t max_waiting_reqs;  /* requests that wait at one replica */
    enum shed shed;            /* beyond max_waiting_reqs */
};

struct fleet_pool {
    const char *name;   /* borrowed; NULL: it is the whole cluster, which has no pools */
    uint32_t first, n;  /* replicas, ranks counted; n may be 0 */
    uint32_t n_ranks;   /* consecutive replicas of it that run in lockstep; 0 and 1: none */
    uint32_t n_engines; /* consecutive replicas of it that share a pipeline: virtual engines, of
                           which a request goes to the one with the fewest; 0 is 1 */
    uint32_t model;     /* that it serves, as the trace numbers models; 0: any */
    unsigned roles;     /* bits of enum ifl_role; 0: both */
    struct door door;
};

static inline unsigned fleet_pool_roles(const struct fleet_pool *pool)
{
    return pool->roles ? pool->roles : IFL_PREFILLS | IFL_DECODES;
}

#endif
