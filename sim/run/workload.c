#include "run/workload.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/minmax.h"
#include "run/retries.h"

/* The row before each in its session, as row + 1; 0 for none. The caller frees it. */
static uint32_t *rows_before(const struct ifl_trace *trace)
{
    uint32_t n_sessions = 0;
    for (size_t i = 0; i < trace->n; i++)
        if (trace->session[i] > n_sessions)
            n_sessions = trace->session[i];
    uint32_t *last = calloc((size_t)n_sessions + 1, sizeof *last); /* row + 1 */
    uint32_t *before = calloc(trace->n + 1, sizeof *before);
    for (size_t i = 0; last && before && i < trace->n; i++)
        if (trace->session[i] > 0) {
            before[i] = last[trace->session[i]];
            last[trace->session[i]] = (uint32_t)i + 1;
        }
    if (!last) {
        free(before);
        before = NULL;
    }
    free(last);
    return before;
}

/* Links every turn that has a think time to the turn before it in its session. */
static int link_turns(struct workload *workload, const uint32_t *before)
{
    const struct ifl_trace *trace = workload->trace;
    workload->next_turn = calloc(trace->n + 1, sizeof *workload->next_turn);
    workload->waits = calloc(trace->n + 1, sizeof *workload->waits);
    if (!workload->next_turn || !workload->waits)
        return IFL_E_NOMEM;
    for (size_t i = 0; i < trace->n; i++)
        if (before[i] && trace->think_ns[i] >= 0) {
            workload->next_turn[before[i] - 1] = (uint32_t)i + 1;
            workload->waits[i] = true;
        }
    return 0;
}

static int32_t n_ids(const struct ifl_trace *trace, size_t row)
{
    return trace->hash_at ? (int32_t)(trace->hash_at[row + 1] - trace->hash_at[row]) : 0;
}

static struct source_ids ids_of(const struct workload *workload, size_t row)
{
    const struct ifl_trace *trace = workload->trace;
    if (workload->source)
        return workload->source->ops->ids(workload->source->self, row);
    const uint64_t *ids = trace->hash_at ? trace->hash_id + trace->hash_at[row] : NULL;
    return (struct source_ids){ids, n_ids(trace, row)};
}

/* True if the ids of the turn begin with those of the whole prompt before it, and go on. */
static bool goes_on_by_ids(const struct ifl_trace *trace, size_t turn, size_t before)
{
    const int32_t n = n_ids(trace, before);
    return n == trace->n_prompt[before] && trace->hash_block_tokens == 1 &&
           n_ids(trace, turn) > n &&
           memcmp(trace->hash_id + trace->hash_at[turn], trace->hash_id + trace->hash_at[before],
                  (size_t)n * sizeof *trace->hash_id) == 0;
}

/* True if the prompt before the turn is all stream, and the turn's stream goes on behind it. */
static bool goes_on_by_group(const struct ifl_trace *trace, size_t turn, size_t before)
{
    return trace->prefix_tokens && trace->prefix_group &&
           trace->prefix_group[turn] == trace->prefix_group[before] &&
           trace->prefix_tokens[before] == trace->n_prompt[before] &&
           trace->prefix_tokens[turn] > trace->n_prompt[before];
}

/* Finds the turns that repeat the answer before them: what stands behind that prompt there is the
 * answer, or its beginning. Rows with several answers are left out: the trace does not say which
 * one went on. */
static int repeat_answers(struct workload *workload, const uint32_t *before)
{
    const struct ifl_trace *trace = workload->trace;
    workload->repeated_by = calloc(trace->n + 1, sizeof *workload->repeated_by);
    if (!workload->repeated_by)
        return IFL_E_NOMEM;
    for (size_t i = 0; i < trace->n; i++) {
        if (!before[i] || (trace->samples && trace->samples[before[i] - 1] > 1))
            continue;
        if (goes_on_by_group(trace, i, before[i] - 1) || goes_on_by_ids(trace, i, before[i] - 1))
            workload->repeated_by[before[i] - 1] = (uint32_t)i + 1;
    }
    return 0;
}

static int follow_sessions(struct workload *workload)
{
    const struct ifl_trace *trace = workload->trace;
    uint32_t *before = rows_before(trace);
    int rc = before ? 0 : IFL_E_NOMEM;
    if (rc == 0 && !workload->closed && trace->think_ns)
        rc = link_turns(workload, before);
    if (rc == 0 && (trace->prefix_tokens || trace->hash_at))
        rc = repeat_answers(workload, before);
    free(before);
    return rc;
}

