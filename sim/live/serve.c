#include "live/serve_parts.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/turns.h"
#include "inflight/minmax.h"
#include "live/timeval.h"

/* The recording is written so often. */
static const struct timeval every = {0, 200000};

enum { N_LENGTHS = 8192 };

/* ---- while it serves ---- */

static void on_signal(evutil_socket_t number, short what, void *context)
{
    struct serve *serve = context;
    (void)what;
    if (serve->stopping) { /* for the second time */
        signal((int)number, SIG_DFL);
        raise((int)number);
        return;
    }
    serve->stopping = true;
    http_stop_listening(serve->http);
    source_close(serve->source);
}

static void on_every(evutil_socket_t fd, short what, void *context)
{
    struct serve *serve = context;
    struct ifl_error error;
    (void)fd;
    (void)what;
    if (source_flush(serve->source, &error) < 0)
        source_fail(serve->source, &error);
}

/* All that the server does stands still. */
static void on_stall(evutil_socket_t fd, short what, void *context)
{
    const struct serve *serve = context;
    const double stall_s = serve->live->faults.stall_s;
    struct timespec left = {(time_t)stall_s, (long)((stall_s - (double)(time_t)stall_s) * 1e9)};
    (void)fd;
    (void)what;
    while (!serve->stopping && nanosleep(&left, &left) < 0)
        continue;
}

static void on_step(void *context, const struct replica *replica, const struct ifl_done *done)
{
    struct serve *serve = context;
    (void)done;
    metrics_step(&serve->metrics, replica);
}

/* A model is as long as the longest that a pool can take. */
static int list_replicas(struct serve *serve)
{
    const struct flight *flight = serve->flight;
    serve->model_of_replica = calloc(flight->n_replicas + 1, sizeof *serve->model_of_replica);
    if (!serve->model_of_replica)
        return IFL_E_NOMEM;
    for (size_t i = 0; i < flight->n_pools; i++) {
        struct served_model *model = &serve->models[serve->model_of_pool[i]];
        for (size_t k = 0; k < flight->pools[i].n; k++) {
            const struct replica *replica = &flight->replicas[flight->pools[i].first + k];
            serve->model_of_replica[flight->pools[i].first + k] = model->name;
            serve->metrics.of[flight->pools[i].first + k].null_blocks =
                config_of_pool(serve->config, i)->serving.kv.null_blocks;
            model->max_model_tokens =
                ifl_max(model->max_model_tokens, replica->fixed.limits.max_model_tokens);
        }
    }
    return 0;
}

static void on_begin(void *context, const struct flight *flight)
{
    struct serve *serve = context;
    struct ifl_error error;
    serve->flight = flight;
    if (metrics_open(&serve->metrics, flight->n_replicas) < 0 || list_replicas(serve) < 0) {
        ifl_fail_nomem(&error);
        source_fail(serve->source, &error);
        return;
    }
    serve->ready(serve->ready_context, serve);
}

/* ---- the beginning ---- */

/* What clients call it: the last part of a path, without its ending. */
static void name_model(struct serve *serve, size_t i, const char *config)
{
    const char *slash = strrchr(config, '/'), *last = slash ? slash + 1 : config;
    const bool own = *serve->live->model_name != '\0' && config_n_pools(serve->config) == 1;
    char *name = serve->model_names[i];
    snprintf(name, sizeof serve->model_names[i], "%.*s", (int)sizeof serve->model_names[i] - 1,
             own     ? serve->live->model_name
             : *last ? last
                     : "inflight");
    char *ending = strrchr(name, '.');
    if (ending && !own && strcmp(ending, ".yaml") == 0)
        *ending = '\0';
    serve->models[i] = (struct served_model){.name = name, .config = config};
}

/* An engine's logits say them; where tokens are guessed a step has several. */
static int32_t most_logprobs(const struct config *config)
{
    return config->executor != EXECUTOR_SIM && !config_speculates(config) ? IFL_MOST_LOGPROBS : 0;
}

