#include "live/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inflight/minmax.h"
#include "inflight/time.h"
#include "live/timeval.h"

enum { SPARE_FDS = 128, BACKLOG = 4096, PAUSE_MS = 100, SWEEP_NS = 100000000 };

/* A connection, by its descriptor. evhttp does not say when it closes one. A new connection has the
 * least descriptor that is free: while connections are counted as open that are not, it is one of
 * theirs. For the bytes that they held, `inode` tells whether it is the same connection still. */
struct peer {
    struct http *http;
    struct bufferevent *bev;
    uint64_t inode;    /* 0: none */
    size_t held_bytes; /* received, and not yet taken by evhttp */
    enum { ELSEWHERE, IN_HEAD, IN_CHUNKS, REFUSED } place; /* of the next bytes to look at */
    size_t n_looked; /* of the bytes that are held, those that were looked at */
    uint64_t n_skip; /* bytes of a chunk, which are not looked at */
    bool is_chunked; /* the head says so */
    bool is_unseen;  /* what came behind a request was not looked at */
};

struct http {
    struct http_options options;
    struct evhttp *evhttp;
    struct evconnlistener *listener;
    struct event *pause;
    struct peer *peers;   /* [n_fds] */
    size_t n_fds, n_seen; /* no descriptor from n_seen on was a connection's */
    size_t n_peers, held_bytes;
    int64_t swept_ns;
};

static const char overload[] =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    "Content-Length: 135\r\n\r\n"
    "{\"error\":{\"message\":\"The server has no room for this connection. Please try again "
    "later.\",\"type\":\"ServiceUnavailableError\",\"code\":503}}";
static const char too_long[] = "HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: "
                               "application/json\r\nConnection: close\r\n"
                               "Content-Length: 102\r\n\r\n"
                               "{\"error\":{\"message\":\"The body is longer than this server "
                               "takes.\",\"type\":\"BadRequestError\","
                               "\"code\":413}}";
#define UNCLEAR "Invalid HTTP request received." /* uvicorn's words */
static const char wrong_chunk[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; "
                                  "charset=utf-8\r\nConnection: close\r\n"
                                  "Content-Length: 30\r\n\r\n" UNCLEAR;

/* ---- connections ---- */

static uint64_t inode_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? (uint64_t)status.st_ino : 0;
}

static void forget(struct http *http, struct peer *peer)
{
    if (peer->inode == 0)
        return;
    http->n_peers--;
    http->held_bytes -= peer->held_bytes;
    peer->inode = 0;
    peer->held_bytes = 0;
}

/* Forgets connections that are closed; now and then, for each is asked about. */
static void sweep(struct http *http)
{
    const int64_t now_ns = clock_steady_ns();
    if (now_ns - http->swept_ns < SWEEP_NS)
        return;
    http->swept_ns = now_ns;
    for (size_t fd = 0; fd < http->n_seen; fd++)
        if (http->peers[fd].inode != 0 && inode_of((int)fd) != http->peers[fd].inode)
            forget(http, &http->peers[fd]);
}