/* The loop reads a row and does a thousand other things until it reads the next one, so that the
 * processor does not see that it will. */
static void fetch_ahead(const struct ifl_trace *trace, size_t row)
{
    enum { AHEAD = 16 };
    if (row + AHEAD >= trace->n)
        return;
    __builtin_prefetch(&trace->arrival_ns[row + AHEAD]);
    __builtin_prefetch(&trace->n_prompt[row + AHEAD]);
    __builtin_prefetch(&trace->n_output[row + AHEAD]);
}

static void look_upstream(struct workload *workload)
{
    while (IFL_RARE(workload->waits != NULL) && workload->next < workload->limit &&
           workload->waits[workload->next])
        workload->next++;
    workload->streamed_ns =
        workload->next < workload->limit ? workload->trace->arrival_ns[workload->next] : IFL_NEVER;
}

static int64_t next_sent_ns(const struct workload *workload)
{
    const int64_t released_ns = event_next_ns(&workload->released);
    return ifl_min(released_ns, workload->streamed_ns);
}

int workload_create(struct workload *workload, const struct ifl_trace *trace, int32_t concurrency,
                    struct ifl_error *error)
{
    ifl_assert(ifl_ascends(trace->arrival_ns, trace->n));
    ifl_assert(concurrency >= 0);
    const bool closed = concurrency > 0;
    *workload = (struct workload){
        .trace = trace,
        .predictor = {.model = PREDICT_ORACLE},
        .plain = {.said = ifl_attributes_absent},
        .says_more = trace->hash_at || ifl_trace_has_attributes(trace),
        .closed = closed,
        .limit = closed ? ifl_min((size_t)concurrency, trace->n) : trace->n,
    };
    workload->next_held = workload->limit;
    if (trace->session && follow_sessions(workload) < 0)
        return ifl_fail_nomem(error);
    if (trace->retry_of &&
        retries_find(trace, &workload->first_sent, &workload->repeats, error) < 0)
        return error->code;
    look_upstream(workload);
    workload->next_ns = next_sent_ns(workload);
    return 0;
}

void workload_destroy(struct workload *workload)
{
    free(workload->repeats);
    free(workload->first_sent);
    free(workload->repeated_by);
    free(workload->next_turn);
    free(workload->waits);
    free(workload->sent_ns);
    free(workload->out_ns);
    event_heap_destroy(&workload->released);
    event_heap_destroy(&workload->in_front);
    *workload = (struct workload){0};
}

static int64_t bound_ns(double bound_s)
{
    return bound_s > 0 ? ifl_ns_from_s(bound_s) : IFL_NEVER;
}

void workload_slo(struct workload *workload, double ttft_s, double tpot_s)
{
    workload->plain.said.ttft_slo_ns = bound_ns(ttft_s);
    workload->plain.said.tpot_slo_ns = bound_ns(tpot_s);
}

void workload_deadline(struct workload *workload, double deadline_s)
{
    workload->plain.said.deadline_ns = bound_ns(deadline_s);
}

static int32_t smaller(int64_t a, int64_t b)
{
    return (int32_t)ifl_min(a, b);
}

/* If the next turn repeats the answer, ids are taken from there: those of the answer stand behind
 * those of the prompt. So do those of a row that has the ids of its answer itself. */
static void name_tokens(const struct workload *workload, size_t row, struct arrival *a)
{
    const struct ifl_trace *trace = workload->trace;
    const uint32_t repeated_by = workload->repeated_by ? workload->repeated_by[row] : 0;
    const size_t last = repeated_by ? repeated_by - 1 : row; /* the row that says what is known */
    const bool by_group = repeated_by && a->said.prefix_tokens > 0;
    const struct source_ids own = ids_of(workload, row),
                            ids = by_group || !repeated_by ? own : ids_of(workload, last);
    a->hash_id_tokens = trace->hash_block_tokens;
    const bool names_answer =
        repeated_by || (a->hash_id_tokens == 1 && own.n == a->n_prompt + a->n_output);
    const int64_t n_said = (int64_t)a->n_prompt + (names_answer ? a->n_output : 0);
    a->n_hash_ids = names_answer && !repeated_by ? a->n_prompt : own.n;
    a->hash_ids = ids.of;
    a->named_tokens = smaller((int64_t)ids.n * a->hash_id_tokens, by_group ? a->n_prompt : n_said);
    a->stream_tokens =
        by_group ? smaller(trace->prefix_tokens[last], n_said) : a->said.prefix_tokens;
}

