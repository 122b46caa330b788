/* Writes answers in the form of vLLM's OpenAI server (0.32.0): streamed, with one chunk per token,
 * or whole. */
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <string.h>

#include "inflight/random.h"
#include "live/serve_parts.h"

#ifndef INFLIGHT_VERSION
#define INFLIGHT_VERSION "unversioned"
#endif

static const char fingerprint[] = "inflight-" INFLIGHT_VERSION;

static const char *word_of_object(const struct exchange *e, bool chunk)
{
    return !e->ask.chat ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion";
}

static const char *quoted_model(const struct exchange *e)
{
    return e->serve->quoted_names[e->ask.model];
}

/* An answer that is as long as it may be ends for that reason. */
static const char *reason_of(const struct part *part)
{
    return part->n_output < part->exchange->ask.max_tokens ? "\"stop\"" : "\"length\"";
}

/* ---- pieces of JSON ---- */

static void put_ids(struct evbuffer *out, const int32_t *ids, size_t n)
{
    evbuffer_add(out, "[", 1);
    for (size_t i = 0; i < n; i++)
        evbuffer_add_printf(out, "%s%d", i ? "," : "", ids[i]);
    evbuffer_add(out, "]", 1);
}

/* Null where the client has not asked for ids. */
static void put_asked_ids(const struct exchange *e, const int32_t *ids, size_t n)
{
    if (e->ask.returns_ids)
        put_ids(e->out, ids, n);
    else
        evbuffer_add(e->out, "null", 4);
}

static void put_prompt_ids(const struct part *part)
{
    const struct tokens *prompt = &part->exchange->ask.prompts[part->number];
    put_asked_ids(part->exchange, prompt->of, prompt->n);
}

static void put_text(const struct exchange *e, size_t choice, int32_t token, bool last)
{
    served_text_put(&e->serve->text, &e->flows[choice], token, e->ask.keeps_special, e->out);
    if (last)
        served_text_put_end(&e->flows[choice], e->out);
}

/* Of the tokens of the choice that were not told yet. */
static void put_logprobs(const struct exchange *e, size_t choice)
{
    if (e->ask.n_logprobs >= 0)
        weighed_put(&e->weighed[choice], &e->serve->text, e->ask.chat, e->out);
    else
        evbuffer_add(e->out, "null", 4);
}

static void put_texts(const struct exchange *e, size_t choice)
{
    const struct tokens *answer = &e->answers[choice];
    for (size_t i = 0; i < answer->n; i++)
        put_text(e, choice, answer->of[i], i + 1 == answer->n);
}

static void put_usage(struct evbuffer *out, int64_t n_prompt, int64_t n_answer)
{
    evbuffer_add_printf(out,
                        ",\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld,"
                        "\"completion_tokens\":%lld",
                        (long long)n_prompt, (long long)(n_prompt + n_answer), (long long)n_answer);
}

/* What a request's own server measured of it, in milliseconds of the flight. */
static void put_metrics(struct evbuffer *out, const struct exchange *e, bool whole)
{
    const struct ifl_request_record *r = &e->record;
    const int32_t n = r->output_tokens;
    if (e->ask.n_prompts > 1 || e->ask.n > 1 || e->failed || r->first_token_ns == IFL_NEVER ||
        r->first_scheduled_ns == IFL_NEVER || r->finish_ns == IFL_NEVER) {
        evbuffer_add_printf(out, ",\"metrics\":null");
        return;
    }
    const double first_ms = (double)(r->first_token_ns - r->first_scheduled_ns) * 1e-6,
                 rest_ms = (double)(r->finish_ns - r->first_token_ns) * 1e-6,
                 queue_ms = (double)(r->first_scheduled_ns - r->arrival_ns) * 1e-6;
    evbuffer_add_printf(
        out,
        ",\"metrics\":{\"time_to_first_token_ms\":%.17g,\"generation_time_ms\":%.17g,"
        "\"queue_time_ms\":%.17g,\"mean_itl_ms\":",
        first_ms, rest_ms, queue_ms);
    if (n > 1)
        evbuffer_add_printf(out, "%.17g", rest_ms / (n - 1));
    else
        evbuffer_add_printf(out, "null");
    evbuffer_add_printf(out, ",\"tokens_per_second\":%.17g%s}", n / (first_ms + rest_ms) * 1e3,
                        whole ? ",\"speculative_decoding\":null" : "");
}