/* The last answer of a connection, of which `how` is shut down. */
static void answer_last(const struct peer *peer, const char *answer, int how)
{
    const int fd = (int)(peer - peer->http->peers);
    if (send(fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 || shutdown(fd, how) < 0)
        return; /* the client has gone already */
}

/* A length that is no number is judged by is_clear. */
static bool is_too_long(const char *line, size_t most)
{
    static const char name[] = "Content-Length:";
    if (evutil_ascii_strncasecmp(line, name, sizeof name - 1) != 0)
        return false;
    const char *value = line + sizeof name - 1;
    value += strspn(value, " \t");
    return *value >= '0' && *value <= '9' && strtoull(value, NULL, 10) > most;
}

/* While it answers, evhttp reads nothing. */
static bool is_read(const struct peer *peer)
{
    bufferevent_data_cb read;
    bufferevent_getcb(peer->bev, &read, NULL, NULL, NULL);
    return read != NULL;
}

/* evhttp sees the end of the connection, and frees what it has of it. Within an answer the status
 * would be taken for a part of it. */
static void turn_away(struct peer *peer)
{
    forget(peer->http, peer);
    answer_last(peer, is_read(peer) ? overload : "", SHUT_RDWR);
}

static bool says_chunked(const char *line)
{
    static const char name[] = "Transfer-Encoding:", chunked[] = "chunked";
    if (evutil_ascii_strncasecmp(line, name, sizeof name - 1) != 0)
        return false;
    const char *value = line + sizeof name - 1;
    value += strspn(value, " \t");
    return evutil_ascii_strncasecmp(value, chunked, sizeof chunked - 1) == 0 &&
           value[sizeof chunked - 1 + strspn(value + sizeof chunked - 1, " \t")] == '\0';
}

static void look_at_head(struct peer *peer, const char *line, size_t most)
{
    if (!*line) {
        peer->place = peer->is_chunked ? IN_CHUNKS : ELSEWHERE;
    } else if (is_too_long(line, most)) {
        answer_last(peer, too_long, SHUT_WR);
        peer->place = ELSEWHERE;
    } else {
        peer->is_chunked |= says_chunked(line);
    }
}

/* The size of a chunk (RFC 9112, 7.1), without extensions, which evhttp does not take; or the end
 * of one. A size that is too large is left to evhttp. */
static void look_at_size(struct peer *peer, const char *line, size_t most)
{
    const size_t n_digits = strspn(line, "0123456789abcdefABCDEF");
    if (!*line)
        return;
    if (n_digits == 0 || (line[n_digits] != '\0' && line[n_digits] != ' ')) {
        answer_last(peer, wrong_chunk, SHUT_WR);
        peer->place = REFUSED;
        return;
    }
    peer->n_skip = strtoull(line, NULL, 16);
    if (peer->n_skip == 0 || peer->n_skip > most)
        peer->place = ELSEWHERE;
}

static bool look_at_line(struct peer *peer, struct evbuffer *buffer)
{
    const size_t most = (size_t)peer->http->options.live->limits.body_kib << 10;
    char line[128] = "";
    struct evbuffer_ptr begin, end;
    size_t n_eol;
    evbuffer_ptr_set(buffer, &begin, peer->n_looked, EVBUFFER_PTR_SET);
    end = evbuffer_search_eol(buffer, &begin, &n_eol, EVBUFFER_EOL_CRLF);
    if (end.pos < 0)
        return false;
    evbuffer_copyout_from(buffer, &begin, line,
                          ifl_min((size_t)(end.pos - begin.pos), sizeof line - 1));
    peer->n_looked = (size_t)end.pos + n_eol;
    if (peer->is_unseen && end.pos == 0) /* the end of a first line that evhttp has taken */
        *line = ' ';
    peer->is_unseen = false;
    (peer->place == IN_HEAD ? look_at_head : look_at_size)(peer, line, most);
    return true;
}

/* Looks at the lines that evhttp is about to take: of a head, and the sizes of chunks. It would
 * answer a body that is too long only once all of it has come; here it is answered by its length,
 * and evhttp takes what comes all the same: a client may read only when it has sent its body. A
 * chunk without a size it would answer as one that is too long. Answers come in the order of
 * requests (RFC 9112, 9.3.2): a head that came within an answer is looked at when the answer has
 * been sent. evhttp then takes its first line, and the end of that line in a second call. */
static void watch_lines(struct peer *peer, struct evbuffer *buffer)
{
    bool more = true;
    while (more && (peer->place == IN_HEAD || peer->place == IN_CHUNKS)) {
        const size_t n_new = evbuffer_get_length(buffer) - peer->n_looked;
        const size_t n_skipped = (size_t)ifl_min(peer->n_skip, (uint64_t)n_new);
        peer->n_looked += n_skipped;
        peer->n_skip -= n_skipped;
        more = n_skipped < n_new && look_at_line(peer, buffer);
    }
    if (peer->place == REFUSED)
        evbuffer_drain(buffer, evbuffer_get_length(buffer));
}

static void count_bytes(struct evbuffer *buffer, const struct evbuffer_cb_info *info, void *context)
{
    struct peer *peer = context;
    struct http *http = peer->http;
    const size_t limit = (size_t)http->options.live->limits.bodies_mib << 20;
    const size_t held = evbuffer_get_length(buffer);
    if (peer->inode == 0) /* it was turned away */
        return;
    http->held_bytes += held - peer->held_bytes;
    peer->held_bytes = held;
    peer->n_looked -= ifl_min(peer->n_looked, info->n_deleted);
    if ((info->n_added > 0 || peer->is_unseen) && is_read(peer))
        watch_lines(peer, buffer);
    if (info->n_added == 0 || http->held_bytes <= limit)
        return;
    sweep(http);
    if (http->held_bytes > limit)
        turn_away(peer);
}

/* The next bytes that are held are the first of a request. */
static void begin_head(struct peer *peer)
{
    peer->place = IN_HEAD;
    peer->is_chunked = false;
    peer->n_looked = 0;
    peer->n_skip = 0;
}

static void take(struct http *http, struct bufferevent *bev)
{
    const int fd = bufferevent_getfd(bev), yes = 1;
    if (fd < 0 || (size_t)fd >= http->n_fds)
        return;
    struct peer *peer = &http->peers[fd];
    forget(http, peer);
    peer->bev = bev;
    begin_head(peer);
    peer->is_unseen = false;
    peer->inode = inode_of(fd);
    http->n_peers += peer->inode != 0;
    http->n_seen = ifl_max(http->n_seen, (size_t)fd + 1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    evbuffer_add_cb(bufferevent_get_input(bev), count_bytes, peer);
    if (http->n_peers > (size_t)http->options.live->limits.connections)
        turn_away(peer);
}

struct coming {
    struct http *http;
    struct bufferevent *bev;
};

static void on_coming(evutil_socket_t fd, short what, void *context)
{
    struct coming *coming = context;
    (void)fd;
    (void)what;
    take(coming->http, coming->bev);
    free(coming);
}

/* The bufferevent has its descriptor as evhttp's own function has returned: at once behind this
 * one, before anything is read. What is not asked for is not read beyond the largest request. */
static struct bufferevent *on_accept(struct event_base *base, void *context)
{
    struct http *http = context;
    const struct live_limits *limits = &http->options.live->limits;
    const struct timeval now = {0, 0};
    const size_t most = ((size_t)limits->body_kib + (size_t)limits->header_kib + 64) << 10;
    struct bufferevent *bev = bufferevent_socket_new(base, -1, 0);
    struct coming *coming = malloc(sizeof *coming);
    if (bev)
        bufferevent_setwatermark(bev, EV_READ, 0, most);
    if (bev && coming)
        *coming = (struct coming){http, bev};
    if (!bev || !coming || event_base_once(base, -1, EV_TIMEOUT, on_coming, coming, &now) < 0)
        free(coming);
    return bev;
}

/* ---- listening ---- */

static void on_pause_over(evutil_socket_t fd, short what, void *context)
{
    const struct http *http = context;
    (void)fd;
    (void)what;
    if (http->listener)
        evconnlistener_enable(http->listener);
}

/* Without a descriptor for it a connection waits in the kernel. */
static void on_accept_error(struct evconnlistener *listener, void *context)
{
    const struct http *http = context;
    const struct timeval pause = {0, PAUSE_MS * 1000L};
    evconnlistener_disable(listener);
    evtimer_add(http->pause, &pause);
}

static int bind_to(const struct live_config *live, struct ifl_error *error)
{
    char port[16];
    struct addrinfo *found = NULL;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    const int yes = 1;
    snprintf(port, sizeof port, "%d", live->port);
    const int rc = getaddrinfo(live->host, port, &wanted, &found);
    if (rc != 0)
        return ifl_fail(error, IFL_E_INPUT, "live.host is %s, expected an address: %s", live->host,
                        gai_strerror(rc));
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const bool bound =
        fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    freeaddrinfo(found);
    if (bound)
        return fd;
    ifl_fail(error, IFL_E_IO, "cannot listen at %s:%d (live.host, live.port): %s", live->host,
             live->port, strerror(errno));
    if (fd >= 0)
        close(fd);
    return error->code;
}

static int listen_at(struct http *http, struct ifl_error *error)
{
    const int fd = bind_to(http->options.live, error);
    if (fd < 0)
        return error->code;
    http->listener = evconnlistener_new(http->options.base, NULL, NULL,
                                        LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!http->listener) {
        close(fd);
        return ifl_fail_nomem(error);
    }
    if (!evhttp_bind_listener(http->evhttp, http->listener))
        return ifl_fail_nomem(error);
    evconnlistener_set_error_cb(http->listener, on_accept_error);
    return 0;
}

int http_port(const struct http *http)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {.v6 = {0}};
    socklen_t n_bytes = sizeof at;
    if (!http->listener ||
        getsockname(evconnlistener_get_fd(http->listener), &at.any, &n_bytes) < 0)
        return -1;
    return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

size_t http_n_connections(struct http *http)
{
    sweep(http);
    return http->n_peers;
}

/* As many descriptors as the connections need, if they may be had. */
static size_t raise_fds(size_t n_connections)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1024;
    const rlim_t wanted = n_connections + SPARE_FDS;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = ifl_min(wanted, limit.rlim_max);
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            getrlimit(RLIMIT_NOFILE, &limit);
    }
    return (size_t)ifl_min(limit.rlim_cur, (rlim_t)1 << 20);
}

