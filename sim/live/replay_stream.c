/* A request of the load client, from its body to its row. */
#include "live/replay_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "inflight/minmax.h"

/* Of the body of an answer that is an error; and events without a token that one with n tokens may
 * have beside them. */
enum { ERROR_BYTES = 4096, OTHER_EVENTS = 64 };

enum timer { TIMER_LEAVES, TIMER_STALL, TIMER_TIMEOUT, N_TIMERS };

struct replay_stream {
    struct replay *replay;
    size_t at; /* its record */
    struct arrival arrival;
    struct replay_call *call;
    struct replay_text body;
    struct replay_sse sse;
    struct replay_answer answer;
    int64_t now_ns; /* of the bytes that are read */
    int64_t last_byte_ns, n_bytes, n_events;
    int32_t cap_gaps;
    enum ifl_status leaves; /* it has left, as that; IFL_FINISHED: it has not */
    bool wrong_type;
    size_t n_error;
    char error[ERROR_BYTES];
    char why[256]; /* it failed */
};

static struct replay_record *record_of(const struct replay_stream *stream)
{
    return &stream->replay->records.of[stream->at];
}

int replay_give_up(struct replay *replay, const struct ifl_error *error)
{
    if (!replay->failed)
        replay->error = *error;
    replay->failed = true;
    return replay->error.code;
}

/* ---- the prompt ---- */

/* Tokens of the answer that the server is asked for: the client may leave before. */
static int32_t wanted_tokens(const struct replay *replay, const struct arrival *arrival)
{
    return replay->body.may_stop ? ifl_max(arrival->said.max_tokens, 1)
                                 : replay->trace.n_output[arrival->row];
}

/* True if the next turn's prompt goes on behind this answer: then its ids are asked for. */
static bool wants_ids(const struct replay *replay, const struct arrival *arrival)
{
    return !replay->warming && replay->body.prompts == REPLAY_PROMPT_IDS && !replay->body.chat &&
           replay->workload.repeated_by && replay->workload.repeated_by[arrival->row] > 0;
}

static void draw_ids(struct replay *replay, const struct arrival *arrival)
{
    const struct replay_known *known = replay->warming ? NULL : &replay->known[arrival->row];
    replay_prompt_ids(&replay->vocabulary, arrival, known, replay->ids);
}

/* The model that all requests name, that the row is for, or that the server names first. */
static const char *model_of(const struct replay *replay, const struct arrival *arrival)
{
    const bool of_row = !replay->options->body.model && arrival->said.model > 0;
    return of_row ? replay->trace.model_names[arrival->said.model - 1] : replay->body.model;
}

int replay_make_body(struct replay *replay, const struct arrival *arrival, struct replay_text *text,
                     struct ifl_error *error)
{
    struct replay_body body = replay->body;
    body.model = model_of(replay, arrival);
    draw_ids(replay, arrival);
    return replay_body_write(&body, arrival, wanted_tokens(replay, arrival),
                             wants_ids(replay, arrival), replay->ids, text, error);
}

/* The next turn begins with this prompt and the answer that the server gave. */
static int hand_on(struct replay_stream *stream, struct ifl_error *error)
{
    struct replay *replay = stream->replay;
    const struct arrival *arrival = &stream->arrival;
    if (!wants_ids(replay, arrival) || stream->answer.n_ids == 0)
        return 0;
    const size_t turn = replay->workload.repeated_by[arrival->row] - 1;
    const int32_t n = arrival->n_prompt + stream->answer.n_ids;
    struct replay_known *known = &replay->known[turn];
    if (known->ids || replay->ready[turn].of) /* an attempt before this one, or it has come */
        return 0;
    known->ids = malloc((size_t)n * sizeof *known->ids);
    if (!known->ids)
        return ifl_fail_nomem(error);
    draw_ids(replay, arrival);
    memcpy(known->ids, replay->ids, (size_t)arrival->n_prompt * sizeof *known->ids);
    memcpy(known->ids + arrival->n_prompt, stream->answer.ids,
           (size_t)stream->answer.n_ids * sizeof *known->ids);
    known->n = n;
    return 0;
}

/* No attempt at the row will come. */
static void forget(struct replay_known *known)
{
    free(known->ids);
    *known = (struct replay_known){0};
}

/* ---- the answer ---- */