/* Of a client that may try again, all attempts are at one row. */
static uint64_t repeats_of(const struct workload *workload, size_t row)
{
    if (!IFL_RARE(workload->repeats || workload->retries.most > 0))
        return 0;
    const uint64_t repeats = workload->repeats ? workload->repeats[row] : 0;
    return repeats == 0 && workload->retries.most > 0 ? (uint64_t)row + 1 : repeats;
}

/* A retry has the prefix group of the row that it repeats. */
static void take_prompt(const struct ifl_trace *trace, size_t from, struct arrival *a)
{
    a->said.prefix_group = trace->prefix_group ? trace->prefix_group[from] : 0;
    a->said.prefix_tokens = trace->prefix_tokens ? trace->prefix_tokens[from] : 0;
}

/* What the trace says beside lengths and stamps. */
IFL_APART static void say_more(const struct workload *workload, size_t row, struct arrival *a)
{
    const size_t first = workload->first_sent ? workload->first_sent[row] : row;
    ifl_trace_attributes_of(workload->trace, row, &a->said);
    if (first != row)
        take_prompt(workload->trace, first, a);
    name_tokens(workload, first, a);
}

IFL_HOT void workload_describe(const struct workload *workload, size_t row, struct arrival *a)
{
    const struct ifl_trace *trace = workload->trace;
    *a = workload->plain;
    a->row = row;
    a->n_prompt = trace->n_prompt[row];
    a->n_output = trace->n_output[row];
    if (IFL_RARE(workload->says_more))
        say_more(workload, row, a);
    a->repeats = repeats_of(workload, row);
    if (IFL_RARE(workload->patience.process != PATIENCE_NONE) && a->said.abort_ns == IFL_NEVER)
        a->said.abort_ns = patience_ns(&workload->patience, ifl_trace_id(trace, row));
    const bool declared = a->said.max_tokens > 0;
    a->n_predicted = /* undeclared, the limit is the answer itself: no bound for a prediction */
        predictor_tell(&workload->predictor, ifl_trace_id(trace, row), a->n_output,
                       declared ? a->said.max_tokens : INT32_MAX);
    if (!declared)
        a->said.max_tokens = a->n_output;
    a->cut = IFL_RARE(a->said.abort_tokens > 0) && a->said.abort_tokens < a->n_output;
    if (a->cut)
        a->n_output = a->said.abort_tokens;
}

/* What waits in `released`: an attempt at a row, or, in a closed loop, the next row there is. */
struct released {
    bool held;
    int32_t attempt;
    size_t row;
};

/* The payload of an event: attempt * (n + 1) + row, row n standing for the next one. */
static uint64_t pack(const struct workload *workload, struct released of)
{
    const uint64_t n = workload->trace->n;
    return (uint64_t)of.attempt * (n + 1) + (of.held ? n : of.row);
}

IFL_APART static struct released unpack(const struct workload *workload, uint64_t payload)
{
    const uint64_t n = workload->trace->n, row = payload % (n + 1);
    return (struct released){row == n, (int32_t)(payload / (n + 1)), row};
}

/* Takes the request that is sent next, at next_sent_ns. */
IFL_HOT static struct released take_sent(struct workload *workload)
{
    struct released sent = {.row = workload->next};
    if (IFL_RARE(event_next_ns(&workload->released) < workload->streamed_ns)) {
        sent = unpack(workload, event_pop(&workload->released).payload);
        workload->n_next -= sent.held;
        sent.row = sent.held ? workload->next_held++ : sent.row;
        sent.held = false;
    } else {
        workload->next++;
        look_upstream(workload);
        fetch_ahead(workload->trace, workload->next);
    }
    return sent;
}

/* ---- the front end ---- */

static int64_t later_ns(int64_t from_ns, double s)
{
    return ifl_later_ns(from_ns, ifl_ns_from_s(s));
}

