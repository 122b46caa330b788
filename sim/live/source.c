#include "live/source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "inflight/minmax.h"
#include "inflight/random.h"
#include "live/names.h"
#include "live/source_later.h"
#include "live/timeval.h"
#include "run/flight.h"

/* The event loop is looked at that often where the flight never waits. */
enum { POLL_NS = 200000 };

/* A place: of a request from source_send until the listener has heard that it has ended. */
struct place {
    bool taken, leaving;
    bool over;         /* it has left the flight; the listener has not been called yet */
    void *owner;       /* NULL: nothing listens any more */
    uint64_t abort_at; /* in the recording */
    int64_t sent_ns;
    int32_t *tokens; /* [n_tokens] of the prompt and its answer */
    uint64_t *ids;   /* [n_tokens] of them and all before */
    int32_t n_tokens, cap_tokens, n_logprobs;
    char session[64];
};

/* What waits to be taken by the flight, a ring. */
struct inbox {
    struct {
        size_t row;
        enum source_says what;
    } * of;
    size_t first, n, cap;
};

struct live_source {
    struct source source;
    struct source_options options;
    struct source_listener listener;
    struct ifl_trace trace;
    struct place *places;
    size_t *free; /* [n_free] rows */
    size_t n_free;
    struct retired {
        size_t row;
        int32_t replica;
    } * retired; /* [n_places] rows of requests that have ended: a ring of n_retired */
    size_t first_retired, n_retired;
    struct names clients, sessions;
    struct inbox inbox;
    struct later later;
    uint64_t n_sent;
    bool closing;
    struct ifl_error error; /* code 0: none */
    struct source_trace recording;
    const struct flight *flight;
    int64_t token_ns; /* from the engine to the client */

    int64_t epoch_ns; /* of the steady clock, when the first request came; 0: none did */
    int64_t polled_ns;
    struct event *timer, *woken;
    int wake_fd;
    bool is_woken;
};

/* ---- the clock ---- */

int64_t source_now_ns(const struct live_source *s)
{
    const double speed = s->options.speed;
    if (s->epoch_ns == 0)
        return 0;
    const int64_t passed_ns = clock_steady_ns() - s->epoch_ns;
    return speed == 1 ? passed_ns : (int64_t)((double)passed_ns * speed);
}

static int64_t now(void *self)
{
    return source_now_ns(self);
}

/* ---- waiting ---- */

static bool has(void *self)
{
    const struct live_source *s = self;
    return s->inbox.n > 0 || s->error.code < 0 || (s->closing && s->inbox.n == 0);
}

static void on_timer(evutil_socket_t fd, short what, void *self)
{
    (void)fd;
    (void)what;
    (void)self;
}

static void on_wake(evutil_socket_t fd, short what, void *self)
{
    struct live_source *s = self;
    uint64_t n;
    (void)what;
    s->is_woken = read(fd, &n, sizeof n) == sizeof n;
}

static void wake(void *self)
{
    const struct live_source *s = self;
    const uint64_t one = 1;
    ssize_t n;
    do
        n = write(s->wake_fd, &one, sizeof one);
    while (n < 0 && errno == EINTR);
}

static void deliver_due(struct live_source *s);

/* Lets the event loop run once, at most until the clock says at_ns. */
static void run_events(struct live_source *s, int64_t at_ns)
{
    const bool clock_goes = s->epoch_ns != 0;
    if (clock_goes && at_ns != IFL_NEVER) {
        const double left_s = (double)(at_ns - source_now_ns(s)) * 1e-9 / s->options.speed;
        const double wait_s = fmin(fmax(left_s, 0), 3600);
        struct timeval wait = timeval_of_s(wait_s);
        wait.tv_usec++; /* not before it */
        evtimer_add(s->timer, &wait);
    }
    event_base_loop(s->options.base, EVLOOP_ONCE);
    s->polled_ns = clock_steady_ns();
}

static void poll_events(struct live_source *s)
{
    const int64_t steady = clock_steady_ns();
    if (steady - s->polled_ns < POLL_NS)
        return;
    event_base_loop(s->options.base, EVLOOP_NONBLOCK);
    s->polled_ns = steady;
}

