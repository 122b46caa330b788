#include "live/replay_http.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/module.h"
#include "inflight/time.h"
#include "live/replay_answer.h"

/* ---- the module ---- */

static const struct replay_http_module *module; /* NULL: not loaded yet */

static int load(struct ifl_error *error)
{
    static const struct ifl_module wanted = {
        .name = "http",
        .built = "sim",
        .what = "the load client",
        .needs = "libcurl (-Dreplay=enabled, libcurl4-openssl-dev)",
        .n_bytes = sizeof *module,
    };
    if (!module)
        module = module_load(&wanted, error);
    return module ? 0 : error->code;
}

int replay_server_check(const struct replay_server *server, struct ifl_error *error)
{
    return load(error) < 0 ? error->code : module->server_check(server, error);
}

int replay_http_open(const struct replay_server *server, struct replay_http **http,
                     struct ifl_error *error)
{
    *http = NULL;
    return load(error) < 0 ? error->code : module->open(server, http, error);
}

/* Without the module there is nothing to close. */
void replay_http_close(struct replay_http *http)
{
    if (module)
        module->close(http);
}

struct replay_call *replay_http_start(struct replay_http *http, const char *path, const char *body,
                                      size_t n_body, const struct replay_handler *handler)
{
    return module->start(http, path, body, n_body, handler);
}

void replay_http_cancel(struct replay_http *http, struct replay_call *call)
{
    module->cancel(http, call);
}

long replay_call_status(const struct replay_call *call)
{
    return module->status(call);
}

const char *replay_call_type(const struct replay_call *call)
{
    return module->type(call);
}

bool replay_call_headers_too_long(const struct replay_call *call)
{
    return module->headers_too_long(call);
}

int replay_http_wait(struct replay_http *http, int64_t until_ns, struct ifl_error *error)
{
    return module->wait(http, until_ns, error);
}

/* ---- one transfer ---- */

struct getting {
    struct replay_got *got;
    size_t most_bytes;
    bool too_long, no_memory, done;
    char why[256];
};

static bool take_got(void *context, struct replay_call *call, int64_t now_ns, const char *bytes,
                     size_t n)
{
    struct getting *getting = context;
    struct replay_got *got = getting->got;
    (void)call;
    (void)now_ns;
    getting->too_long = got->text.n + n > getting->most_bytes;
    getting->no_memory = !getting->too_long && replay_text_add(&got->text, bytes, n) < 0;
    return !getting->too_long && !getting->no_memory;
}

static void end_got(void *context, const struct replay_end *end)
{
    struct getting *getting = context;
    getting->got->status = end->status;
    getting->done = true;
    if (end->error)
        snprintf(getting->why, sizeof getting->why, "%s", end->error);
}

int replay_http_get(const struct replay_server *server, const char *path, size_t most_bytes,
                    double timeout_s, struct replay_got *got, struct ifl_error *error)
{
    *got = (struct replay_got){0};
    struct getting getting = {.got = got, .most_bytes = most_bytes};
    const struct replay_handler handler = {take_got, end_got, &getting};
    struct replay_http *http = NULL;
    int rc = replay_http_open(server, &http, error);
    if (rc < 0)
        return rc;
    const int64_t until_ns = clock_steady_ns() + ifl_ns_from_s(timeout_s);
    if (!replay_http_start(http, path, NULL, 0, &handler))
        rc = ifl_fail_nomem(error);
    while (rc == 0 && !getting.done && clock_steady_ns() < until_ns)
        rc = replay_http_wait(http, until_ns, error);
    replay_http_close(http);
    replay_printable(getting.why);
    if (replay_text_add(&got->text, "", 1) < 0)
        getting.no_memory = true;
    else
        got->text.n--;
    if (rc == 0 && getting.no_memory)
        rc = ifl_fail_nomem(error);
    if (rc == 0 && getting.too_long)
        rc = ifl_fail(error, IFL_E_DEVICE, "%s%s: more than %zu KiB, expected a short answer",
                      server->url, path, most_bytes >> 10);
    if (rc == 0 && (!getting.done || *getting.why))
        rc = ifl_fail(error, IFL_E_DEVICE, "%s%s: %.200s", server->url, path,
                      getting.done ? getting.why : "no answer in time");
    return rc;
}