static void begin_chunk(const struct exchange *e)
{
    evbuffer_add_printf(e->out,
                        "data: {\"id\":\"%s\",\"object\":\"%s\",\"created\":%ld,\"model\":%s,",
                        e->id, word_of_object(e, true), e->created, quoted_model(e));
}

static void end_chunk(const struct exchange *e)
{
    evbuffer_add(e->out, "}\n\n", 3);
}

/* ---- chunks of a stream ---- */

static void start(struct exchange *e)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(e->http);
    evhttp_add_header(headers, "Content-Type", "text/event-stream; charset=utf-8");
    evhttp_add_header(headers, "Cache-Control", "no-cache");
    evhttp_send_reply_start(e->http, 200, http_reason(200));
    e->started = true;
}

/* Sends what was kept back. */
static void flush(struct exchange *e)
{
    const size_t most = (size_t)e->serve->live->limits.unsent_kib << 10;
    if (!e->http || !e->started)
        return;
    evhttp_send_reply_chunk(e->http, e->out);
    if (http_unsent_bytes(e->http) <= most)
        return;
    evhttp_connection_free(evhttp_request_get_connection(e->http)); /* answer_gone hears it */
}

static void put_role(const struct part *part, int32_t choice)
{
    const struct exchange *e = part->exchange;
    begin_chunk(e);
    evbuffer_add_printf(e->out,
                        "\"choices\":[{\"index\":%d,\"delta\":{\"role\":\"assistant\",\"content\":"
                        "\"\"},\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":",
                        choice);
    put_prompt_ids(part);
    evbuffer_add_printf(e->out, ",\"prompt_text\":null");
    if (e->ask.continuous_usage) {
        put_usage(e->out, part->n_prompt, 0);
        evbuffer_add(e->out, "}", 1);
    }
    end_chunk(e);
}

static void put_chat_choice(const struct part *part, int32_t choice, const struct source_token *t,
                            bool last)
{
    const struct exchange *e = part->exchange;
    evbuffer_add_printf(e->out, "\"choices\":[{\"index\":%d,\"delta\":{\"content\":\"", choice);
    put_text(e, (size_t)choice, t->id, last);
    evbuffer_add_printf(e->out, "\"},\"logprobs\":");
    put_logprobs(e, (size_t)choice);
    evbuffer_add_printf(e->out,
                        ",\"finish_reason\":%s%s,\"token_ids\":", last ? reason_of(part) : "null",
                        last ? ",\"stop_reason\":null" : "");
    put_asked_ids(e, &t->id, 1);
    evbuffer_add(e->out, "}]", 2);
}

static void put_completion_choice(const struct part *part, int32_t choice,
                                  const struct source_token *t, bool last)
{
    const struct exchange *e = part->exchange;
    evbuffer_add_printf(e->out, "\"choices\":[{\"index\":%d,\"text\":\"", choice);
    put_text(e, (size_t)choice, t->id, last);
    evbuffer_add_printf(e->out, "\",\"logprobs\":");
    put_logprobs(e, (size_t)choice);
    evbuffer_add_printf(e->out, ",\"finish_reason\":%s,\"stop_reason\":null,\"prompt_token_ids\":",
                        last ? reason_of(part) : "null");
    if (t->index == 0)
        put_prompt_ids(part);
    else
        evbuffer_add(e->out, "null", 4);
    evbuffer_add_printf(e->out, ",\"token_ids\":");
    put_asked_ids(e, &t->id, 1);
    evbuffer_add(e->out, "}]", 2);
}

