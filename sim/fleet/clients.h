/* The patience of clients, after which they leave, and their retries. */
#ifndef SIM_FLEET_CLIENTS_H
#define SIM_FLEET_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

enum patience_process {
    PATIENCE_NONE, /* without a bound */
    PATIENCE_CONSTANT,
    PATIENCE_EXPONENTIAL,
    PATIENCE_LOGNORMAL
};

/* The time after sending its request at which a client leaves, whether the request is answered or
 * not. */
struct patience {
    enum patience_process process;
    double mean_s;
    double cv;              /* lognormal: standard deviation over mean */
    bool until_first_token; /* a client that has its first token stays, whatever the trace says */
    uint64_t seed;
};

/* Draws the patience of a request's client, keyed by the request's id; IFL_NEVER: without a bound.
 */
int64_t patience_ns(const struct patience *patience, uint64_t request_id);

/* A request that was shed, timed out or aborted is sent again. Its k-th retry, counted from 0,
 * follows after
 *
 *     min(backoff_s * factor^k, max_backoff_s) * (1 - u * jitter_frac)
 *
 * with u uniform in (0, 1). OpenAI's Python client (openai 1.x, _base_client.py,
 * _calculate_retry_timeout) does so with 0.5 s, 2, 8 s, 0.25, and at most twice. */
struct retries {
    int32_t most; /* most retries of a request; 0: it is sent once */
    double backoff_s, factor, max_backoff_s, jitter_frac;
    uint64_t seed;
};

int64_t retries_backoff_ns(const struct retries *retries, uint64_t request_id, int32_t k);

#endif