/* When the request leaves the front end, which takes them one by one as they are sent. */
static int64_t out_of_front_ns(struct workload *workload, const struct arrival *a)
{
    const struct front_end *front = &workload->front;
    int64_t begins_ns = a->sent_ns;
    if (front->serial_s > 0) {
        begins_ns = later_ns(ifl_max(a->sent_ns, workload->front_free_ns), front->serial_s);
        workload->front_free_ns = begins_ns;
    }
    return later_ns(begins_ns, front->request_s + front->prompt_token_s * a->n_prompt);
}

IFL_APART static void send(struct workload *workload)
{
    struct arrival a;
    enum ifl_status status;
    const int64_t now_ns = next_sent_ns(workload);
    const struct released of = take_sent(workload);
    workload_describe(workload, of.row, &a);
    a.sent_ns = workload->sent_ns[of.row] = now_ns;
    const int64_t out_ns = workload->out_ns[of.row] = out_of_front_ns(workload, &a),
                  leaves_ns = arrival_leaves_ns(&a, &status);
    /* There is room: of each row there is one request at a time. */
    ifl_require(event_push(&workload->in_front, ifl_min(out_ns, leaves_ns), workload->n_sent++,
                           pack(workload, of)) == 0);
}

/* Sends those into the front end that may leave it before all that are in it. */
static int64_t look_through_front(struct workload *workload)
{
    while (next_sent_ns(workload) < event_next_ns(&workload->in_front))
        send(workload);
    return event_next_ns(&workload->in_front);
}

/* True if ends of requests cause others to be sent: until a time has come, a request may still be
 * sent at it, in front of one that the trace has later. */
static bool feeds_back(const struct workload *workload)
{
    return !workload->source && !workload_is_open(workload);
}

static int64_t next_through_front_ns(struct workload *workload)
{
    return feeds_back(workload)
               ? ifl_min(next_sent_ns(workload), event_next_ns(&workload->in_front))
               : look_through_front(workload);
}

static void look_ahead(struct workload *workload)
{
    workload->next_ns = IFL_RARE(workload->sent_ns != NULL) ? next_through_front_ns(workload)
                                                            : next_sent_ns(workload);
}

IFL_APART static bool enter_front(struct workload *workload)
{
    if (!feeds_back(workload) || next_sent_ns(workload) > workload->next_ns)
        return false;
    send(workload);
    look_ahead(workload);
    return true;
}

bool workload_enters_front(struct workload *workload)
{
    return IFL_RARE(workload->sent_ns != NULL) && enter_front(workload);
}

int workload_go_through(struct workload *workload, const struct front_end *front,
                        struct ifl_error *error)
{
    ifl_assert(workload->n_arrived == 0);
    const size_t n = workload->trace->n;
    workload->front = *front;
    workload->token_ns = ifl_ns_from_s(front->token_s);
    if (front->request_s <= 0 && front->prompt_token_s <= 0 && front->serial_s <= 0)
        return 0;
    workload->sent_ns = malloc((n + 1) * sizeof *workload->sent_ns);
    workload->out_ns = malloc((n + 1) * sizeof *workload->out_ns);
    if (!workload->sent_ns || !workload->out_ns || event_reserve(&workload->in_front, n) < 0)
        return ifl_fail_nomem(error);
    look_ahead(workload);
    return 0;
}

/* ---- requests from outside ---- */

void workload_follow(struct workload *workload, const struct source *source)
{
    workload->source = source;
    workload->says_more = true;
    workload->limit = workload->next_held = 0;
    look_upstream(workload);
    look_ahead(workload);
}

void workload_offer(struct workload *workload, size_t row, int64_t at_ns)
{
    ifl_assert(workload->source && !workload_is_offered(workload));
    ifl_assert(row < workload->trace->n);
    workload->next = row;
    workload->streamed_ns = at_ns;
    look_ahead(workload);
}

IFL_APART void workload_leave_front(struct workload *workload, size_t row, int64_t at_ns)
{
    struct event_heap *in_front = &workload->in_front;
    size_t i = 0;
    while (i < in_front->n && unpack(workload, in_front->of[i].payload).row != row)
        i++;
    if (i == in_front->n || in_front->of[i].at_ns <= at_ns)
        return;
    event_hasten(in_front, i, at_ns);
    look_ahead(workload);
}

void workload_deliver(const struct workload *workload, struct ifl_request_record *record)
{
    if (record->first_token_ns != IFL_NEVER)
        record->first_token_ns += workload->token_ns;
    if (record->finish_ns != IFL_NEVER)
        record->finish_ns += workload->token_ns;
}