static void put_token(const struct part *part, int32_t choice, const struct source_token *t)
{
    const struct exchange *e = part->exchange;
    const bool last = t->index + 1 == part->n_output;
    if (e->ask.chat && t->index == 0)
        put_role(part, choice);
    begin_chunk(e);
    (e->ask.chat ? put_chat_choice : put_completion_choice)(part, choice, t, last);
    if (e->ask.continuous_usage) {
        put_usage(e->out, part->n_prompt, t->index + 1);
        evbuffer_add(e->out, "}", 1);
    }
    if (last && !e->ask.include_usage)
        evbuffer_add_printf(e->out, ",\"system_fingerprint\":\"%s\"", fingerprint);
    end_chunk(e);
}

static void put_stream_end(const struct exchange *e)
{
    if (e->ask.include_usage && !e->failed) {
        begin_chunk(e);
        evbuffer_add_printf(e->out, "\"choices\":[]");
        put_usage(e->out, e->n_prompt_tokens, e->n_answer_tokens);
        evbuffer_add_printf(
            e->out,
            ",\"prompt_tokens_details\":{\"cached_tokens\":%lld%s}},\"system_fingerprint\":\"%s\"",
            (long long)e->n_cached_tokens, e->ask.chat ? ",\"created_cache_tokens\":0" : "",
            fingerprint);
        put_metrics(e->out, e, false);
        end_chunk(e);
    }
    evbuffer_add_printf(e->out, "data: [DONE]\n\n");
}

/* ---- a whole answer ---- */

static void put_whole_choice(const struct exchange *e, size_t i)
{
    const struct part *part = &e->parts[i / (size_t)e->ask.n];
    const struct tokens *answer = &e->answers[i];
    evbuffer_add_printf(e->out, "%s{\"index\":%zu,%s\"", i ? "," : "", i,
                        e->ask.chat ? "\"message\":{\"role\":\"assistant\",\"content\":"
                                    : "\"text\":");
    put_texts(e, i);
    evbuffer_add_printf(e->out, "\"%s,\"logprobs\":",
                        e->ask.chat ? ",\"refusal\":null,\"annotations\":null,\"audio\":null,"
                                      "\"function_call\":null,\"reasoning\":null}"
                                    : "");
    put_logprobs(e, i);
    evbuffer_add_printf(
        e->out, ",\"finish_reason\":%s,\"stop_reason\":null,\"token_ids\":", reason_of(part));
    put_asked_ids(e, answer->of, answer->n);
    if (!e->ask.chat) {
        evbuffer_add_printf(e->out, ",\"prompt_logprobs\":null,\"prompt_token_ids\":");
        put_prompt_ids(part);
    }
    evbuffer_add_printf(e->out, ",\"routed_experts\":null}");
}

static void put_whole(const struct exchange *e)
{
    const bool chat = e->ask.chat;
    evbuffer_add_printf(
        e->out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%ld,\"model\":%s,\"choices\":[",
        e->id, word_of_object(e, false), e->created, quoted_model(e));
    for (size_t i = 0; i < e->ask.n_prompts * (size_t)e->ask.n; i++)
        put_whole_choice(e, i);
    evbuffer_add_printf(e->out, "],\"service_tier\":null,\"system_fingerprint\":\"%s\"",
                        fingerprint);
    put_usage(e->out, e->n_prompt_tokens, e->n_answer_tokens);
    evbuffer_add_printf(e->out,
                        ",\"prompt_tokens_details\":{\"cached_tokens\":%lld,"
                        "\"created_cache_tokens\":%s,\"multimodal_tokens\":null},"
                        "\"completion_tokens_details\":null}",
                        (long long)e->n_cached_tokens, chat ? "0" : "null");
    if (chat)
        evbuffer_add_printf(e->out, ",\"prompt_logprobs\":null,\"prompt_token_ids\":null,"
                                    "\"prompt_text\":null");
    evbuffer_add_printf(e->out, ",\"kv_transfer_params\":null,\"ec_transfer_params\":null");
    put_metrics(e->out, e, true);
    evbuffer_add(e->out, "}", 1);
}

