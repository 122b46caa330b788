/* The gateway in front of the router: it may drop an arrival or hold it back.
 *
 * hold: flow control as llm-d's (inference scheduler 520af47, saturation detector). A request waits
 * at the gateway while the saturation of the replicas that may have it is 1 or more,
 *
 *     mean over them of  max(waiting / queue_depth, share of blocks in use / kv_frac),
 *
 * by the replicas' reports; a replica with a report older than stale_s counts as 1. Rounding errors
 * do not enter: with a queue_depth of 3, queues of 3, 4 and 2 have a mean of exactly 1. */
#ifndef SIM_FLEET_GATEWAY_H
#define SIM_FLEET_GATEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "fleet/turns.h"

/* Dynamo's names are fcfs, lcfs and wspt (lib/kv-router/src/scheduling/policy.rs, main branch of
 * 2026); its strict priorities are none of them. */
enum gateway_order { GATEWAY_BY_ARRIVAL, GATEWAY_BY_PRIORITY, GATEWAY_LATEST, GATEWAY_SHORTEST };

struct gateway {
    bool hold;
    int32_t queue_depth;
    double kv_frac;
    int64_t stale_ns;
    enum gateway_order order; /* of what is held, within a class */
    struct classes classes;   /* of what is held, by the tokens of a prompt to compute */
    int32_t max_held;         /* requests, of a class, by priority: of one priority; 0: no limit */
    /* An arrival is dropped if its prompt, with those that wait at its replica, would take longer
     * at this rate than its first token may; 0: none is. */
    double prefill_tokens_s;
};

/* True if arrivals pass it, though there may be one replica. */
static inline bool gateway_is_there(const struct gateway *gateway)
{
    return gateway->hold || gateway->prefill_tokens_s > 0;
}

#endif