static void wait_until(void *self, int64_t until_ns)
{
    struct live_source *s = self;
    s->is_woken = false;
    deliver_due(s);
    poll_events(s);
    while (!has(s) && !s->is_woken && source_now_ns(s) < until_ns) {
        run_events(s, ifl_min(until_ns, later_due_ns(&s->later)));
        deliver_due(s);
    }
}

/* ---- places ---- */

static int room_for_tokens(struct place *place, int32_t n)
{
    if (n <= place->cap_tokens)
        return 0;
    free(place->tokens);
    free(place->ids);
    place->tokens = malloc((size_t)n * sizeof *place->tokens);
    place->ids = malloc((size_t)n * sizeof *place->ids);
    place->cap_tokens = place->tokens && place->ids ? n : 0;
    return place->cap_tokens ? 0 : IFL_E_NOMEM;
}

/* The token that stands for that one of the row's answer, where no engine says another. */
static int32_t answer_token(const struct live_source *s, size_t row, int32_t seq, int32_t index)
{
    const uint64_t draw =
        ifl_draw((uint64_t)seq, IFL_DRAW_TOKEN, s->trace.request_id[row], (uint64_t)index);
    const struct source_options *options = &s->options;
    return options->words ? (int32_t)options->words[draw % options->n_words]
                          : (int32_t)(draw % SOURCE_VOCABULARY);
}

/* The identity of a token covers all tokens before it, as readers of traces make it. */
static void name_tokens(struct live_source *s, struct place *place, size_t row,
                        const struct source_request *request)
{
    const bool answers = s->options.names_answers && request->samples == 1;
    const int32_t n = request->n_prompt + (answers ? request->n_output : 0);
    place->n_tokens = 0;
    if (!request->tokens || !s->options.keeps_ids || room_for_tokens(place, n) < 0)
        return;
    memcpy(place->tokens, request->tokens, (size_t)request->n_prompt * sizeof *place->tokens);
    for (int32_t i = request->n_prompt; i < n; i++)
        place->tokens[i] = answer_token(s, row, 0, i - request->n_prompt);
    uint64_t before = 0;
    for (int32_t i = 0; i < n; i++)
        place->ids[i] = before = ifl_mix(before ^ ifl_mix((uint64_t)place->tokens[i]));
    place->n_tokens = n;
}

/* A request that has ended may keep its blocks, and with them its tokens, until its replica's next
 * plan (serving.in_flight.ahead). */
static bool is_let_go(const struct live_source *s, const struct retired *one)
{
    return one->replica < 0 || s->flight->replicas[one->replica].leaving.n_ended == 0;
}

static void retire(struct live_source *s, size_t row, int32_t replica)
{
    const size_t n = s->options.n_places;
    s->retired[(s->first_retired + s->n_retired++) % n] = (struct retired){row, replica};
}

static void free_retired(struct live_source *s)
{
    while (s->n_retired > 0 && is_let_go(s, &s->retired[s->first_retired])) {
        s->free[s->n_free++] = s->retired[s->first_retired].row;
        s->first_retired = (s->first_retired + 1) % s->options.n_places;
        s->n_retired--;
    }
}

static void put(struct live_source *s, size_t row, enum source_says what)
{
    struct inbox *inbox = &s->inbox;
    const size_t at = (inbox->first + inbox->n++) % inbox->cap;
    inbox->of[at].row = row;
    inbox->of[at].what = what;
}

