/* Simultaneous HTTP/1.1 transfers in one thread: libcurl's multi interface over epoll. It is a
 * module of its own (http_curl.c), since libcurl and its libraries take longer to load than a small
 * run takes.
 *
 * Time is that of CLOCK_MONOTONIC. Redirects are never followed: otherwise a server could send the
 * client, and with it the key, elsewhere. The length of headers is bounded. The bytes of a body are
 * passed on and not kept. */
#ifndef SIM_LIVE_REPLAY_HTTP_H
#define SIM_LIVE_REPLAY_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

#include "live/replay_text.h"

enum { REPLAY_HEADERS_BYTES = 64 << 10 };

struct replay_server { /* how a server is reached */
    const char *url;   /* "http://host:8000", without a slash at the end, or with a path in front */
    const char *key;   /* of the API; NULL: none */
    const char *const *headers; /* [n_headers] "Name: value" */
    size_t n_headers;
    const char *ca_path; /* certificates; NULL: the system's */
    bool insecure;       /* any certificate will do */
    const char *proxy;   /* NULL: none, whatever the environment says */
};

/* Checks the server's URL: http or https, a host, no user, query or fragment. Returns IFL_E_INPUT
 * otherwise. */
int replay_server_check(const struct replay_server *server, struct ifl_error *error);

struct replay_http; /* opaque */
struct replay_call; /* a transfer; opaque */

struct replay_end {
    int64_t now_ns;
    long status; /* 0: no answer came */
    int64_t
        connect_ns; /* from the call to a connection that takes the request; -1: there was none */
    const char *error; /* NULL: the answer is whole, whatever its status */
};

struct replay_handler {
    /* Receives the next bytes of the answer. Returning false ends the transfer, and `done` gets an
     * error. */
    bool (*take)(void *context, struct replay_call *call, int64_t now_ns, const char *bytes,
                 size_t n);
    /* Called when the transfer is over; the call is freed when `done` returns. Not called after a
     * cancel. */
    void (*done)(void *context, const struct replay_end *end);
    void *context;
};

/* On success the caller must call replay_http_close. The server is borrowed. */
int replay_http_open(const struct replay_server *server, struct replay_http **http,
                     struct ifl_error *error);
void replay_http_close(struct replay_http *http); /* cancels all calls; accepts NULL */

/* Starts a transfer to the server's URL followed by `path`: a POST of the body, which must stay
 * valid until the end of the transfer, or a GET if the body is NULL. Returns NULL if memory is
 * short. */
struct replay_call *replay_http_start(struct replay_http *http, const char *path, const char *body,
                                      size_t n_body, const struct replay_handler *handler);
/* Ends the transfer at once and closes its connection, so that the server notices. Must not be
 * called within `take` or `done`. */
void replay_http_cancel(struct replay_http *http, struct replay_call *call);

/* Status of an answer that has begun. */
long replay_call_status(const struct replay_call *call);
const char *replay_call_type(const struct replay_call *call); /* content-type, "" without one */
bool replay_call_headers_too_long(const struct replay_call *call);

/* Waits until `until_ns`, or until something has happened, and handles the transfers. */
int replay_http_wait(struct replay_http *http, int64_t until_ns, struct ifl_error *error);

/* The functions above, as the module inflight_http exports them. */
struct replay_http_module {
    size_t n_bytes; /* of this struct */
    int (*server_check)(const struct replay_server *server, struct ifl_error *error);
    int (*open)(const struct replay_server *server, struct replay_http **http,
                struct ifl_error *error);
    void (*close)(struct replay_http *http);
    struct replay_call *(*start)(struct replay_http *http, const char *path, const char *body,
                                 size_t n_body, const struct replay_handler *handler);
    void (*cancel)(struct replay_http *http, struct replay_call *call);
    long (*status)(const struct replay_call *call);
    const char *(*type)(const struct replay_call *call);
    bool (*headers_too_long)(const struct replay_call *call);
    int (*wait)(struct replay_http *http, int64_t until_ns, struct ifl_error *error);
};

/* ---- one transfer, which the caller waits for ---- */

struct replay_got {
    long status;
    struct replay_text text; /* a NUL follows; the caller frees it, after an error, too */
};
/* GETs `path` of the server, at most most_bytes of it. IFL_E_DEVICE if no answer comes within
 * timeout_s; every status is an answer. */
int replay_http_get(const struct replay_server *server, const char *path, size_t most_bytes,
                    double timeout_s, struct replay_got *got, struct ifl_error *error);

#endif
