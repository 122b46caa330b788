/* Handles requests of clients: dispatches paths, and passes completions to the flight. */
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inflight/minmax.h"
#include "inflight/random.h"
#include "live/serve_page.h"
#include "live/serve_parts.h"

#ifndef INFLIGHT_VERSION
#define INFLIGHT_VERSION "unversioned"
#endif

static const char as_json[] = "application/json";

static void reply_text(struct evhttp_request *http, const char *type, const char *text)
{
    http_reply(http, 200, type, text, strlen(text));
}

static void reply_buffer(struct evhttp_request *http, const char *type, struct evbuffer *body)
{
    evhttp_add_header(evhttp_request_get_output_headers(http), "Content-Type", type);
    evhttp_send_reply(http, 200, http_reason(200), body);
}

static void reply_json(struct evhttp_request *http, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    reply_text(http, as_json, text ? text : "{}");
    free(text);
}

/* ---- what the server says of itself ---- */

/* Clients look for these keys, which say nothing here. */
static json_t *permission(const struct serve *serve)
{
    return json_pack("{s:s,s:s,s:I,s:b,s:b,s:b,s:b,s:b,s:b,s:s,s:n,s:b}", "id",
                     "modelperm-inflight", "object", "model_permission", "created",
                     (json_int_t)serve->started_at, "allow_create_engine", 0, "allow_sampling", 1,
                     "allow_logprobs", 1, "allow_search_indices", 0, "allow_view", 1,
                     "allow_fine_tuning", 0, "organization", "*", "group", "is_blocking", 0);
}

static void get_models(struct serve *serve, struct evhttp_request *http)
{
    json_t *list = json_array();
    for (size_t i = 0; i < serve->served.n; i++)
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:I,s:s,s:s,s:n,s:i,s:[o]}", "id", serve->models[i].name,
                            "object", "model", "created", (json_int_t)serve->started_at, "owned_by",
                            "inflight", "root", serve->models[i].config, "parent", "max_model_len",
                            serve->models[i].max_model_tokens, "permission", permission(serve)));
    reply_json(http, json_pack("{s:s,s:o}", "object", "list", "data", list));
}

static void get_health(struct serve *serve, struct evhttp_request *http)
{
    (void)serve;
    http_reply(http, 200, NULL, "", 0);
}

static void get_version(struct serve *serve, struct evhttp_request *http)
{
    reply_json(http, json_pack("{s:s,s:s,s:s}", "version", INFLIGHT_VERSION, "server", "inflight",
                               "tokenizer", serve->text.name));
}

static void get_load(struct serve *serve, struct evhttp_request *http)
{
    reply_json(http, json_pack("{s:I}", "server_load", (json_int_t)serve->n_exchanges));
}

static void get_metrics(struct serve *serve, struct evhttp_request *http)
{
    struct evbuffer *out = evbuffer_new();
    if (out)
        metrics_write(&serve->metrics, serve->flight, (enum live_metrics)serve->live->metrics,
                      serve->model_of_replica, serve->models[0].name, out);
    reply_buffer(http, "text/plain; version=1.0.0; charset=utf-8", out);
    if (out)
        evbuffer_free(out);
}

static void get_page(struct serve *serve, struct evhttp_request *http)
{
    (void)serve;
    reply_text(http, "text/html; charset=utf-8", serve_page);
}

static json_t *recent(const double *of, uint64_t n)
{
    json_t *list = json_array();
    for (uint64_t i = 0; i < ifl_min(n, (uint64_t)RECENT); i++)
        json_array_append_new(list, json_real(of[i]));
    return list;
}