/* RFC 9110, 5.6.2: what a name of a header may hold. */
static bool is_token(const char *name)
{
    static const char letters[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return *name && name[strspn(name, letters)] == '\0';
}

/* What a proxy in front may read otherwise than evhttp, so that one of the two takes a part of the
 * body for a request (RFC 9112, 3.2, 5.1, 6.1 and 6.3): several lengths or hosts, a length that is
 * no number, another coding than chunked, a blank in a name. */
static bool is_clear(struct evhttp_request *request)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
    int n_lengths = 0, n_codings = 0, n_hosts = 0;
    for (const struct evkeyval *one = headers->tqh_first; one; one = one->next.tqe_next) {
        const bool is_length = evutil_ascii_strcasecmp(one->key, "Content-Length") == 0;
        const bool is_coding = evutil_ascii_strcasecmp(one->key, "Transfer-Encoding") == 0;
        n_lengths += is_length;
        n_codings += is_coding;
        n_hosts += evutil_ascii_strcasecmp(one->key, "Host") == 0;
        if (!is_token(one->key) ||
            (is_length && (!*one->value || one->value[strspn(one->value, "0123456789")])) ||
            (is_coding && evutil_ascii_strcasecmp(one->value, "chunked") != 0))
            return false;
    }
    return n_lengths <= 1 && n_codings <= 1 && n_hosts <= 1 && n_lengths + n_codings <= 1;
}

