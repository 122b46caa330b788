/* The module inflight_http: transfers by libcurl. */
#include "live/replay_http.h"

#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inflight/minmax.h"
#include "inflight/time.h"

/* Seconds until a connection stands; connections that are kept for later transfers; answers that
 * are read before the caller looks at what is due. */
enum { CONNECT_S = 30, KEPT_CONNECTIONS = 8192, EVENTS = 32 };

struct replay_call {
    CURL *easy;
    struct replay_http *http;
    struct replay_handler handler;
    struct curl_slist *headers; /* borrowed */
    size_t n_header_bytes;
    bool too_long;
    int64_t started_ns;
    char why[CURL_ERROR_SIZE];
    struct replay_call *next, *before; /* of those under way; `next` of those that are idle */
};

struct replay_http {
    const struct replay_server *server;
    CURLM *multi;
    int epoll, timer;
    int64_t curl_ns;                 /* when libcurl must be called; IFL_NEVER: never */
    int64_t timer_ns;                /* that the timer is set to */
    bool started;                    /* a call since the last wait, which may be over already */
    struct curl_slist *post_headers; /* of a body in JSON */
    struct curl_slist *get_headers;
    struct replay_call *calls; /* under way */
    struct replay_call *idle;  /* with a handle that may be used again */
};

/* ---- how the server is reached ---- */