/* ---- errors ---- */

void answer_refuse(struct evhttp_request *http, const struct answer_error *refusal)
{
    char *body = answer_error_json(refusal);
    http_reply(http, refusal->status, "application/json", body ? body : "{}",
               body ? strlen(body) : 2);
    free(body);
}

static void put_error(const struct exchange *e, const struct answer_error *refusal)
{
    char *body = answer_error_json(refusal);
    evbuffer_add_printf(e->out, "data: %s\n\n", body ? body : "{}");
    free(body);
}

/* Why the flight has let a request go that is not answered. */
static void explain(const struct ifl_request_record *record, struct answer_error *refusal)
{
    static const char overloaded[] = "ServiceUnavailableError", internal[] = "InternalServerError";
    switch (record->status) {
    case IFL_SHED:
        refuse(refusal, 503, overloaded, NULL,
               "The server is at its limit of queued requests or tokens. Please try again later.");
        return;
    case IFL_REJECTED:
        refuse(refusal, 400, "BadRequestError", NULL,
               "The scheduler refuses the request: it fits into no batch, or not into the K/V "
               "cache.");
        return;
    case IFL_TIMED_OUT:
        refuse(refusal, 504, "GatewayTimeoutError", NULL, "The request has passed its deadline.");
        return;
    case IFL_ABORTED:
        refuse(refusal, 503, overloaded, NULL, "The server is shutting down.");
        return;
    default:
        refuse(refusal, 500, internal, NULL, "The engine has dropped the request.");
    }
}

/* ---- ends ---- */

void answer_free(struct exchange *e)
{
    struct serve *serve = e->serve;
    *(e->prev ? &e->prev->next : &serve->exchanges) = e->next;
    if (e->next)
        e->next->prev = e->prev;
    serve->n_exchanges--;
    for (size_t i = 0; i < e->ask.n_prompts * (size_t)e->ask.n; i++) {
        if (e->answers)
            tokens_free(&e->answers[i]);
        if (e->weighed)
            weighed_free(&e->weighed[i]);
    }
    free(e->weighed);
    free(e->answers);
    free(e->flows);
    free(e->parts);
    ask_free(&e->ask);
    if (e->out)
        evbuffer_free(e->out);
    free(e);
}

void answer_leave(struct exchange *e)
{
    for (size_t i = 0; i < e->ask.n_prompts; i++)
        if (e->parts[i].row >= 0)
            source_leave(e->serve->source, (size_t)e->parts[i].row);
}

/* evhttp has let go of the request if it has no connection any more: then it is freed here. */
void answer_gone(struct evhttp_connection *connection, void *context)
{
    struct exchange *e = context;
    struct evhttp_request *http = e->http;
    (void)connection;
    e->http = NULL;
    if (!evhttp_request_get_connection(http))
        evhttp_send_reply_end(http);
    answer_leave(e);
    answer_free(e);
}

static void finish(struct exchange *e, const struct answer_error *refusal)
{
    struct serve *serve = e->serve;
    http_release(e->http, &serve->live->limits);
    if (refusal && !e->started) {
        answer_refuse(e->http, refusal);
    } else if (e->ask.stream) {
        if (!e->started)
            start(e);
        if (refusal)
            put_error(e, refusal);
        put_stream_end(e);
        evhttp_send_reply_chunk(e->http, e->out);
        evhttp_send_reply_end(e->http);
    } else {
        put_whole(e);
        evhttp_add_header(evhttp_request_get_output_headers(e->http), "Content-Type",
                          "application/json");
        evhttp_send_reply(e->http, 200, http_reason(200), e->out);
    }
    e->http = NULL;
    answer_free(e);
}