/* Behind a request the next one begins. */
static void expect_head(const struct http *http, struct evhttp_request *request)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    const int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
    if (fd < 0 || (size_t)fd >= http->n_fds)
        return;
    begin_head(&http->peers[fd]);
    http->peers[fd].is_unseen = true;
}

static void on_request(struct evhttp_request *request, void *context)
{
    const struct http *http = context;
    expect_head(http, request);
    if (is_clear(request)) {
        http->options.handle(http->options.context, request);
        return;
    }
    evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    http_reply(request, 400, "text/plain; charset=utf-8", UNCLEAR, sizeof UNCLEAR - 1);
}

static int open_server(struct http *http, struct ifl_error *error)
{
    const struct live_limits *limits = &http->options.live->limits;
    const struct timeval idle = timeval_of_s(limits->idle_s);
    http->n_fds = raise_fds((size_t)limits->connections);
    http->peers = calloc(http->n_fds, sizeof *http->peers);
    http->evhttp = evhttp_new(http->options.base);
    http->pause = evtimer_new(http->options.base, on_pause_over, http);
    if (!http->peers || !http->evhttp || !http->pause)
        return ifl_fail_nomem(error);
    for (size_t fd = 0; fd < http->n_fds; fd++)
        http->peers[fd].http = http;
    evhttp_set_max_headers_size(http->evhttp, (ev_ssize_t)limits->header_kib << 10);
    evhttp_set_max_body_size(http->evhttp, (ev_ssize_t)limits->body_kib << 10);
    evhttp_set_timeout_tv(http->evhttp, &idle);
    evhttp_set_allowed_methods(http->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                                 EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                                 EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
    evhttp_set_flags(http->evhttp, EVHTTP_SERVER_LINGERING_CLOSE);
    evhttp_set_bevcb(http->evhttp, on_accept, http);
    evhttp_set_gencb(http->evhttp, on_request, http);
    return listen_at(http, error);
}

struct http *http_open(const struct http_options *options, struct ifl_error *error)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http) {
        ifl_fail_nomem(error);
        return NULL;
    }
    http->options = *options;
    if (open_server(http, error) < 0) {
        http_close(http);
        return NULL;
    }
    return http;
}