static int server_check(const struct replay_server *server, struct ifl_error *error)
{
    static const CURLUPart forbidden[] = {CURLUPART_USER, CURLUPART_QUERY, CURLUPART_FRAGMENT};
    CURLU *parts = curl_url();
    char *scheme = NULL, *text = NULL;
    bool right = parts && curl_url_set(parts, CURLUPART_URL, server->url, 0) == CURLUE_OK &&
                 curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                 (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    for (size_t i = 0; right && i < sizeof forbidden / sizeof *forbidden; i++)
        if (curl_url_get(parts, forbidden[i], &text, 0) == CURLUE_OK) {
            right = false;
            curl_free(text);
        }
    curl_free(scheme);
    curl_url_cleanup(parts);
    for (size_t i = 0; right && i < server->n_headers; i++)
        if (!strchr(server->headers[i], ':') || strpbrk(server->headers[i], "\r\n"))
            return ifl_fail(error, IFL_E_INPUT, "--header %s: expected \"Name: value\"",
                            server->headers[i]);
    return right
               ? 0
               : ifl_fail(error, IFL_E_INPUT,
                          "--server %s: expected a URL such as http://localhost:8000", server->url);
}

/* Appends; the list is freed if memory runs out. */
static struct curl_slist *header(struct curl_slist *list, bool *whole, const char *text)
{
    struct curl_slist *longer = *whole ? curl_slist_append(list, text) : NULL;
    *whole = longer != NULL;
    return longer ? longer : list;
}

static int make_headers(const struct replay_server *server, bool posts, struct curl_slist **list,
                        struct ifl_error *error)
{
    bool whole = true;
    char *key = NULL;
    *list = header(NULL, &whole, "Expect:"); /* no waiting for 100 Continue */
    if (posts)
        *list = header(*list, &whole, "Content-Type: application/json");
    if (server->key) {
        const size_t n = strlen(server->key) + 32;
        key = malloc(n);
        whole = whole && key;
        if (key)
            snprintf(key, n, "Authorization: Bearer %s", server->key);
        *list = key ? header(*list, &whole, key) : *list;
        free(key);
    }
    for (size_t i = 0; i < server->n_headers; i++)
        *list = header(*list, &whole, server->headers[i]);
    return whole ? 0 : ifl_fail_nomem(error);
}

static void set_common(CURL *easy, const struct replay_server *server)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(easy, CURLOPT_PROXY, server->proxy ? server->proxy : "");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "inflight/" INFLIGHT_VERSION);
    if (server->ca_path)
        curl_easy_setopt(easy, CURLOPT_CAINFO, server->ca_path);
    if (server->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

/* ---- what libcurl calls ---- */

static size_t on_header(char *bytes, size_t size, size_t n, void *context)
{
    struct replay_call *call = context;
    (void)bytes;
    call->n_header_bytes += size * n;
    call->too_long = call->n_header_bytes > REPLAY_HEADERS_BYTES;
    return call->too_long ? 0 : size * n;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *context)
{
    struct replay_call *call = context;
    const bool goes_on =
        call->handler.take(call->handler.context, call, clock_steady_ns(), bytes, size * n);
    return goes_on ? size * n : 0;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct replay_http *http = context;
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(http->epoll, EPOLL_CTL_DEL, fd, &event);
        curl_multi_assign(http->multi, fd, NULL);
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
                   (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
    const int add = epoll_ctl(http->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    if (add < 0 && errno == ENOENT) /* the same number for a new socket */
        epoll_ctl(http->epoll, EPOLL_CTL_ADD, fd, &event);
    curl_multi_assign(http->multi, fd, http);
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *context)
{
    struct replay_http *http = context;
    (void)multi;
    http->curl_ns = ms < 0 ? IFL_NEVER : clock_steady_ns() + (int64_t)ms * 1000000;
    return 0;
}

/* ---- opening and closing ---- */

static int open_descriptors(struct replay_http *http, struct ifl_error *error)
{
    http->epoll = epoll_create1(EPOLL_CLOEXEC);
    http->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = http->timer};
    if (http->epoll < 0 || http->timer < 0 ||
        epoll_ctl(http->epoll, EPOLL_CTL_ADD, http->timer, &event) < 0)
        return ifl_fail(error, IFL_E_DEVICE, "cannot wait for sockets: %s", strerror(errno));
    return 0;
}

static void unlink_call(struct replay_call *call)
{
    struct replay_http *http = call->http;
    if (call->before)
        call->before->next = call->next;
    else
        http->calls = call->next;
    if (call->next)
        call->next->before = call->before;
}

/* The handle is kept, with its settings, for another transfer. */
static void put_away(struct replay_call *call)
{
    unlink_call(call);
    call->next = call->http->idle;
    call->http->idle = call;
}

static void http_cancel(struct replay_http *http, struct replay_call *call)
{
    curl_multi_remove_handle(http->multi, call->easy);
    put_away(call);
}

static void http_close(struct replay_http *http)
{
    if (!http)
        return;
    while (http->calls)
        http_cancel(http, http->calls);
    while (http->idle) {
        struct replay_call *call = http->idle;
        http->idle = call->next;
        curl_easy_cleanup(call->easy);
        free(call);
    }
    curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->post_headers);
    curl_slist_free_all(http->get_headers);
    if (http->epoll >= 0)
        close(http->epoll);
    if (http->timer >= 0)
        close(http->timer);
    free(http);
}

static int http_open(const struct replay_server *server, struct replay_http **opened,
                     struct ifl_error *error)
{
    struct replay_http *http = calloc(1, sizeof *http);
    *opened = NULL;
    if (!http)
        return ifl_fail_nomem(error);
    signal(SIGPIPE, SIG_IGN); /* TLS writes to connections that servers have closed */
    curl_global_init(CURL_GLOBAL_DEFAULT);
    http->server = server;
    http->curl_ns = http->timer_ns = IFL_NEVER;
    http->epoll = http->timer = -1;
    http->multi = curl_multi_init();
    int rc = http->multi ? open_descriptors(http, error) : ifl_fail_nomem(error);
    if (rc == 0)
        rc = make_headers(server, true, &http->post_headers, error);
    if (rc == 0)
        rc = make_headers(server, false, &http->get_headers, error);
    if (rc < 0) {
        http_close(http);
        return rc;
    }
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
    curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    *opened = http;
    return 0;
}

/* ---- transfers ---- */

static struct replay_call *new_call(struct replay_http *http)
{
    struct replay_call *call = http->idle;
    if (call) {
        http->idle = call->next;
        return call;
    }
    call = calloc(1, sizeof *call);
    CURL *easy = call ? curl_easy_init() : NULL;
    if (!easy) {
        free(call);
        return NULL;
    }
    call->easy = easy;
    call->http = http;
    set_common(easy, http->server);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->why);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    return call;
}

static bool set_url(CURL *easy, const char *base, const char *path)
{
    char url[2048];
    const int n = snprintf(url, sizeof url, "%s%s", base, path);
    return n > 0 && (size_t)n < sizeof url && curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK;
}