static void get_stats(struct serve *serve, struct evhttp_request *http)
{
    const struct flight *flight = serve->flight;
    json_t *replicas = json_array();
    for (size_t i = 0; i < flight->n_replicas; i++) {
        const struct replica *r = &flight->replicas[i];
        const struct replica_metrics *m = &serve->metrics.of[i];
        json_array_append_new(
            replicas,
            json_pack("{s:s,s:I,s:I,s:I,s:i,s:i,s:I,s:I}", "model", serve->model_of_replica[i],
                      "waiting", (json_int_t)r->here.waiting.n, "running",
                      (json_int_t)r->here.running.n, "swapped", (json_int_t)r->here.n_swapped,
                      "kv_used", r->fixed.limits.n_blocks - r->kv.device.n_free, "kv_total",
                      r->fixed.limits.n_blocks, "answer_tokens", (json_int_t)m->n_answer_tokens,
                      "ended", (json_int_t)m->n_ended));
    }
    reply_json(http,
               json_pack("{s:f,s:f,s:I,s:I,s:o,s:o,s:o}", "now_s",
                         ifl_s_from_ns(source_now_ns(serve->source)), "wall_s", clock_steady_s(),
                         "sent", (json_int_t)source_n_sent(serve->source), "connections",
                         (json_int_t)http_n_connections(serve->http), "replicas", replicas,
                         "ttft_s", recent(serve->metrics.recent_ttft_s, serve->metrics.n_recent),
                         "tpot_s", recent(serve->metrics.recent_tpot_s, serve->metrics.n_recent)));
}

/* ---- tokens ---- */

static char *take_body(struct evhttp_request *http, size_t *n_bytes)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(http);
    *n_bytes = evbuffer_get_length(in);
    return (char *)evbuffer_pullup(in, -1);
}

static json_t *json_of_tokens(const struct tokens *tokens)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tokens->n; i++)
        json_array_append_new(list, json_integer(tokens->of[i]));
    return list;
}

/* Each as the vocabulary writes it. */
static json_t *names_of_tokens(const struct served_text *text, const struct tokens *tokens)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tokens->n; i++)
        json_array_append_new(list, served_text_name(text, tokens->of[i]));
    return list;
}

static void post_tokenize(struct serve *serve, struct evhttp_request *http)
{
    struct answer_error refusal;
    struct ask ask;
    size_t n_bytes;
    const char *body = take_body(http, &n_bytes);
    if (ask_read_prompt(&ask, body ? body : "", n_bytes, &serve->served, &refusal))
        reply_json(http, json_pack("{s:I,s:i,s:o,s:o}", "count", (json_int_t)ask.prompts[0].n,
                                   "max_model_len", serve->models[ask.model].max_model_tokens,
                                   "tokens", json_of_tokens(&ask.prompts[0]), "token_strs",
                                   ask.names_tokens ? names_of_tokens(&serve->text, &ask.prompts[0])
                                                    : json_null()));
    else
        answer_refuse(http, &refusal);
    ask_free(&ask);
}

static void post_detokenize(struct serve *serve, struct evhttp_request *http)
{
    struct answer_error refusal;
    struct ask ask;
    size_t n_bytes;
    const char *body = take_body(http, &n_bytes);
    if (!ask_read_tokens(&ask, body ? body : "", n_bytes, &serve->served, &refusal)) {
        answer_refuse(http, &refusal);
        ask_free(&ask);
        return;
    }
    struct evbuffer *text = evbuffer_new();
    if (text) {
        evbuffer_add(text, "{\"prompt\":\"", 11);
        served_text_put_whole(&serve->text, &ask.prompts[0], text);
        evbuffer_add(text, "\"}", 2);
    }
    reply_buffer(http, as_json, text);
    if (text)
        evbuffer_free(text);
    ask_free(&ask);
}

/* ---- completions ---- */

/* As long as the request fixes it, or as the law of live.answers says. */
static int32_t answer_tokens(struct serve *serve, const struct ask *ask)
{
    const struct ifl_trace *lengths = &serve->lengths;
    if (!ask->by_law || lengths->n == 0)
        return ask->max_tokens;
    const uint64_t draw =
        ifl_draw(1, IFL_DRAW_OUTPUT, source_n_sent(serve->source), 0) % lengths->n;
    const int32_t most = ask->max_tokens, least = ifl_max(ask->min_tokens, 1);
    return ifl_max(ifl_min(lengths->n_output[draw], most), least);
}

static bool send_part(struct exchange *e, size_t i)
{
    struct serve *serve = e->serve;
    struct part *part = &e->parts[i];
    const struct tokens *prompt = &e->ask.prompts[i];
    const struct source_request request = {
        .n_prompt = (int32_t)prompt->n,
        .n_output = answer_tokens(serve, &e->ask),
        .max_tokens = e->ask.max_tokens,
        .samples = e->ask.n,
        .n_logprobs = e->ask.n_logprobs,
        .priority = e->ask.priority,
        .model = serve->config->n_pools > 0 ? (uint32_t)e->ask.model + 1 : 0,
        .client = e->ask.user,
        .session = e->ask.session,
        .tokens = prompt->of,
    };
    *part = (struct part){.exchange = e,
                          .number = i,
                          .row = -1,
                          .n_prompt = request.n_prompt,
                          .n_output = request.n_output};
    part->row = source_send(serve->source, &request, part);
    e->n_open += part->row >= 0;
    e->n_prompt_tokens += request.n_prompt;
    return part->row >= 0;
}

