/* Acceptance rates of guesses, from the keys of serving.speculation: for all requests, for those of
 * some clients, and for those with a rate in the trace. Sums over verified guesses for
 * speculation.csv. */
#ifndef SIM_RUN_SPECULATION_H
#define SIM_RUN_SPECULATION_H

#include "inflight/report.h"
#include "inflight/trace.h"

#include "config/config.h"
#include "replica/replica.h"

enum { SPECULATION_MAX_CLIENTS = 64 };

struct speculation {
    struct acceptance all, of_percent[101];
    struct acceptance own[SPECULATION_MAX_CLIENTS];
    const struct acceptance **of_client; /* [n_clients] or NULL */
};

/* Reads the keys. Returns 0 or the code of `error`; a client that the trace does not have is an
 * error. */
int speculation_create(struct speculation *speculation, const struct config *config,
                       const struct ifl_trace *trace, struct ifl_error *error);
void speculation_destroy(struct speculation *speculation); /* zeroed memory is valid */
/* Returns the options for replicas of `config`. They borrow `speculation`. */
struct ragged_options speculation_options(const struct speculation *speculation,
                                          const struct config *config);

/* Adds the sums of the replica to *sums. */
void speculation_add(const struct replica *replica, struct ifl_speculation_record *sums);

#endif