void http_stop_listening(struct http *http)
{
    if (http->listener)
        evconnlistener_disable(http->listener);
}

void http_close(struct http *http)
{
    if (!http)
        return;
    if (http->evhttp)
        evhttp_free(http->evhttp); /* the listener with it */
    if (http->pause)
        event_free(http->pause);
    free(http->peers);
    free(http);
}

/* ---- answers ---- */

const char *http_reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 413:
        return "Request Entity Too Large";
    case 500:
        return "Internal Server Error";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    default:
        return "Error";
    }
}

void http_reply(struct evhttp_request *request, int status, const char *type, const char *body,
                size_t n_bytes)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    struct evbuffer *out = evhttp_request_get_output_buffer(request);
    char length[24];
    if (type)
        evhttp_add_header(headers, "Content-Type", type);
    if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
        /* RFC 9110, 9.3.2: the length of a body that does not follow. evhttp would send the body.
         */
        snprintf(length, sizeof length, "%zu", n_bytes);
        evhttp_add_header(headers, "Content-Length", length);
    } else {
        evbuffer_add(out, body, n_bytes);
    }
    evhttp_send_reply(request, status, http_reason(status), NULL);
}

/* evhttp does not expect anything from a client that it has yet to answer, and would end the
 * program: what comes early stays unread, but the end of the connection is noticed. */
void http_hold(struct evhttp_request *request, const struct live_limits *limits,
               void (*gone)(struct evhttp_connection *connection, void *context), void *context)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    struct bufferevent *bev = evhttp_connection_get_bufferevent(connection);
    const struct timeval idle = timeval_of_s(limits->idle_s);
    bufferevent_data_cb read, write;
    bufferevent_event_cb event;
    void *of;
    bufferevent_getcb(bev, &read, &write, &event, &of);
    bufferevent_setcb(bev, NULL, write, event, of);
    bufferevent_set_timeouts(bev, NULL, &idle);
    bufferevent_enable(bev, EV_READ);
    evhttp_connection_set_closecb(connection, gone, context);
}

static void restore(struct evhttp_request *request, void *context)
{
    const struct live_limits *limits = context;
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    const struct timeval idle = timeval_of_s(limits->idle_s);
    if (connection)
        bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection), &idle, &idle);
}

void http_release(struct evhttp_request *request, const struct live_limits *limits)
{
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
    evhttp_request_set_on_complete_cb(request, restore, (void *)(uintptr_t)limits);
}

size_t http_unsent_bytes(struct evhttp_request *request)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request);
    return connection ? evbuffer_get_length(
                            bufferevent_get_output(evhttp_connection_get_bufferevent(connection)))
                      : 0;
}