/* The client's own word, of letters that need no care in JSON; or a number. */
static void name_exchange(struct exchange *e)
{
    const char *given =
        evhttp_find_header(evhttp_request_get_input_headers(e->http), "X-Request-Id");
    const char *prefix = e->ask.chat ? "chatcmpl-" : "cmpl-";
    const char *word = given ? given : e->ask.request_id;
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_.:";
    if (*word && strlen(word) < ASK_NAME_BYTES && word[strspn(word, letters)] == '\0')
        snprintf(e->id, sizeof e->id, "%s%s", prefix, word);
    else
        snprintf(e->id, sizeof e->id, "%s%016llx", prefix,
                 (unsigned long long)ifl_mix((uint64_t)e->serve->started_at ^
                                             ifl_mix(e->serve->n_asked)));
}

static struct exchange *open_exchange(struct serve *serve, struct evhttp_request *http,
                                      const struct ask *ask)
{
    struct exchange *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    *e = (struct exchange){.serve = serve,
                           .next = serve->exchanges,
                           .http = http,
                           .ask = *ask,
                           .created = (long)time(NULL),
                           .parts = calloc(ask->n_prompts, sizeof *e->parts),
                           .out = evbuffer_new()};
    if (e->next)
        e->next->prev = e;
    serve->exchanges = e;
    serve->n_exchanges++;
    for (size_t i = 0; e->parts && i < ask->n_prompts; i++)
        e->parts[i].row = -1;
    e->flows = calloc(ask->n_prompts * (size_t)ask->n, sizeof *e->flows);
    if (ask->n_logprobs >= 0)
        e->weighed = calloc(ask->n_prompts * (size_t)ask->n, sizeof *e->weighed);
    if (!ask->stream)
        e->answers = calloc(ask->n_prompts * (size_t)ask->n, sizeof *e->answers);
    if (e->parts && e->out && e->flows && (ask->n_logprobs < 0 || e->weighed) &&
        (ask->stream || e->answers)) {
        name_exchange(e);
        return e;
    }
    answer_free(e);
    return NULL;
}

static void forget_prompts(struct exchange *e)
{
    for (size_t i = 0; i < e->ask.n_prompts && !e->ask.returns_ids; i++)
        tokens_free(&e->ask.prompts[i]);
}

static void send_exchange(struct serve *serve, struct evhttp_request *http, struct ask *ask)
{
    struct answer_error refusal;
    struct exchange *e = open_exchange(serve, http, ask);
    bool sent = e != NULL;
    for (size_t i = 0; sent && i < e->ask.n_prompts; i++)
        sent = send_part(e, i);
    if (sent) {
        forget_prompts(e);
        http_hold(http, &serve->live->limits, answer_gone, e);
        return;
    }
    if (e) {
        answer_leave(e);
        answer_free(e);
    } else {
        ask_free(ask);
    }
    refuse(&refusal, 503, "ServiceUnavailableError", NULL,
           "The server is at its limit of requests. Please try again later.");
    answer_refuse(http, &refusal);
}

static bool is_json(struct evhttp_request *http)
{
    const char *type = evhttp_find_header(evhttp_request_get_input_headers(http), "Content-Type");
    return type && strncmp(type, as_json, sizeof as_json - 1) == 0;
}

static bool is_to_fail(const struct serve *serve)
{
    const uint64_t draw = ifl_draw(0, IFL_DRAW_ROUTE, serve->n_asked, 0);
    return ifl_uniform(draw) < serve->live->faults.error_frac;
}