int64_t source_send(struct live_source *s, const struct source_request *request, void *owner)
{
    free_retired(s);
    if (s->n_free == 0 || s->closing || s->n_sent >= s->options.most_requests)
        return SOURCE_FULL;
    const size_t row = s->free[--s->n_free];
    struct place *place = &s->places[row];
    struct ifl_trace *trace = &s->trace;
    uint32_t client = 0, session = 0;
    if (names_number(&s->clients, request->client, &client) < 0 ||
        (*request->session && names_number(&s->sessions, request->session, &session) < 0)) {
        s->n_free++;
        return SOURCE_FULL;
    }
    place->taken = true;
    place->leaving = place->over = false;
    place->owner = owner;
    place->n_logprobs = request->n_logprobs;
    snprintf(place->session, sizeof place->session, "%s", request->session);
    trace->request_id[row] = s->n_sent++;
    trace->n_prompt[row] = request->n_prompt;
    trace->n_output[row] = request->n_output;
    trace->max_tokens[row] = request->max_tokens;
    trace->samples[row] = request->samples;
    trace->priority[row] = request->priority;
    trace->model[row] = request->model;
    trace->client[row] = client;
    trace->session[row] = *request->session ? session + 1 : 0;
    trace->abort_ns[row] = IFL_NEVER;
    name_tokens(s, place, row, request);
    put(s, row, SOURCE_ARRIVAL);
    return (int64_t)row;
}

void source_leave(struct live_source *s, size_t row)
{
    struct place *place = &s->places[row];
    ifl_require(place->taken);
    place->owner = NULL;
    if (place->leaving || place->over)
        return;
    place->leaving = true;
    put(s, row, SOURCE_LEAVES);
}

void source_close(struct live_source *s)
{
    s->closing = true;
    for (size_t row = 0; row < s->options.n_places; row++)
        if (s->places[row].taken && !s->places[row].leaving && !s->places[row].over) {
            s->places[row].leaving = true;
            put(s, row, SOURCE_LEAVES);
        }
}

void source_fail(struct live_source *s, const struct ifl_error *error)
{
    if (s->error.code == 0)
        s->error = *error;
}

uint64_t source_n_sent(const struct live_source *s)
{
    return s->n_sent;
}

int64_t source_sent_ns(const struct live_source *s, size_t row)
{
    return s->places[row].sent_ns;
}

/* ---- what the flight asks ---- */

static enum source_says take(void *self, size_t *row, struct ifl_error *error)
{
    struct live_source *s = self;
    struct inbox *inbox = &s->inbox;
    if (s->error.code < 0) {
        *error = s->error;
        return SOURCE_FAILED;
    }
    while (inbox->n > 0) {
        *row = inbox->of[inbox->first].row;
        const enum source_says what = inbox->of[inbox->first].what;
        inbox->first = (inbox->first + 1) % inbox->cap;
        inbox->n--;
        if (what == SOURCE_ARRIVAL || !s->places[*row].over)
            return what;
    }
    return s->closing ? SOURCE_CLOSED : SOURCE_EMPTY;
}

static void record_row(struct live_source *s, size_t row)
{
    struct place *place = &s->places[row];
    const struct source_row written = {.request_id = s->trace.request_id[row],
                                       .sent_ns = place->sent_ns,
                                       .trace = &s->trace,
                                       .row = row,
                                       .client = names_text(&s->clients, s->trace.client[row]),
                                       .session = place->session,
                                       .tokens = place->tokens,
                                       .n_tokens = place->n_tokens};
    struct ifl_error error;
    if (source_trace_add(&s->recording, &written, &place->abort_at, &error) < 0)
        source_fail(s, &error);
}

static void stamp(void *self, size_t row, enum source_says what, int64_t at_ns)
{
    struct live_source *s = self;
    struct place *place = &s->places[row];
    struct ifl_error error;
    if (s->epoch_ns == 0)
        s->epoch_ns = clock_steady_ns();
    if (what == SOURCE_ARRIVAL) {
        place->sent_ns = at_ns;
        if (s->options.trace_path)
            record_row(s, row);
        return;
    }
    s->trace.abort_ns[row] = at_ns - place->sent_ns;
    if (s->options.trace_path &&
        source_trace_abort(&s->recording, place->abort_at, s->trace.abort_ns[row], &error) < 0)
        source_fail(s, &error);
}

static struct source_ids ids_of(void *self, size_t row)
{
    const struct live_source *s = self;
    return (struct source_ids){s->places[row].ids, s->places[row].n_tokens};
}