/* Clients leave before requests arrive. */
static bool reaches_engine(const struct workload *workload, const struct arrival *a)
{
    enum ifl_status status;
    return a->at_ns == workload->out_ns[a->row] && arrival_leaves_ns(a, &status) > a->at_ns;
}

IFL_HOT bool workload_take(struct workload *workload, struct arrival *arrival)
{
    ifl_assert(workload->next_ns != IFL_NEVER);
    ifl_assert(!workload->sent_ns || workload->in_front.n > 0);
    const int64_t now_ns = workload->next_ns;
    const struct released of = IFL_RARE(workload->sent_ns != NULL)
                                   ? unpack(workload, event_pop(&workload->in_front).payload)
                                   : take_sent(workload);
    workload_describe(workload, of.row, arrival);
    arrival->attempt = of.attempt;
    arrival->at_ns = now_ns;
    arrival->sent_ns = IFL_RARE(workload->sent_ns != NULL) ? workload->sent_ns[of.row] : now_ns;
    arrival->serial = workload->n_arrived++;
    look_ahead(workload);
    return !IFL_RARE(workload->sent_ns != NULL) || reaches_engine(workload, arrival);
}

IFL_HOT void workload_recall(const struct workload *workload, size_t row, uint64_t serial,
                             int64_t at_ns, struct arrival *arrival)
{
    workload_describe(workload, row, arrival);
    arrival->serial = serial;
    arrival->at_ns = at_ns;
    arrival->sent_ns = IFL_RARE(workload->sent_ns != NULL) ? workload->sent_ns[row] : at_ns;
}

/* ---- what an end leads to ---- */

void workload_retry(struct workload *workload, const struct retries *retries)
{
    uint64_t most = 0;
    for (size_t row = 0; row < workload->trace->n; row++)
        most = ifl_max(most, ifl_trace_id(workload->trace, row));
    workload->retries = *retries;
    workload->first_retry_id = most + 1;
}

static int release(struct workload *workload, int64_t at_ns, uint64_t serial, struct released what,
                   struct ifl_error *error)
{
    if (event_push(&workload->released, at_ns, serial, pack(workload, what)) < 0)
        return ifl_fail_nomem(error);
    workload->n_next += what.held;
    look_ahead(workload);
    return 0;
}

static bool tries_again(const struct workload *workload, int32_t attempt, enum ifl_status status)
{
    const bool may = status == IFL_SHED || status == IFL_TIMED_OUT || status == IFL_ABORTED;
    return may && attempt < workload->retries.most;
}

IFL_APART static int try_again(struct workload *workload, size_t row, uint64_t serial,
                               int32_t attempt, int64_t now_ns, struct ifl_error *error)
{
    const int64_t after_ns =
        retries_backoff_ns(&workload->retries, ifl_trace_id(workload->trace, row), attempt);
    const struct released again = {.attempt = attempt + 1, .row = row};
    return after_ns > IFL_LAST_NS - now_ns
               ? 0
               : release(workload, now_ns + after_ns, serial, again, error);
}

/* The next turn of the session arrives. */
IFL_APART static int go_on(struct workload *workload, size_t turn, uint64_t serial, int64_t now_ns,
                           struct ifl_error *error)
{
    const int64_t think_ns = workload->trace->think_ns[turn];
    if (think_ns > IFL_LAST_NS - now_ns)
        return ifl_fail(error, IFL_E_INPUT,
                        "row %zu thinks for %g s from %g s on, expected an arrival before 9.2e9 s",
                        turn + 1, ifl_s_from_ns(think_ns), ifl_s_from_ns(now_ns));
    return release(workload, now_ns + think_ns, serial, (struct released){.row = turn}, error);
}

IFL_HOT int workload_ended(struct workload *workload, size_t row, uint64_t serial, int32_t attempt,
                           enum ifl_status status, int64_t now_ns, struct ifl_error *error)
{
    ifl_assert(row < workload->trace->n);
    if (IFL_RARE(tries_again(workload, attempt, status)))
        return try_again(workload, row, serial, attempt, now_ns, error);
    if (IFL_RARE(workload->closed) && workload->next_held + workload->n_next < workload->trace->n)
        return release(workload, now_ns, serial, (struct released){.held = true}, error);
    if (IFL_RARE(workload->next_turn != NULL) && workload->next_turn[row])
        return go_on(workload, workload->next_turn[row] - 1, serial, now_ns, error);
    return 0;
}
