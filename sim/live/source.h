/* The source of a served flight: it has places for the requests of a server's clients and the
 * clock, and passes tokens and ends back to the server.
 *
 * The flight and the server share one thread. While the flight waits for the clock, the source runs
 * libevent's loop, in which the server takes requests (source_send) and notices that clients have
 * gone (source_leave). The flight's tokens and ends come back through struct source_listener, in
 * order, delayed by the time that the front end takes for a token.
 *
 * The clock stands at 0 until the first request comes, so a recording begins with that request. */
#ifndef SIM_LIVE_SOURCE_H
#define SIM_LIVE_SOURCE_H

#include <event2/event.h>

#include "inflight/attributes.h"

#include "live/source_trace.h"
#include "run/source.h"

/* Callbacks for requests. `owner` is that of source_send. */
struct source_listener {
    /* A token. token->at_ns is the time at the client. `owner` is NULL after source_leave. */
    void (*token)(void *context, void *owner, const struct source_token *token);
    /* The request has ended; `owner` is not passed again. */
    void (*ended)(void *context, void *owner, const struct ifl_request_record *record);
    /* A step of any replica has ended. */
    void (*step)(void *context, const struct replica *replica, const struct ifl_done *done);
    void (*begin)(void *context, const struct flight *flight);
    void *context;
};

struct source_options {
    struct event_base *base;
    size_t n_places;      /* requests that may be in the flight at once */
    size_t most_requests; /* requests that will ever arrive, at most */
    int32_t most_samples;
    uint32_t most_clients;     /* clients with names of their own */
    const char *const *models; /* [n_models] that a request may name; borrowed */
    size_t n_models;
    double speed;          /* seconds of the flight per second */
    bool keeps_ids;        /* prompts have an identity, and are recorded with it */
    bool names_answers;    /* answers have an identity, too: their tokens are drawn */
    const uint32_t *words; /* [n_words] that tokens are drawn from; NULL: SOURCE_VOCABULARY */
    size_t n_words;
    const char *trace_path; /* the recording; NULL: none */
    const struct source_listener *listener;
};

struct live_source; /* opaque */

/* Returns NULL, with `error` set, on failure. */
struct live_source *source_create(const struct source_options *options, struct ifl_error *error);
void source_destroy(struct live_source *source); /* accepts NULL */
/* Returns the source to be given to a flight. */
const struct source *source_of(struct live_source *source);
/* Returns the time of the flight. */
int64_t source_now_ns(const struct live_source *source);

/* A request as a client sends it. */
struct source_request {
    int32_t n_prompt, n_output, max_tokens, samples, priority;
    int32_t n_logprobs;    /* likeliest tokens to name with each of the answer; -1: none is asked */
    uint32_t model;        /* 1 + its index among the models; 0: any */
    const char *client;    /* or "" */
    const char *session;   /* or "" */
    const int32_t *tokens; /* [n_prompt]; or NULL: they have no identity */
};

enum { SOURCE_FULL = -1 };

/* Sends a request. Returns its row, or SOURCE_FULL if there is no place for it. */
int64_t source_send(struct live_source *source, const struct source_request *request, void *owner);
/* Call it when the client of the row's request has gone. Its owner is not passed again. */
void source_leave(struct live_source *source, size_t row);
/* Call it when no request comes any more; present requests leave. */
void source_close(struct live_source *source);
/* Writes the recording so far. Call it only while the flight is under way. */
int source_flush(struct live_source *source, struct ifl_error *error);
/* Ends the flight with that error. */
void source_fail(struct live_source *source, const struct ifl_error *error);
uint64_t source_n_sent(const struct live_source *source); /* so far */
/* Returns when the row's request was sent, in the time of the flight. */
int64_t source_sent_ns(const struct live_source *source, size_t row);
/* Tokens of answers are numbers below it, where neither an engine nor options.words has others. */
enum { SOURCE_VOCABULARY = 2205 };

#endif