static int put_chunk(struct replay_stream *stream, int32_t n_tokens, struct ifl_error *error)
{
    struct replay *replay = stream->replay;
    const struct replay_record *record = record_of(stream);
    if (!replay->options->keeps_chunks || replay->warming)
        return 0;
    char *at = replay_rows_room(&replay->chunks, 4 * ROW_NUMBER_BYTES, error);
    if (!at)
        return error->code;
    at = row_put_whole(at, (int64_t)record->id);
    at = row_put_whole(at, record->n_chunks - 1);
    at = row_put_seconds(at, stream->now_ns);
    at = row_put_count(at, stream->answer.counted ? n_tokens : -1);
    replay_rows_end(&replay->chunks, row_put_end(at));
    return 0;
}

static int note_gap(struct replay_stream *stream, struct replay_record *record,
                    struct ifl_error *error)
{
    if (record->n_gaps == stream->cap_gaps) {
        const int32_t cap = ifl_max(16, 2 * stream->cap_gaps);
        if (array_grow(&record->gap_ns, (size_t)record->n_gaps, (size_t)cap,
                       sizeof *record->gap_ns) < 0)
            return ifl_fail_nomem(error);
        stream->cap_gaps = cap;
    }
    record->gap_ns[record->n_gaps++] = stream->now_ns - record->last_token_ns;
    return 0;
}

static int note_tokens(struct replay_stream *stream, int32_t n_tokens, struct ifl_error *error)
{
    struct replay_record *record = record_of(stream);
    int rc = 0;
    if (record->first_token_ns == IFL_NEVER)
        record->first_token_ns = stream->now_ns;
    else
        rc = note_gap(stream, record, error);
    record->last_token_ns = stream->now_ns;
    record->n_chunks++;
    stream->replay->n_chunks++;
    return rc == 0 ? put_chunk(stream, n_tokens, error) : rc;
}

/* Its client has as many tokens as it waits for. */
static bool has_enough(const struct replay_stream *stream)
{
    return stream->arrival.cut && stream->answer.n_tokens >= stream->arrival.n_output;
}

static bool on_event(void *context, const char *data, size_t n)
{
    struct replay_stream *stream = context;
    struct ifl_error error;
    const int32_t n_tokens = replay_answer_take(&stream->answer, data, n);
    if (n_tokens < 0) {
        snprintf(stream->why, sizeof stream->why, "%s", stream->answer.error);
        return false;
    }
    const int64_t most =
        (int64_t)stream->answer.most_tokens * stream->answer.n_samples + OTHER_EVENTS;
    if (++stream->n_events > most) {
        snprintf(stream->why, sizeof stream->why, "more than %lld events in the stream",
                 (long long)most);
        return false;
    }
    if (n_tokens > 0 && note_tokens(stream, n_tokens, &error) < 0) {
        replay_give_up(stream->replay, &error);
        return false;
    }
    if (has_enough(stream))
        stream->leaves = IFL_ABORTED;
    return stream->leaves == IFL_FINISHED;
}

static bool take_stream(struct replay_stream *stream, const char *bytes, size_t n)
{
    const size_t most_kib = stream->replay->options->most_event_bytes >> 10;
    switch (replay_sse_take(&stream->sse, bytes, n)) {
    case REPLAY_SSE_GOES_ON:
        return true;
    case REPLAY_SSE_STOPPED:
        break;
    case REPLAY_SSE_LONG_LINE:
        snprintf(stream->why, sizeof stream->why, "a line of more than %zu KiB", most_kib);
        break;
    case REPLAY_SSE_LONG_EVENT:
        snprintf(stream->why, sizeof stream->why, "an event of more than %zu KiB", most_kib);
        break;
    case REPLAY_SSE_NO_MEMORY:
        snprintf(stream->why, sizeof stream->why, "no memory for an event");
        break;
    }
    return false;
}

/* What is not a stream of a success is read as far as an error message goes. */
static bool take_error(struct replay_stream *stream, const char *bytes, size_t n)
{
    const size_t room = sizeof stream->error - stream->n_error;
    memcpy(stream->error + stream->n_error, bytes, ifl_min(n, room));
    stream->n_error += ifl_min(n, room);
    return stream->n_error < sizeof stream->error;
}