static const int32_t *prompt_of(void *self, size_t row)
{
    const struct live_source *s = self;
    return s->places[row].n_tokens > 0 ? s->places[row].tokens : NULL;
}

static int32_t logprobs_of_row(void *self, size_t row)
{
    const struct live_source *s = self;
    return s->places[row].n_logprobs;
}

/* ---- what the flight says ---- */

static void tell(struct live_source *s, const struct heard *heard)
{
    const size_t row = heard->token.row;
    struct place *place = &s->places[row];
    void *owner = place->owner;
    if (!heard->ended) {
        s->listener.token(s->listener.context, owner, &heard->token);
        return;
    }
    place->taken = false;
    place->owner = NULL;
    retire(s, row, heard->record.replica);
    s->listener.ended(s->listener.context, owner, &heard->record);
}

static void hear(struct live_source *s, struct heard *heard)
{
    struct ifl_error error;
    heard->token.at_ns += s->token_ns;
    if (s->token_ns == 0) {
        tell(s, heard);
        return;
    }
    if (heard->token.logprobs) {
        struct ifl_logprobs *own = malloc(sizeof *own);
        if (own)
            *own = *heard->token.logprobs;
        heard->token.logprobs = own;
    }
    if (later_add(&s->later, heard) < 0) {
        free((void *)(uintptr_t)heard->token.logprobs);
        ifl_fail_nomem(&error);
        source_fail(s, &error);
    }
}

static void deliver_due(struct live_source *s)
{
    while (later_due_ns(&s->later) <= source_now_ns(s)) {
        const struct heard heard = later_take(&s->later);
        tell(s, &heard);
        free((void *)(uintptr_t)heard.token.logprobs);
    }
}

static void token(void *self, const struct source_token *token)
{
    struct live_source *s = self;
    struct heard heard = {.token = *token};
    if (token->id < 0)
        heard.token.id = answer_token(s, token->row, token->seq, token->index);
    hear(s, &heard);
}

static void ended(void *self, size_t row, const struct ifl_request_record *record, int64_t at_ns)
{
    struct live_source *s = self;
    s->places[row].over = true;
    hear(s,
         &(struct heard){.token = {.row = row, .at_ns = at_ns}, .ended = true, .record = *record});
}

static void step(void *self, const struct replica *replica, const struct ifl_done *done)
{
    const struct live_source *s = self;
    s->listener.step(s->listener.context, replica, done);
}

static void begin(void *self, const struct flight *flight)
{
    struct live_source *s = self;
    s->flight = flight;
    s->token_ns = flight->workload->token_ns;
    s->listener.begin(s->listener.context, flight);
}

static const struct source_ops ops = {.now = now,
                                      .wait = wait_until,
                                      .wake = wake,
                                      .has = has,
                                      .take = take,
                                      .stamp = stamp,
                                      .ids = ids_of,
                                      .prompt = prompt_of,
                                      .logprobs = logprobs_of_row,
                                      .token = token,
                                      .step = step,
                                      .ended = ended,
                                      .begin = begin};

/* ---- creating and destroying ---- */

static int create_trace(struct ifl_trace *trace, const struct source_options *options)
{
    const size_t n = options->n_places;
    trace->n = n;
    trace->hash_block_tokens = 1;
    trace->n_clients = options->most_clients;
    trace->n_models = (uint32_t)options->n_models;
    trace->model_names = (char **)(uintptr_t)options->models;
    trace->arrival_ns = calloc(n, sizeof *trace->arrival_ns);
    trace->n_prompt = calloc(n, sizeof *trace->n_prompt);
    trace->n_output = calloc(n, sizeof *trace->n_output);
    trace->request_id = calloc(n, sizeof *trace->request_id);
    trace->client = calloc(n, sizeof *trace->client);
    trace->priority = calloc(n, sizeof *trace->priority);
    trace->max_tokens = calloc(n, sizeof *trace->max_tokens);
    trace->samples = calloc(n, sizeof *trace->samples);
    trace->model = calloc(n, sizeof *trace->model);
    trace->session = calloc(n, sizeof *trace->session);
    trace->abort_ns = malloc(n * sizeof *trace->abort_ns);
    if (!trace->arrival_ns || !trace->n_prompt || !trace->n_output || !trace->request_id ||
        !trace->client || !trace->priority || !trace->max_tokens || !trace->samples ||
        !trace->model || !trace->session || !trace->abort_ns)
        return IFL_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        trace->abort_ns[i] = IFL_NEVER;
        trace->samples[i] = 1;
    }
    return 0;
}

