/* A source: requests that are not known before the run. The clients of a server send them, and
 * leave, while a flight is under way.
 *
 * The workload's trace has a row for each place of the source. The source fills in the row of a
 * request before the request arrives, and may use the row again when it has ended. A row does not
 * change from the arrival on, except that abort_ns is written when the client leaves. A trace with
 * the same rows in the order of arrival, flown again on the same simulating executor, gives the
 * same steps and the same records.
 *
 * A request arrives, or leaves, at the later of the clock and 1 ns after the last event that the
 * loop has handled. All functions but `wake` are called by the thread that flies. */
#ifndef SIM_RUN_SOURCE_H
#define SIM_RUN_SOURCE_H

#include "inflight/executor.h"
#include "inflight/report.h"

struct flight;
struct replica;

enum source_says {
    SOURCE_EMPTY,   /* there may be something later */
    SOURCE_ARRIVAL, /* the request in `row` arrives */
    SOURCE_LEAVES,  /* the client of the request in `row`, which has arrived before, has gone */
    SOURCE_CLOSED,  /* no request comes or leaves any more; `take` is not called again */
    SOURCE_FAILED   /* the flight ends with the error */
};

/* Identities of the leading tokens of the prompt, and of the answer behind it. */
struct source_ids {
    const uint64_t *of; /* [n], a number for each token together with those before it. Unchanged
                           from the arrival of the request until it has ended */
    int32_t n;
};

struct source_token {
    size_t row;
    int32_t seq, index; /* seq: the answer, from 0 on; index: its tokens before this one */
    int32_t id;         /* -1: the executor has no token ids */
    uint32_t replica;
    int64_t at_ns; /* the end of the step */
    const struct ifl_logprobs
        *logprobs; /* if they were asked for; until `token` returns, or NULL */
};

struct source_ops {
    /* Time in ns since the beginning of the flight, from a steady clock. */
    int64_t (*now)(void *self);
    /* Returns when the clock says until_ns, when `take` has something to say, or after `wake`. The
     * source may do its own work meanwhile, even if until_ns has passed. */
    void (*wait)(void *self, int64_t until_ns);
    /* Ends `wait`. May be called by any thread. */
    void (*wake)(void *self);
    /* True if `take` would not answer SOURCE_EMPTY. */
    bool (*has)(void *self);
    enum source_says (*take)(void *self, size_t *row, struct ifl_error *error);
    /* The row's request is sent, or its client leaves, at at_ns, a time of the flight. */
    void (*stamp)(void *self, size_t row, enum source_says what, int64_t at_ns);
    struct source_ids (*ids)(void *self, size_t row);
    /* Returns the tokens of the row's prompt, for an engine; valid until the request has ended.
     * NULL: there are none. */
    const int32_t *(*prompt)(void *self, size_t row);
    /* Returns how many of the likeliest tokens an engine is to report with each token of the
     * answer; -1: no probabilities are asked for. */
    int32_t (*logprobs)(void *self, size_t row);
    void (*token)(void *self, const struct source_token *token);
    /* A step has ended, and its tokens have been told. */
    void (*step)(void *self, const struct replica *replica, const struct ifl_done *done);
    /* The row's request has left the flight. Its row may be used again once its replica, if any,
     * keeps no request that has ended (leaving.n_ended). */
    void (*ended)(void *self, size_t row, const struct ifl_request_record *record, int64_t at_ns);
    /* Called once, before all other functions. `flight` is valid until flight_run returns. */
    void (*begin)(void *self, const struct flight *flight);
};

struct source {
    const struct source_ops *ops;
    void *self;
    struct ifl_trace *trace; /* the source's, with a row for each place; its rows change */
    size_t most_requests;    /* requests that will ever arrive, at most */
    int32_t most_samples;    /* most samples of a request */
};

#endif