static bool is_stream(struct replay_stream *stream, const struct replay_call *call)
{
    static const char type[] = "text/event-stream";
    if (replay_call_status(call) / 100 != 2)
        return false;
    stream->wrong_type = strncasecmp(replay_call_type(call), type, sizeof type - 1) != 0;
    if (stream->wrong_type && !*stream->why)
        snprintf(stream->why, sizeof stream->why, "content-type is \"%.80s\", expected %s",
                 replay_call_type(call), type);
    return !stream->wrong_type;
}

static bool on_bytes(void *context, struct replay_call *call, int64_t now_ns, const char *bytes,
                     size_t n)
{
    struct replay_stream *stream = context;
    struct replay_record *record = record_of(stream);
    stream->now_ns = stream->last_byte_ns = now_ns - stream->replay->start_ns;
    if (record->first_byte_ns == IFL_NEVER)
        record->first_byte_ns = stream->now_ns;
    stream->n_bytes += (int64_t)n;
    if (stream->n_bytes > (int64_t)stream->replay->options->most_answer_bytes) {
        snprintf(stream->why, sizeof stream->why, "an answer of more than %zu KiB",
                 stream->replay->options->most_answer_bytes >> 10);
        return false;
    }
    return is_stream(stream, call) ? take_stream(stream, bytes, n) : take_error(stream, bytes, n);
}

/* ---- the end ---- */

static enum ifl_status status_of_code(long code)
{
    return code == 429 || code == 503   ? IFL_SHED
           : code == 408 || code == 504 ? IFL_TIMED_OUT
           : code / 100 == 4            ? IFL_REJECTED
                                        : IFL_FAILED;
}

static void explain_code(struct replay_stream *stream, long code)
{
    char message[200];
    if (code / 100 == 3) {
        snprintf(stream->why, sizeof stream->why, "HTTP %ld: a redirect, which is not followed",
                 code);
        return;
    }
    replay_answer_error(stream->error, stream->n_error, message, sizeof message);
    snprintf(stream->why, sizeof stream->why, "HTTP %ld%s%s", code, *message ? ": " : "", message);
}

/* What became of a transfer that is over. */
static enum ifl_status judge(struct replay_stream *stream, const struct replay_end *end)
{
    if (stream->leaves != IFL_FINISHED) {
        *stream->why = '\0';
        return stream->leaves;
    }
    if (end->status / 100 != 2 && end->status > 0 && !(end->error && stream->n_error == 0)) {
        explain_code(stream, end->status);
        return status_of_code(end->status);
    }
    if (stream->call && replay_call_headers_too_long(stream->call))
        snprintf(stream->why, sizeof stream->why, "more than %d KiB of headers",
                 REPLAY_HEADERS_BYTES >> 10);
    if (*stream->why)
        return IFL_FAILED;
    if (end->error)
        snprintf(stream->why, sizeof stream->why, "%.200s", end->error);
    else if (!stream->answer.is_finished)
        snprintf(stream->why, sizeof stream->why,
                 "the stream ended after %d chunks without a finish_reason",
                 record_of(stream)->n_chunks);
    else if (stream->answer.n_tokens == 0 || record_of(stream)->first_token_ns == IFL_NEVER)
        snprintf(stream->why, sizeof stream->why, "an answer without a token");
    return *stream->why ? IFL_FAILED : IFL_FINISHED;
}

static void close_record(struct replay_stream *stream, enum ifl_status status, int64_t now_ns)
{
    struct replay_record *record = record_of(stream);
    replay_printable(stream->why);
    record->status = status;
    record->end_ns = now_ns;
    record->output_tokens = stream->answer.n_tokens;
    record->prompt_tokens_server = stream->answer.prompt_tokens;
    record->cached_tokens = stream->answer.cached_tokens;
    record->queue_ns = stream->answer.queue_ns;
    record->counted = stream->answer.counted || stream->answer.has_usage;
    record->error = *stream->why ? strdup(stream->why) : NULL;
    record->stream = NULL;
}

static int put_request(struct replay *replay, const struct replay_record *record,
                       struct ifl_error *error)
{
    char *at = replay_rows_room(&replay->requests, replay_request_bytes(record), error);
    if (!at)
        return error->code;
    replay_rows_end(&replay->requests, replay_put_request(at, record));
    return 0;
}

static void free_stream(struct replay_stream *stream)
{
    replay_sse_reset(&stream->sse);
    free(stream->answer.ids);
    free(stream->body.of);
    free(stream);
}