static void look_for_ends(struct replay_http *http)
{
    CURLMsg *message;
    int n_left;
    while ((message = curl_multi_info_read(http->multi, &n_left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        char *private = NULL;
        curl_off_t connect_us = 0;
        struct replay_end end = {.now_ns = clock_steady_ns(), .connect_ns = -1};
        const CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        struct replay_call *call = (struct replay_call *)(void *)private;
        curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &end.status);
        if (curl_easy_getinfo(call->easy, CURLINFO_PRETRANSFER_TIME_T, &connect_us) == CURLE_OK &&
            connect_us > 0)
            end.connect_ns = (int64_t)connect_us * 1000;
        if (code != CURLE_OK)
            end.error = *call->why ? call->why : curl_easy_strerror(code);
        curl_multi_remove_handle(http->multi, call->easy);
        call->handler.done(call->handler.context, &end);
        put_away(call);
    }
}

static struct replay_call *http_start(struct replay_http *http, const char *path, const char *body,
                                      size_t n_body, const struct replay_handler *handler)
{
    int n_running;
    struct replay_call *call = new_call(http);
    if (!call)
        return NULL;
    call->handler = *handler;
    call->n_header_bytes = 0;
    call->too_long = false;
    *call->why = '\0';
    call->before = NULL;
    call->next = http->calls;
    if (call->next)
        call->next->before = call;
    http->calls = call;
    bool set = set_url(call->easy, http->server->url, path);
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, body ? http->post_headers : http->get_headers);
    if (body) {
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n_body);
        curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
    } else {
        curl_easy_setopt(call->easy, CURLOPT_HTTPGET, 1L);
    }
    call->started_ns = clock_steady_ns();
    set = set && curl_multi_add_handle(http->multi, call->easy) == CURLM_OK;
    if (!set) {
        put_away(call);
        return NULL;
    }
    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &n_running);
    http->started = true;
    return call;
}

static long call_status(const struct replay_call *call)
{
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static const char *call_type(const struct replay_call *call)
{
    const char *type = NULL;
    curl_easy_getinfo(call->easy, CURLINFO_CONTENT_TYPE, &type);
    return type ? type : "";
}

static bool call_headers_too_long(const struct replay_call *call)
{
    return call->too_long;
}

/* ---- waiting ---- */

static void set_timer(struct replay_http *http, int64_t at_ns)
{
    if (at_ns == http->timer_ns)
        return;
    const int64_t ns = at_ns == IFL_NEVER ? 0 : ifl_max(at_ns, (int64_t)1);
    const struct itimerspec spec = {
        .it_value = {(time_t)(ns / IFL_NS_PER_S), (long)(ns % IFL_NS_PER_S)}};
    timerfd_settime(http->timer, TFD_TIMER_ABSTIME, &spec, NULL);
    http->timer_ns = at_ns;
}

static int to_curl(uint32_t events)
{
    return (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
           (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
}

static int http_wait(struct replay_http *http, int64_t until_ns, struct ifl_error *error)
{
    struct epoll_event events[EVENTS];
    const int64_t next_ns = ifl_min(until_ns, http->curl_ns);
    const bool is_due = http->started || next_ns <= clock_steady_ns();
    int n_running;
    http->started = false;
    if (!is_due)
        set_timer(http, next_ns);
    const int n = epoll_wait(http->epoll, events, EVENTS, is_due ? 0 : -1);
    if (n < 0 && errno != EINTR)
        return ifl_fail(error, IFL_E_DEVICE, "cannot wait for sockets: %s", strerror(errno));
    /* What is due goes first: events that are left are told again. */
    for (int i = 0; i < n && (i == 0 || clock_steady_ns() < until_ns); i++) {
        uint64_t n_expired;
        if (events[i].data.fd != http->timer)
            curl_multi_socket_action(http->multi, events[i].data.fd, to_curl(events[i].events),
                                     &n_running);
        else if (read(http->timer, &n_expired, sizeof n_expired) > 0)
            http->timer_ns = IFL_NEVER;
    }
    if (http->curl_ns <= clock_steady_ns()) {
        http->curl_ns = IFL_NEVER;
        curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &n_running);
    }
    look_for_ends(http);
    return 0;
}

/* ---- the module ---- */

__attribute__((visibility("default"))) extern const struct replay_http_module inflight_http;

const struct replay_http_module inflight_http = {
    .n_bytes = sizeof inflight_http,
    .server_check = server_check,
    .open = http_open,
    .close = http_close,
    .start = http_start,
    .cancel = http_cancel,
    .status = call_status,
    .type = call_type,
    .headers_too_long = call_headers_too_long,
    .wait = http_wait,
};
