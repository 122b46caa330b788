/* Structs and functions that the files of the server share: serve.c starts and ends it,
 * serve_routes.c takes requests, serve_answer.c writes answers, serve_metrics.c counts. */
#ifndef SIM_LIVE_SERVE_PARTS_H
#define SIM_LIVE_SERVE_PARTS_H

#include "live/http.h"
#include "live/serve.h"
#include "live/serve_ask.h"
#include "live/serve_logprobs.h"
#include "live/serve_metrics.h"
#include "live/serve_tokenizer.h"
#include "live/source.h"

enum { SERVE_MOST_MODELS = 64 };

struct exchange;

struct serve {
    const struct config *config;
    const struct live_config *live; /* of config */
    int32_t most_samples;           /* of a request */
    struct event_base *base;
    struct live_source *source;
    struct http *http;
    struct event *terminated, *interrupted, *every, *stalls;
    const struct flight *flight; /* NULL: not yet */
    struct served_model models[SERVE_MOST_MODELS];
    char model_names[SERVE_MOST_MODELS][128];
    const char *configured[SERVE_MOST_MODELS]; /* the same as the configuration has them */
    char *quoted_names[SERVE_MOST_MODELS];     /* in JSON */
    size_t model_of_pool[MAX_POOLS];           /* index of `models` */
    const char **model_of_replica;             /* [flight->n_replicas] its name */
    struct served_text text;
    struct served_models served;
    struct ifl_trace lengths; /* of answers, drawn in advance */
    struct serve_metrics metrics;
    struct exchange *exchanges; /* list of all exchanges */
    size_t n_exchanges;
    uint64_t n_asked; /* requests of completions and chats so far */
    double started_s; /* seconds of the steady clock */
    long started_at;  /* wall-clock time, seconds since 1970 */
    bool stopping;
    void (*ready)(void *context, const struct serve *serve);
    void *ready_context;
};

/* A prompt of an exchange, with its answers. */
struct part {
    struct exchange *exchange;
    size_t number; /* number of the prompt */
    int64_t row;   /* row of the source; -1: the request has ended */
    int32_t n_prompt, n_output;
    int64_t sent_ns, last_ns;
};

/* A client's request and its answer. */
struct exchange {
    struct serve *serve;
    struct exchange *prev, *next;
    struct evhttp_request *http; /* NULL: the client has gone */
    struct ask ask;
    char id[ASK_NAME_BYTES + 16];
    long created;
    struct part *parts;      /* [ask.n_prompts] */
    struct evbuffer *out;    /* what is to be sent next */
    struct text_flow *flows; /* [ask.n_prompts * ask.n] of the answers' texts */
    struct weighed
        *weighed; /* [ask.n_prompts * ask.n] with logprobs: what is to be said of tokens */
    struct tokens *answers; /* [ask.n_prompts * ask.n], where the answer is sent at its end, or with
                               its tokens */
    size_t n_open;          /* prompts that have not ended */
    bool started;           /* the answer's head has been sent */
    bool failed;
    int64_t n_prompt_tokens, n_cached_tokens, n_answer_tokens;
    struct ifl_request_record record; /* of the last prompt to end */
};

/* ---- serve_answer.c ---- */

/* Listeners of the source: the owner is a struct part. */
void answer_token(void *context, void *owner, const struct source_token *token);
void answer_ended(void *context, void *owner, const struct ifl_request_record *record);
/* Removes the prompts of the exchange from the flight. */
void answer_leave(struct exchange *exchange);
/* Called when the client has gone. */
void answer_gone(struct evhttp_connection *connection, void *exchange);
void answer_free(struct exchange *exchange);
/* Call it when the flight is over: the remaining exchanges end with an error. */
void answer_refuse_all(struct serve *serve);
/* Sends an error in place of the answer, or at its end. */
void answer_refuse(struct evhttp_request *http, const struct answer_error *refusal);

/* ---- serve_routes.c ---- */

void routes_handle(void *serve, struct evhttp_request *http);

#endif