/* The stream is gone when it returns. */
static void finish(struct replay_stream *stream, enum ifl_status status, int64_t now_ns)
{
    struct replay *replay = stream->replay;
    const struct arrival *arrival = &stream->arrival;
    struct ifl_error error;
    int rc = 0;
    replay->n_open--;
    close_record(stream, status, now_ns);
    if (!replay->warming) {
        rc = put_request(replay, record_of(stream), &error);
        if (rc == 0 && status == IFL_FINISHED)
            rc = hand_on(stream, &error);
        if (rc == 0)
            rc = workload_ended(&replay->workload, arrival->row, arrival->serial, arrival->attempt,
                                status, now_ns, &error);
        if (status == IFL_FINISHED)
            forget(&replay->known[arrival->row]);
        if (replay->options->n_ended)
            atomic_fetch_add(replay->options->n_ended, 1);
    }
    if (rc < 0)
        replay_give_up(replay, &error);
    free_stream(stream);
}

static void on_done(void *context, const struct replay_end *end)
{
    struct replay_stream *stream = context;
    record_of(stream)->http_status = (int32_t)end->status;
    record_of(stream)->connect_ns = end->connect_ns;
    const enum ifl_status status = judge(stream, end);
    finish(stream, status, end->now_ns - stream->replay->start_ns);
}

static void cancel(struct replay_stream *stream, enum ifl_status status, int64_t now_ns)
{
    replay_http_cancel(stream->replay->http, stream->call);
    finish(stream, status, now_ns);
}

void replay_end_all(struct replay *replay, const char *why)
{
    for (size_t i = 0; i < replay->records.n && replay->n_open > 0; i++) {
        struct replay_stream *stream = replay->records.of[i].stream;
        if (!stream)
            continue;
        snprintf(stream->why, sizeof stream->why, "%s", why);
        cancel(stream, IFL_ABORTED, replay_now(replay));
    }
}

/* ---- what is due while it is under way ---- */

static int set_timer(struct replay *replay, size_t at, enum timer timer, int64_t at_ns,
                     struct ifl_error *error)
{
    if (at_ns == IFL_NEVER)
        return 0;
    const uint64_t payload = (uint64_t)at * N_TIMERS + (uint64_t)timer;
    return event_push(&replay->timers, at_ns, replay->n_timers++, payload) < 0
               ? ifl_fail_nomem(error)
               : 0;
}

static int64_t after_ns(int64_t from_ns, double s)
{
    return ifl_later_ns(from_ns, ifl_ns_from_s(s));
}

/* A client that has its first token may have no reason to leave any more. */
static bool stays(const struct replay_stream *stream, enum ifl_status as)
{
    return as == IFL_ABORTED && stream->replay->workload.patience.until_first_token &&
           record_of(stream)->first_token_ns != IFL_NEVER;
}

/* What is left to a client that stays. */
static int await_deadline(struct replay_stream *stream, int64_t now_ns, struct ifl_error *error)
{
    const int64_t expires_ns = arrival_expires_ns(&stream->arrival);
    if (now_ns < expires_ns)
        return set_timer(stream->replay, stream->at, TIMER_LEAVES, expires_ns, error);
    cancel(stream, IFL_TIMED_OUT, now_ns);
    return 0;
}

static int expire(struct replay_stream *stream, enum timer timer, int64_t now_ns,
                  struct ifl_error *error)
{
    const struct replay_options *options = stream->replay->options;
    enum ifl_status as = IFL_FAILED;
    if (timer == TIMER_LEAVES) {
        arrival_leaves_ns(&stream->arrival, &as);
        if (stays(stream, as))
            return await_deadline(stream, now_ns, error);
        cancel(stream, as, now_ns);
        return 0;
    }
    const int64_t quiet_until_ns = after_ns(stream->last_byte_ns, options->stall_s);
    if (timer == TIMER_STALL && quiet_until_ns > now_ns)
        return set_timer(stream->replay, stream->at, TIMER_STALL, quiet_until_ns, error);
    if (timer == TIMER_STALL)
        snprintf(stream->why, sizeof stream->why, "no byte for %g s", options->stall_s);
    else
        snprintf(stream->why, sizeof stream->why, "not over after %g s", options->timeout_s);
    cancel(stream, IFL_FAILED, now_ns);
    return 0;
}