static void post_prompt(struct serve *serve, struct evhttp_request *http, bool chat)
{
    struct answer_error refusal;
    struct ask ask = {0};
    size_t n_bytes;
    const char *body = take_body(http, &n_bytes);
    serve->n_asked++;
    if (!is_json(http))
        refuse(&refusal, 400, "Bad Request", NULL,
               "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed");
    else if (is_to_fail(serve))
        refuse(&refusal, 500, "InternalServerError", NULL,
               "A failure, as live.faults.error_frac asks for.");
    else if (ask_read(&ask, chat, body ? body : "", n_bytes, &serve->served, serve->most_samples,
                      &refusal)) {
        send_exchange(serve, http, &ask);
        return;
    }
    ask_free(&ask);
    answer_refuse(http, &refusal);
}

static void post_completions(struct serve *serve, struct evhttp_request *http)
{
    post_prompt(serve, http, false);
}

static void post_chat(struct serve *serve, struct evhttp_request *http)
{
    post_prompt(serve, http, true);
}

/* ---- paths ---- */

struct route {
    const char *path;
    enum evhttp_cmd_type method;
    bool is_secret; /* it asks for the key */
    void (*handle)(struct serve *serve, struct evhttp_request *http);
};

static const struct route routes[] = {
    {"/v1/completions", EVHTTP_REQ_POST, true, post_completions},
    {"/v1/chat/completions", EVHTTP_REQ_POST, true, post_chat},
    {"/v1/models", EVHTTP_REQ_GET, true, get_models},
    {"/tokenize", EVHTTP_REQ_POST, true, post_tokenize},
    {"/detokenize", EVHTTP_REQ_POST, true, post_detokenize},
    {"/health", EVHTTP_REQ_GET, false, get_health},
    {"/ping", EVHTTP_REQ_GET, false, get_health},
    {"/version", EVHTTP_REQ_GET, false, get_version},
    {"/load", EVHTTP_REQ_GET, false, get_load},
    {"/metrics", EVHTTP_REQ_GET, false, get_metrics},
    {"/stats", EVHTTP_REQ_GET, false, get_stats},
    {"/", EVHTTP_REQ_GET, false, get_page},
};

/* Takes the same time wherever the two differ. */
static bool is_key(const char *given, const char *key)
{
    const size_t n_given = strlen(given), n_key = strlen(key);
    unsigned differ = n_given != n_key;
    for (size_t i = 0; i < n_given; i++)
        differ |= (unsigned char)given[i] ^ (unsigned char)key[n_key ? i % n_key : 0];
    return differ == 0;
}

static bool may(const struct serve *serve, struct evhttp_request *http)
{
    static const char bearer[] = "Bearer ";
    const char *given = evhttp_find_header(evhttp_request_get_input_headers(http), "Authorization");
    return !*serve->live->api_key || (given && strncmp(given, bearer, sizeof bearer - 1) == 0 &&
                                      is_key(given + sizeof bearer - 1, serve->live->api_key));
}

static void reply_detail(struct evhttp_request *http, int status, const char *detail)
{
    char body[64];
    const int n = snprintf(body, sizeof body, "{\"detail\":\"%s\"}", detail);
    http_reply(http, status, as_json, body, (size_t)n);
}

static bool is_ready(const struct serve *serve)
{
    return clock_steady_s() - serve->started_s >= serve->live->faults.start_s && !serve->stopping;
}

static void refuse_to_answer(const struct serve *serve, struct evhttp_request *http)
{
    struct answer_error refusal;
    refuse(&refusal, 503, "ServiceUnavailableError", NULL, "%s",
           serve->stopping ? "The server is shutting down." : "The server is starting.");
    answer_refuse(http, &refusal);
}

void routes_handle(void *context, struct evhttp_request *http)
{
    struct serve *serve = context;
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(http));
    const enum evhttp_cmd_type method = evhttp_request_get_command(http);
    const struct route *route = NULL;
    for (size_t i = 0; path && i < sizeof routes / sizeof *routes; i++)
        if (strcmp(path, routes[i].path) == 0)
            route = &routes[i];
    if (!route) {
        reply_detail(http, 404, "Not Found");
    } else if (method != route->method) {
        evhttp_add_header(evhttp_request_get_output_headers(http), "Allow",
                          route->method == EVHTTP_REQ_POST ? "POST" : "GET");
        reply_detail(http, 405, "Method Not Allowed");
    } else if (!is_ready(serve) || !serve->flight) {
        refuse_to_answer(serve, http);
    } else if (route->is_secret && !may(serve, http)) {
        http_reply(http, 401, as_json, "{\"error\":\"Unauthorized\"}", 24);
    } else {
        route->handle(serve, http);
    }
}
