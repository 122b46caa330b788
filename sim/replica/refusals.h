/* Reasons for which requests wait or are dropped: the module that refused, and its text. */
#ifndef SIM_REPLICA_REFUSALS_H
#define SIM_REPLICA_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/request.h"

struct ifl_policy;
struct live_request;

/* A refusal within the plan under way. */
struct refusal {
    struct live_request *r; /* NULL: no request was refused */
    const struct ifl_policy *by;
    const char *why; /* constant text that continues a sentence that begins with the module's
                        name */
    bool lasts;      /* the refusal stays the same as long as no request comes or leaves */
};

/* Counts of requests that left for good without their last token, by reason. Beyond REFUSALS_MOST
 * different reasons, the last entry counts all others. */
enum { REFUSALS_MOST = 16 };

struct refusal_count {
    const struct ifl_policy *by;
    const char *why;
    uint64_t n_rejected, n_failed; /* requests that had never run, requests that had */
    uint64_t n_beside;             /* of these, requests dropped while others ran to which the plan
                                      gave no tokens */
};

struct refusals { /* zeroed: none */
    struct refusal_count of[REFUSALS_MOST];
    size_t n;
};

/* Adds the counts to the entry with the same module and text. */
void refusals_add(struct refusals *refusals, const struct refusal_count *more);

#endif