/* One of several prompts has failed: the others leave. */
static void fail(struct exchange *e, const struct ifl_request_record *record)
{
    struct answer_error refusal;
    e->failed = true;
    explain(record, &refusal);
    answer_leave(e);
    finish(e, &refusal);
}

void answer_refuse_all(struct serve *serve)
{
    struct answer_error refusal;
    refuse(&refusal, 500, "InternalServerError", NULL, "The engine has stopped.");
    while (serve->exchanges) {
        struct exchange *e = serve->exchanges;
        e->failed = true;
        finish(e, &refusal);
    }
}

/* ---- what the source says ---- */

static bool is_dead(const struct serve *serve, int64_t replica, int64_t at_ns)
{
    const struct live_faults *faults = &serve->live->faults;
    return faults->dead_replica >= 0 && replica == faults->dead_replica &&
           ifl_s_from_ns(at_ns) >= faults->dead_from_s;
}

static bool is_to_drop(const struct serve *serve, const struct exchange *e)
{
    const uint64_t draw =
        ifl_draw(2, IFL_DRAW_ROUTE, (uint64_t)e->parts[0].row, (uint64_t)e->parts[0].sent_ns);
    return serve->live->faults.drop_frac > 0 && ifl_uniform(draw) < serve->live->faults.drop_frac;
}

/* The connection ends; what was written before has gone out, however busy the machine is. */
static void drop(struct exchange *e)
{
    struct evhttp_connection *link = evhttp_request_get_connection(e->http);
    struct bufferevent *socket = evhttp_connection_get_bufferevent(link);
    struct evbuffer *output = bufferevent_get_output(socket);
    evbuffer_unfreeze(output, 1); /* a socket's buffer is written by its event alone, otherwise */
    (void)evbuffer_write(output, bufferevent_getfd(socket));
    evhttp_connection_free(link); /* answer_gone hears it */
}

void answer_token(void *context, void *owner, const struct source_token *token)
{
    struct serve *serve = context;
    struct part *part = owner;
    serve->metrics.of[token->replica].n_answer_tokens++;
    if (!part || is_dead(serve, token->replica, token->at_ns))
        return;
    struct exchange *e = part->exchange;
    const int32_t choice = (int32_t)part->number * e->ask.n + token->seq;
    if (token->index == 0)
        part->sent_ns = source_sent_ns(e->serve->source, token->row);
    if (token->seq == 0)
        metrics_token(&serve->metrics, token, part->sent_ns, part->last_ns);
    if (token->seq + 1 == e->ask.n)
        part->last_ns = token->at_ns;
    e->n_answer_tokens++;
    if ((e->answers && tokens_add(&e->answers[choice], token->id) < 0) ||
        (e->weighed && weighed_add(&e->weighed[choice], token->id, token->logprobs) < 0))
        e->failed = true;
    if (!e->ask.stream)
        return;
    if (!e->started)
        start(e);
    if (token->index == 1 && is_to_drop(serve, e)) {
        drop(e);
        return;
    }
    put_token(part, choice, token);
    /* The last chunk goes with what is behind it. */
    if (token->index + 1 < part->n_output)
        flush(e);
}

void answer_ended(void *context, void *owner, const struct ifl_request_record *record)
{
    struct serve *serve = context;
    struct part *part = owner;
    metrics_ended(&serve->metrics, record, part ? part->exchange->ask.n : 1,
                  part ? part->exchange->ask.max_tokens : 0,
                  part && part->n_output < part->exchange->ask.max_tokens);
    if (!part)
        return;
    struct exchange *e = part->exchange;
    part->row = -1;
    e->record = *record;
    e->n_open--;
    e->n_cached_tokens += record->cached_tokens;
    if (record->status == IFL_FINISHED && is_dead(serve, record->replica, record->finish_ns))
        return; /* the client waits on */
    if (record->status != IFL_FINISHED)
        fail(e, record);
    else if (e->n_open == 0)
        finish(e, NULL);
}
