/* An HTTP/1.1 server on libevent's evhttp, with limits on what a client can use. Beyond a limit of
 *
 *   - headers, evhttp answers 400;
 *   - a body, the answer is 413: at once if the body's length is given, else when it has become too
 *     long; while a request is being answered, behind its answer;
 *   - connections, or bytes of all bodies that are being received, the answer is 503, and the
 *     connection is shut down.
 *
 * Idle connections are closed, and so are those of clients that do not read their answers. */
#ifndef SIM_LIVE_HTTP_H
#define SIM_LIVE_HTTP_H

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "inflight/error.h"

#include "config/config.h"

struct http_options {
    struct event_base *base;
    const struct live_config *live;
    void (*handle)(void *context, struct evhttp_request *request);
    void *context;
};

struct http;

/* Listens. Returns NULL, with `error` set, if the address is not available. */
struct http *http_open(const struct http_options *options, struct ifl_error *error);
void http_close(struct http *http); /* accepts NULL; connections are closed */
void http_stop_listening(struct http *http);
int http_port(const struct http *http);
size_t http_n_connections(struct http *http); /* a tenth of a second old at most */

/* Answers with a whole body; a HEAD request gets only its length. `type` is the content type. */
void http_reply(struct evhttp_request *request, int status, const char *type, const char *body,
                size_t n_bytes);
/* The words of a status. */
const char *http_reason(int status);
/* Call it when the answer will follow later: `gone` is called if the client disconnects before
 * http_release, and nothing else reads from the connection. While a request is held, only writing
 * may time out. */
void http_hold(struct evhttp_request *request, const struct live_limits *limits,
               void (*gone)(struct evhttp_connection *connection, void *context), void *context);
/* Call it when the answer is complete except for its last bytes. */
void http_release(struct evhttp_request *request, const struct live_limits *limits);
/* Bytes of the answer that the client has not taken yet. */
size_t http_unsent_bytes(struct evhttp_request *request);

#endif