int replay_expire(struct replay *replay, int64_t now_ns, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0 && event_next_ns(&replay->timers) <= now_ns) {
        const uint64_t payload = event_pop(&replay->timers).payload;
        struct replay_stream *stream = replay->records.of[payload / N_TIMERS].stream;
        if (stream)
            rc = expire(stream, (enum timer)(payload % N_TIMERS), now_ns, error);
    }
    return rc;
}

/* ---- sending ---- */

static int take_body(struct replay_stream *stream, struct ifl_error *error)
{
    struct replay *replay = stream->replay;
    const size_t row = stream->arrival.row;
    struct replay_text *ready = replay->warming ? NULL : &replay->ready[row];
    if (ready && ready->of) { /* a retry makes it again: its record has gone */
        stream->body = *ready;
        *ready = (struct replay_text){0};
        replay->n_ready_bytes -= stream->body.n;
        return 0;
    }
    return replay_make_body(replay, &stream->arrival, &stream->body, error);
}

static struct replay_stream *make_stream(struct replay *replay, const struct arrival *arrival,
                                         struct ifl_error *error)
{
    struct replay_stream *stream = calloc(1, sizeof *stream);
    const int32_t n_tokens = wanted_tokens(replay, arrival);
    if (!stream) {
        ifl_fail_nomem(error);
        return NULL;
    }
    stream->replay = replay;
    stream->arrival = *arrival;
    stream->sse = (struct replay_sse){
        .most_bytes = replay->options->most_event_bytes, .event = on_event, .context = stream};
    replay_answer_begin(&stream->answer, arrival->said.samples, n_tokens);
    if (wants_ids(replay, arrival))
        stream->answer.ids = malloc((size_t)n_tokens * sizeof *stream->answer.ids);
    if (take_body(stream, error) < 0) {
        free_stream(stream);
        return NULL;
    }
    return stream;
}

static int make_record(struct replay_stream *stream, struct ifl_error *error)
{
    struct replay *replay = stream->replay;
    const struct arrival *arrival = &stream->arrival;
    struct replay_record *record = replay_records_add(&replay->records);
    if (!record)
        return ifl_fail_nomem(error);
    stream->at = replay->records.n - 1;
    record->id = workload_id(&replay->workload, arrival->row, arrival->attempt);
    record->is_retry = workload_is_retry(&replay->workload, arrival->row, arrival->attempt);
    record->due_ns = arrival->sent_ns;
    record->connect_ns = -1;
    record->first_byte_ns = record->first_token_ns = record->last_token_ns = IFL_NEVER;
    record->queue_ns = IFL_NEVER;
    record->ttft_slo_ns = arrival->said.ttft_slo_ns;
    record->tpot_slo_ns = arrival->said.tpot_slo_ns;
    record->prompt_tokens = arrival->n_prompt;
    record->stream = stream;
    return 0;
}

int replay_send(struct replay *replay, const struct arrival *arrival, struct ifl_error *error)
{
    enum ifl_status as;
    struct replay_stream *stream = make_stream(replay, arrival, error);
    if (!stream)
        return error->code;
    if (make_record(stream, error) < 0) {
        free_stream(stream);
        return error->code;
    }
    const struct replay_handler handler = {on_bytes, on_done, stream};
    const int64_t sent_ns = replay_now(replay);
    record_of(stream)->sent_ns = stream->last_byte_ns = sent_ns;
    replay->n_open++;
    stream->call = replay_http_start(replay->http,
                                     replay->body.chat ? "/v1/chat/completions" : "/v1/completions",
                                     stream->body.of, stream->body.n, &handler);
    if (!stream->call) {
        finish(stream, IFL_FAILED, sent_ns);
        return ifl_fail(error, IFL_E_DEVICE, "a request cannot be sent: no memory");
    }
    const size_t at = stream->at;
    int rc = set_timer(replay, at, TIMER_LEAVES, arrival_leaves_ns(arrival, &as), error);
    if (rc == 0)
        rc = set_timer(replay, at, TIMER_STALL, after_ns(sent_ns, replay->options->stall_s), error);
    return rc == 0 ? set_timer(replay, at, TIMER_TIMEOUT,
                               after_ns(sent_ns, replay->options->timeout_s), error)
                   : rc;
}