static int list_models(struct serve *serve, struct ifl_error *error)
{
    size_t n = 0;
    for (size_t i = 0; i < config_n_pools(serve->config); i++) {
        const char *config = config_of_pool(serve->config, i)->model;
        size_t known = 0;
        while (known < n && strcmp(serve->models[known].config, config) != 0)
            known++;
        if (known == n)
            name_model(serve, n++, config);
        serve->model_of_pool[i] = known;
    }
    for (size_t i = 0; i < n; i++) {
        json_t *name = json_string(serve->models[i].name);
        serve->quoted_names[i] = json_dumps(name, JSON_ENCODE_ANY);
        json_decref(name);
        if (!serve->quoted_names[i])
            return ifl_fail_nomem(error);
    }
    serve->served =
        (struct served_models){serve->models, n, &serve->text, most_logprobs(serve->config)};
    return 0;
}

static int draw_lengths(struct serve *serve, struct ifl_error *error)
{
    const struct live_answers *answers = &serve->live->answers;
    static const enum ifl_length_law laws[] = {[LIVE_FIXED] = IFL_LENGTH_FIXED,
                                               [LIVE_UNIFORM] = IFL_LENGTH_UNIFORM,
                                               [LIVE_LOGNORMAL] = IFL_LENGTH_LOGNORMAL};
    const struct ifl_length_spec one = {IFL_LENGTH_FIXED, 1, 0, 0, 1, 1};
    if (answers->law == LIVE_LIMIT)
        return 0;
    const struct ifl_length_spec spec = {.law = laws[answers->law],
                                         .mean = answers->mean_tokens,
                                         .cv = answers->cv,
                                         .min = answers->min_tokens,
                                         .max = answers->max_tokens};
    return ifl_trace_generate(N_LENGTHS, serve->config->workload.arrivals.seed, &one, &spec,
                              &serve->lengths, error);
}

/* True if something may look at the tokens of a prompt. */
static bool looks_at_tokens(const struct config *config)
{
    bool looks = config->executor != EXECUTOR_SIM;
    uint32_t n_replicas = 0;
    for (size_t i = 0; i < config_n_pools(config); i++) {
        looks |= config_of_pool(config, i)->serving.kv.prefix_cache != 0;
        n_replicas += config_pool_replicas(config, i);
    }
    return looks || n_replicas > 1;
}

/* Where tokens are guessed a request has one answer. */
static int32_t most_samples(const struct config *config)
{
    int32_t most = config->live.limits.samples;
    for (size_t i = 0; i < config_n_pools(config); i++)
        if (config_speculates(config_of_pool(config, i)))
            most = 1;
    return most;
}

static int open_source(struct serve *serve, const struct serve_options *options,
                       struct ifl_error *error)
{
    const struct live_limits *limits = &serve->live->limits;
    for (size_t i = 0; i < serve->served.n; i++)
        serve->configured[i] = serve->models[i].config;
    const struct source_listener listener = {.token = answer_token,
                                             .ended = answer_ended,
                                             .step = on_step,
                                             .begin = on_begin,
                                             .context = serve};
    const struct source_options source = {
        .base = serve->base,
        .n_places = (size_t)limits->in_flight,
        .most_requests = (size_t)limits->recorded,
        .most_samples = serve->most_samples,
        .most_clients = (uint32_t)limits->clients,
        .models = serve->configured,
        .n_models = serve->served.n,
        .speed = serve->config->executor == EXECUTOR_SIM ? serve->live->speed : 1,
        .keeps_ids = looks_at_tokens(serve->config),
        .names_answers = serve->config->executor == EXECUTOR_SIM,
        .words = serve->text.words,
        .n_words = serve->text.n_words,
        .trace_path = options->trace_path,
        .listener = &listener,
    };
    serve->source = source_create(&source, error);
    return serve->source ? 0 : error->code;
}