static int create_rooms(struct live_source *s)
{
    const size_t n = s->options.n_places;
    s->places = calloc(n, sizeof *s->places);
    s->free = malloc(n * sizeof *s->free);
    s->retired = malloc(n * sizeof *s->retired);
    s->inbox.cap = 2 * n; /* of a request an arrival and a departure */
    s->inbox.of = malloc(s->inbox.cap * sizeof *s->inbox.of);
    if (!s->places || !s->free || !s->retired || !s->inbox.of ||
        create_trace(&s->trace, &s->options) < 0)
        return IFL_E_NOMEM;
    for (size_t row = n; row > 0; row--)
        s->free[s->n_free++] = row - 1;
    return names_open(&s->clients, s->options.most_clients) < 0 ||
                   names_open(&s->sessions, NAMES_ANY) < 0
               ? IFL_E_NOMEM
               : 0;
}

static int create_events(struct live_source *s, struct ifl_error *error)
{
    s->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->wake_fd < 0)
        return ifl_fail(error, IFL_E_IO, "cannot make an eventfd: %s", strerror(errno));
    s->timer = evtimer_new(s->options.base, on_timer, s);
    s->woken = event_new(s->options.base, s->wake_fd, EV_READ | EV_PERSIST, on_wake, s);
    if (!s->timer || !s->woken || event_add(s->woken, NULL) < 0)
        return ifl_fail_nomem(error);
    return 0;
}

struct live_source *source_create(const struct source_options *options, struct ifl_error *error)
{
    struct live_source *s = calloc(1, sizeof *s);
    if (!s) {
        ifl_fail_nomem(error);
        return NULL;
    }
    s->options = *options;
    s->listener = *options->listener;
    s->wake_fd = s->recording.fd = -1;
    s->source = (struct source){.ops = &ops,
                                .self = s,
                                .trace = &s->trace,
                                .most_requests = options->most_requests,
                                .most_samples = options->most_samples};
    int rc = create_rooms(s) < 0 ? ifl_fail_nomem(error) : create_events(s, error);
    if (rc == 0 && options->trace_path)
        rc = source_trace_open(&s->recording, options->trace_path, error);
    if (rc == 0)
        return s;
    source_destroy(s);
    return NULL;
}

void source_destroy(struct live_source *s)
{
    if (!s)
        return;
    struct ifl_error unread; /* of a run that has ended otherwise */
    if (s->recording.path)
        (void)source_trace_flush(&s->recording, &unread);
    source_trace_close(&s->recording);
    if (s->timer)
        event_free(s->timer);
    if (s->woken)
        event_free(s->woken);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    for (size_t row = 0; s->places && row < s->options.n_places; row++) {
        free(s->places[row].tokens);
        free(s->places[row].ids);
    }
    s->trace.model_names = NULL; /* borrowed */
    ifl_trace_free(&s->trace);
    names_close(&s->clients);
    names_close(&s->sessions);
    free(s->places);
    free(s->free);
    free(s->retired);
    free(s->inbox.of);
    while (s->later.n > 0)
        free((void *)(uintptr_t)later_take(&s->later).token.logprobs);
    later_free(&s->later);
    free(s);
}

int source_flush(struct live_source *s, struct ifl_error *error)
{
    int rc = s->recording.path ? source_trace_flush(&s->recording, error) : 0;
    if (rc == 0 && s->flight)
        rc = ifl_recorder_flush(s->flight->recorder, error);
    return rc;
}

const struct source *source_of(struct live_source *s)
{
    return &s->source;
}
