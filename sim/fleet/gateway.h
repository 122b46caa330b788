/* The gateway in front of the router: it may drop an arrival or hold it back.
 *
 * hold: flow control as llm-d's (inference scheduler 520af47, saturation detector). A request waits
 * at the gateway while the saturation of the replicas that may take it is 1 or more,
 *
 *     mean over these replicas of  max(waiting / queue_depth, share of blocks in use / kv_frac),
 *
 * taken from the replicas' reports. A replica with a report older than stale_s counts as 1. The
 * mean has no rounding error: with a queue_depth of 3, queues of 3, 4 and 2 have a mean of exactly
 * 1. */
#ifndef SIM_FLEET_GATEWAY_H
#define SIM_FLEET_GATEWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "fleet/turns.h"

/* Order of the held requests. BY_ARRIVAL, LATEST and SHORTEST are fcfs, lcfs and wspt in Dynamo
 * (lib/kv-router/src/scheduling/policy.rs, main branch of 2026). Dynamo's strict priorities are
 * none of these. */
enum gateway_order { GATEWAY_BY_ARRIVAL, GATEWAY_BY_PRIORITY, GATEWAY_LATEST, GATEWAY_SHORTEST };

struct gateway {
    bool hold;
    int32_t queue_depth;
    double kv_frac;
    int64_t stale_ns;
    enum gateway_order order; /* order of held requests within a class */
    struct classes classes;   /* classes of held requests, by the prompt tokens to compute */
    int32_t max_held;         /* most held requests of a class; with GATEWAY_BY_PRIORITY, of a
                                 class and priority; 0: no limit */
    /* An arrival is dropped if, at this rate, its prompt and those that wait at its replica would
     * take longer than its first token may take; 0: no arrival is dropped. */
    double prefill_tokens_s;
};

/* True if there is a gateway: arrivals then pass it even if there is only one replica. */
static inline bool gateway_is_there(const struct gateway *gateway)
{
    return gateway->hold || gateway->prefill_tokens_s > 0;
}

#endif