static int open_events(struct serve *serve, struct ifl_error *error)
{
    const struct timeval stalls = timeval_of_s(serve->live->faults.stall_every_s);
    serve->terminated = evsignal_new(serve->base, SIGTERM, on_signal, serve);
    serve->interrupted = evsignal_new(serve->base, SIGINT, on_signal, serve);
    serve->every = event_new(serve->base, -1, EV_PERSIST, on_every, serve);
    serve->stalls = event_new(serve->base, -1, EV_PERSIST, on_stall, serve);
    if (!serve->terminated || !serve->interrupted || !serve->every || !serve->stalls ||
        evsignal_add(serve->terminated, NULL) < 0 || evsignal_add(serve->interrupted, NULL) < 0 ||
        event_add(serve->every, &every) < 0 ||
        (serve->live->faults.stall_every_s > 0 && event_add(serve->stalls, &stalls) < 0))
        return ifl_fail_nomem(error);
    return 0;
}

static int open_base(struct serve *serve, struct ifl_error *error)
{
    struct event_config *config = event_config_new();
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
        serve->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    return serve->base ? 0 : ifl_fail_nomem(error);
}

int serve_make_recording(const char *trace_path, struct ifl_error *error)
{
    return source_trace_make(trace_path, error);
}

struct serve *serve_open(const struct serve_options *options, struct ifl_error *error)
{
    struct serve *serve = calloc(1, sizeof *serve);
    if (!serve) {
        ifl_fail_nomem(error);
        return NULL;
    }
    if (options->config->executor == EXECUTOR_SIM) /* an engine has to be done */
        turns_ask_for_short();
    signal(SIGPIPE, SIG_IGN); /* a client that has gone is no reason to end */
    serve->config = options->config;
    serve->live = &options->config->live;
    serve->most_samples = most_samples(options->config);
    serve->ready = options->ready;
    serve->ready_context = options->context;
    serve->started_s = clock_steady_s();
    serve->started_at = (long)time(NULL);
    serve->metrics.created = (double)serve->started_at;
    int rc = open_base(serve, error);
    if (rc == 0)
        rc = list_models(serve, error);
    if (rc == 0)
        rc = served_text_open(&serve->text, serve->config, error);
    if (rc == 0)
        rc = draw_lengths(serve, error);
    if (rc == 0)
        rc = open_source(serve, options, error);
    if (rc == 0)
        rc = open_events(serve, error);
    const struct http_options http = {serve->base, serve->live, routes_handle, serve};
    if (rc == 0)
        serve->http = http_open(&http, error);
    if (serve->http)
        return serve;
    serve_close(serve);
    return NULL;
}

const struct source *serve_source(struct serve *serve)
{
    return source_of(serve->source);
}

int serve_port(const struct serve *serve)
{
    return http_port(serve->http);
}

uint64_t serve_n_requests(const struct serve *serve)
{
    return source_n_sent(serve->source);
}

/* ---- the end ---- */

/* What is in the sockets' buffers is on its way; what is not goes now, for a moment. */
static void drain(struct serve *serve)
{
    const double until_s = clock_steady_s() + 0.2;
    while (clock_steady_s() < until_s && event_base_loop(serve->base, EVLOOP_NONBLOCK) == 0)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
}

void serve_close(struct serve *serve)
{
    if (!serve)
        return;
    serve->stopping = true;
    serve->flight = NULL; /* it is over */
    if (serve->every)
        event_del(serve->every);
    answer_refuse_all(serve);
    if (serve->http)
        drain(serve);
    http_close(serve->http); /* exchanges that are left are gone */
    source_destroy(serve->source);
    struct event *events[] = {serve->terminated, serve->interrupted, serve->every, serve->stalls};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i])
            event_free(events[i]);
    for (size_t i = 0; i < serve->served.n; i++)
        free(serve->quoted_names[i]);
    ifl_trace_free(&serve->lengths);
    metrics_close(&serve->metrics);
    free(serve->model_of_replica);
    served_text_close(&serve->text);
    if (serve->base)
        event_base_free(serve->base);
    free(serve);
}
