#include "record/timeline.h"

#include <jansson.h>
#include <string.h>

enum { EVENT_BYTES = 768, STEP_EVENTS = 4, MAX_SPANS = 1 << 20 };

/* ---- one event ---- */

/* Events are numbers between fixed words: only names go through the JSON library. */
IFL_PRINTF(3, 4)
static int put(struct timeline *timeline, struct ifl_error *error, const char *format, ...)
{
    char *at = whole_room(&timeline->file, EVENT_BYTES, error);
    if (!at)
        return error->code;
    va_list args;
    va_start(args, format);
    const int n_bytes = vsnprintf(at, EVENT_BYTES, format, args);
    va_end(args);
    ifl_require(n_bytes > 0 && n_bytes < EVENT_BYTES);
    whole_commit(&timeline->file, at + n_bytes);
    return IFL_OK;
}

struct decimal {
    char text[32];
};

static struct decimal decimal(int64_t ns, int64_t ns_per_unit, int digits)
{
    const int64_t magnitude_ns = ns < 0 ? -ns : ns;
    struct decimal of;
    snprintf(of.text, sizeof of.text, "%s%lld.%0*lld", ns < 0 ? "-" : "",
             (long long)(magnitude_ns / ns_per_unit), digits,
             (long long)(magnitude_ns % ns_per_unit));
    return of;
}

static struct decimal us(int64_t ns)
{
    return decimal(ns, 1000, 3);
}

/* False if n_events do not fit: a step or request is shown with all its events or not at all. */
static bool takes(struct timeline *timeline, uint64_t n_events)
{
    timeline->truncated |= n_events > timeline->max_events - timeline->n_events;
    if (timeline->truncated)
        return false;
    timeline->n_events += n_events;
    return true;
}

static bool in_window(const struct timeline *timeline, int64_t start_ns, int64_t end_ns)
{
    return start_ns <= timeline->to_ns && end_ns >= timeline->from_ns;
}

/* Rows of stages, and of steps that are in flight beside others, stand below those of replicas. */
enum { FIRST_STAGE_ROW = 1 << 20, MOST_STAGES = 64, FIRST_MORE_ROW = 1 << 23, MOST_ROWS = 128 };

/* Most steps of the replica that are in flight at once. */
static int32_t rows_of(const struct timeline *timeline, int32_t replica)
{
    const struct pools *pools = timeline->pools;
    const int32_t n =
        pools->n > 0 ? pools->of[pools->pool_of[replica]].n_in_flight : timeline->n_in_flight;
    return n < 1 ? 1 : n < MOST_ROWS ? n : MOST_ROWS;
}

static int thread_of(int32_t replica, int32_t row)
{
    return row == 0 ? replica : FIRST_MORE_ROW + replica * MOST_ROWS + row;
}

static int name_row(struct timeline *timeline, int32_t replica, int32_t row,
                    struct ifl_error *error)
{
    const bool pooled = timeline->pools->n > 0;
    char beside[32] = "";
    if (row > 0)
        snprintf(beside, sizeof beside, ", in flight %d", row + 1);
    return put(timeline, error,
               "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
               "\"args\":{\"name\":\"replica %d%s%s%s\"}},\n",
               timeline->point, thread_of(replica, row), replica, pooled ? " of " : "",
               pooled ? pools_name(timeline->pools, replica) : "", beside);
}

static int name_replicas(struct timeline *timeline, int32_t up_to, struct ifl_error *error)
{
    int code = IFL_OK;
    for (; timeline->n_replicas_named <= up_to && !code; timeline->n_replicas_named++) {
        const int32_t replica = timeline->n_replicas_named, n_rows = rows_of(timeline, replica);
        for (int32_t row = 0; row < n_rows && !code; row++)
            code = name_row(timeline, replica, row, error);
    }
    return code;
}

int timeline_open(struct timeline *timeline, const struct ifl_recorder_options *options,
                  const struct pools *pools, struct ifl_error *error)
{
    const uint64_t n_spans = options->timeline_events / 2;
    *timeline = (struct timeline){
        .point = options->point,
        .label = options->label,
        .pools = pools,
        .n_in_flight = options->n_in_flight,
        .from_ns = options->timeline_from_ns,
        .to_ns = options->timeline_to_ns > 0 ? options->timeline_to_ns : INT64_MAX,
        .token_ns = options->timeline_token_ns,
        .every = options->timeline_every > 0 ? options->timeline_every : 1,
        .max_events = options->timeline_events,
        .max_spans = n_spans < MAX_SPANS ? (size_t)n_spans : MAX_SPANS,
    };
    timeline->spans = malloc((timeline->max_spans + 1) * sizeof *timeline->spans);
    timeline->shown = malloc((options->n_requests + 1) * sizeof *timeline->shown);
    if (!timeline->spans || !timeline->shown)
        return ifl_fail_nomem(error);
    if (whole_open(&timeline->file, options->timeline_path, error))
        return error->code;
    return name_replicas(timeline, 0, error);
}

void timeline_discard(struct timeline *timeline)
{
    whole_discard(&timeline->file);
    free(timeline->spans);
    free(timeline->shown);
    timeline->spans = NULL;
    timeline->shown = NULL;
}

/* ---- steps ---- */

static const char *step_name(const struct ifl_step_record *step)
{
    if (step->prefill_seqs > 0)
        return step->decode_seqs > 0 ? "mixed" : "prefill";
    return step->decode_seqs > 0 ? "decode" : "copies";
}

/* A step ends before the one that many steps behind it begins, so that slices of a row follow one
 * another. */
static int put_slice(struct timeline *timeline, const struct ifl_step_record *step,
                     struct ifl_error *error)
{
    const int32_t row =
        (int32_t)(step->step % (uint64_t)(uint32_t)rows_of(timeline, step->replica));
    return put(timeline, error,
               "{\"name\":\"%s\",\"cat\":\"step\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,"
               "\"ts\":%s,\"dur\":%s,\"args\":{\"step\":%llu,\"prefill_tokens\":%d,"
               "\"decode_tokens\":%d,\"prefill_seqs\":%d,\"decode_seqs\":%d,"
               "\"context_tokens\":%lld,\"preempted\":%d,\"blocks_out\":%d,\"blocks_in\":%d}},\n",
               step_name(step), timeline->point, thread_of(step->replica, row),
               us(step->start_ns).text, us(step->duration_ns).text, (unsigned long long)step->step,
               step->prefill_tokens, step->decode_tokens, step->prefill_seqs, step->decode_seqs,
               (long long)step->context_tokens, step->preempted, step->blocks_out, step->blocks_in);
}

struct counter {
    const char *name, *one, *other;
    int32_t n_one, n_other;
};

static int put_counter(struct timeline *timeline, const struct ifl_step_record *step,
                       const struct counter *counter, struct ifl_error *error)
{
    char replica[32] = "";
    if (step->replica > 0)
        snprintf(replica, sizeof replica, " (replica %d)", step->replica);
    return put(timeline, error,
               "{\"name\":\"%s%s\",\"ph\":\"C\",\"pid\":%d,\"tid\":%d,\"ts\":%s,"
               "\"args\":{\"%s\":%d,\"%s\":%d}},\n",
               counter->name, replica, timeline->point, step->replica, us(step->start_ns).text,
               counter->one, counter->n_one, counter->other, counter->n_other);
}

int timeline_step(struct timeline *timeline, const struct ifl_step_record *step,
                  struct ifl_error *error)
{
    const struct counter counters[] = {
        {"batch", "prefill_seqs", "decode_seqs", step->prefill_seqs, step->decode_seqs},
        {"queue", "waiting", "swapped", step->waiting, step->swapped},
        {"kv_blocks", "used", "total", step->kv_used_blocks, step->kv_total_blocks}};
    timeline->n_steps++;
    if (step->step % timeline->every != 0 ||
        !in_window(timeline, step->start_ns, step->start_ns + step->duration_ns) ||
        !takes(timeline, STEP_EVENTS))
        return IFL_OK;
    timeline->n_steps_shown++;
    int code = name_replicas(timeline, step->replica, error);
    if (!code)
        code = put_slice(timeline, step, error);
    for (size_t i = 0; i < sizeof counters / sizeof *counters && !code; i++)
        code = put_counter(timeline, step, &counters[i], error);
    return code;
}

/* ---- stages ---- */

/* Rows of pipelines are named as the first step passes them. */
static int name_stage(struct timeline *timeline, const struct ifl_stage_record *stage, int row,
                      struct ifl_error *error)
{
    if (stage->pipeline < timeline->n_pipelines_named)
        return IFL_OK;
    if (stage->stage + 1 == stage->n_stages)
        timeline->n_pipelines_named = stage->pipeline + 1;
    return put(timeline, error,
               "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
               "\"args\":{\"name\":\"pipeline %d stage %d\"}},\n",
               timeline->point, row, stage->pipeline, stage->stage);
}

int timeline_stage(struct timeline *timeline, const struct ifl_stage_record *stage,
                   struct ifl_error *error)
{
    const int row = FIRST_STAGE_ROW + stage->pipeline * MOST_STAGES + stage->stage;
    if (stage->step % timeline->every != 0 ||
        !in_window(timeline, stage->start_ns, stage->end_ns) || !takes(timeline, 1))
        return IFL_OK;
    if (name_stage(timeline, stage, row, error))
        return error->code;
    return put(timeline, error,
               "{\"name\":\"stage\",\"cat\":\"stage\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,"
               "\"ts\":%s,\"dur\":%s,\"args\":{\"step\":%llu,\"replica\":%d}},\n",
               timeline->point, row, us(stage->start_ns).text,
               us(stage->end_ns - stage->start_ns).text, (unsigned long long)stage->step,
               stage->replica);
}

/* ---- moves ---- */

static int put_move(struct timeline *timeline, const struct ifl_move_record *move, char edge,
                    int64_t at_ns, struct ifl_error *error)
{
    return put(timeline, error,
               "{\"name\":\"move\",\"cat\":\"move\",\"ph\":\"%c\",\"id2\":{\"local\":\"m%llu\"},"
               "\"pid\":%d,\"tid\":%d,\"ts\":%s,\"args\":{\"request_id\":\"%llu\",\"from\":%d,"
               "\"to\":%d,\"blocks\":%d}},\n",
               edge, (unsigned long long)move->request_id, timeline->point, move->to,
               us(at_ns).text, (unsigned long long)move->request_id, move->from, move->to,
               move->n_blocks);
}

int timeline_move(struct timeline *timeline, const struct ifl_move_record *move,
                  struct ifl_error *error)
{
    if (move->request_id % timeline->every != 0 ||
        !in_window(timeline, move->start_ns, move->end_ns) || !takes(timeline, 2))
        return IFL_OK;
    int code = name_replicas(timeline, move->to, error);
    if (!code)
        code = put_move(timeline, move, 'b', move->start_ns, error);
    return code ? code : put_move(timeline, move, 'e', move->end_ns, error);
}

/* ---- spans of a request ---- */

static void keep_span(struct timeline *timeline, const struct span *span)
{
    if (span->request_id % timeline->every != 0 ||
        !in_window(timeline, span->start_ns, span->end_ns))
        return;
    timeline->truncated |= timeline->n_spans == timeline->max_spans;
    if (takes(timeline, 2))
        timeline->spans[timeline->n_spans++] = *span;
}

void timeline_work(struct timeline *timeline, const struct ifl_work_record *work)
{
    const struct span chunk = {.request_id = work->request_id,
                               .start_ns = work->start_ns,
                               .end_ns = work->start_ns + work->duration_ns,
                               .n_tokens = work->prefill_tokens,
                               .kind = SPAN_CHUNK};
    if (work->prefill_tokens > 0)
        keep_span(timeline, &chunk);
}

void timeline_stall(struct timeline *timeline, const struct ifl_stall_record *stall)
{
    const struct span span = {.request_id = stall->request_id,
                              .start_ns = stall->start_ns,
                              .end_ns = stall->end_ns,
                              .kind = stall->swapped ? SPAN_SWAPPED : SPAN_PREEMPTED};
    keep_span(timeline, &span);
}

static int by_request_then_start(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->request_id != b->request_id)
        return a->request_id < b->request_id ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return (int)b->kind - (int)a->kind; /* a stall of no time comes before what it delayed */
}

/* The first span of the request, in spans that are sorted. */
static struct span *first_span(const struct timeline *timeline, uint64_t request_id)
{
    size_t from = 0, to = timeline->n_spans;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (timeline->spans[middle].request_id < request_id)
            from = middle + 1;
        else
            to = middle;
    }
    return &timeline->spans[from];
}

/* ---- requests ---- */

enum { N_PHASES = 3, N_MARKS = N_PHASES + 1 };

static const char *const phase_name[N_PHASES] = {"queued", "prefill", "decode"};

/* The end of the step that gave the token. */
static int64_t given_ns(const struct timeline *timeline, int64_t token_ns)
{
    return token_ns == IFL_NEVER ? IFL_NEVER : token_ns - timeline->token_ns;
}

/* The times at the ends of the phases. Returns the number of phases with a known end. */
static size_t find_marks(const struct timeline *timeline, const struct life *life,
                         int64_t mark_ns[N_MARKS])
{
    const int64_t ns[N_MARKS] = {life->arrival_ns, life->first_scheduled_ns,
                                 given_ns(timeline, life->first_token_ns),
                                 given_ns(timeline, life_finish_ns(life))};
    size_t n = 0;
    memcpy(mark_ns, ns, sizeof ns);
    while (n < N_PHASES && ns[n + 1] != IFL_NEVER)
        n++;
    return n;
}

/* A request that came to no replica is shown with those of the first. */
static int32_t lane_of(const struct life *life)
{
    return life->replica < 0 ? 0 : life->replica;
}

/* A request has no thread of its own. The id is text: JSON readers may keep 53 bits of a number. */
static struct decimal id_of(const struct life *life)
{
    struct decimal id;
    snprintf(id.text, sizeof id.text, "%llu", (unsigned long long)life->request_id);
    return id;
}

static int put_edge(struct timeline *timeline, const struct life *life, const char *id,
                    const char *name, char edge, int64_t at_ns, struct ifl_error *error)
{
    return put(timeline, error,
               "{\"name\":\"%s\",\"cat\":\"request\",\"ph\":\"%c\",\"id2\":{\"local\":\"%s\"},"
               "\"pid\":%d,\"tid\":%d,\"ts\":%s},\n",
               name, edge, id, timeline->point, lane_of(life), us(at_ns).text);
}

static int put_arrival(struct timeline *timeline, const struct life *life, struct ifl_error *error)
{
    const unsigned long long id = life->request_id;
    return put(timeline, error,
               "{\"name\":\"request\",\"cat\":\"request\",\"ph\":\"b\",\"id2\":{\"local\":\"%llu\"}"
               ",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"args\":{\"request_id\":\"%llu\","
               "\"status\":\"%s\",\"prompt_tokens\":%d,\"output_tokens\":%d,\"cached_tokens\":%d,"
               "\"preemptions\":%d,\"swap_outs\":%d,\"stalled_s\":%s}},\n",
               id, timeline->point, lane_of(life), us(life->arrival_ns).text, id,
               ifl_status_names[life->status], life->prompt_tokens, life->output_tokens,
               life->rare->cached_tokens, life->rare->preemptions, life->rare->swap_outs,
               decimal(life->rare->stalled_ns, IFL_NS_PER_S, 9).text);
}

static const char *span_name(const struct timeline *timeline, const struct life *life,
                             const struct span *span)
{
    const bool again = given_ns(timeline, life->first_token_ns) <= span->start_ns;
    return span->kind == SPAN_SWAPPED     ? "swapped"
           : span->kind == SPAN_PREEMPTED ? "preempted"
           : again                        ? "recompute"
                                          : "chunk";
}

/* id: of the lifeline that the span is part of. */
static int put_span(struct timeline *timeline, const struct life *life, const struct span *span,
                    const char *id, struct ifl_error *error)
{
    const char *name = span_name(timeline, life, span);
    int code =
        put(timeline, error,
            "{\"name\":\"%s\",\"cat\":\"request\",\"ph\":\"b\",\"id2\":{\"local\":\"%s\"}"
            ",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"args\":{\"tokens\":%d}},\n",
            name, id, timeline->point, lane_of(life), us(span->start_ns).text, span->n_tokens);
    return code ? code : put_edge(timeline, life, id, name, 'e', span->end_ns, error);
}

/* The spans of a life, of which the next is to be put down; before it they end by end_ns. */
struct spans {
    struct span *next, *end;
    int64_t end_ns;
};

/* Those that begin before before_ns, but for spans that do not nest: with several steps in flight a
 * chunk may begin before the one in front of it has ended, and a stall before a phase ends. */
static int put_spans(struct timeline *timeline, const struct life *life, struct spans *spans,
                     int64_t before_ns, struct ifl_error *error)
{
    const struct decimal id = id_of(life);
    int code = IFL_OK;
    for (; spans->next < spans->end && spans->next->start_ns < before_ns && !code; spans->next++) {
        struct span *span = spans->next;
        span->apart = span->start_ns < spans->end_ns || span->end_ns > before_ns;
        if (span->apart)
            continue;
        spans->end_ns = span->end_ns;
        code = put_span(timeline, life, span, id.text, error);
    }
    return code;
}

/* Each is a lifeline of its own, behind that of the request. */
static int put_spans_apart(struct timeline *timeline, const struct life *life,
                           const struct span *first, const struct span *end,
                           struct ifl_error *error)
{
    int code = IFL_OK, n = 0;
    for (const struct span *span = first; span < end && !code; span++) {
        char id[48];
        if (!span->apart)
            continue;
        snprintf(id, sizeof id, "%s.%d", id_of(life).text, ++n);
        code = put_span(timeline, life, span, id, error);
    }
    return code;
}

static int put_lifeline(struct timeline *timeline, const struct life *life, struct ifl_error *error)
{
    int64_t mark_ns[N_MARKS];
    const struct decimal id = id_of(life);
    const size_t n_phases = find_marks(timeline, life, mark_ns);
    struct span *first = first_span(timeline, life->request_id);
    struct spans spans = {first, first, INT64_MIN};
    int64_t end_ns = n_phases == N_PHASES ? life->end_ns : mark_ns[n_phases];
    for (; spans.end < timeline->spans + timeline->n_spans &&
           spans.end->request_id == life->request_id;
         spans.end++)
        end_ns = spans.end->end_ns > end_ns ? spans.end->end_ns : end_ns;
    int code = put_arrival(timeline, life, error);
    for (size_t i = 0; i < n_phases && !code; i++) {
        code = put_edge(timeline, life, id.text, phase_name[i], 'b', mark_ns[i], error);
        if (!code)
            code = put_spans(timeline, life, &spans, mark_ns[i + 1], error);
        if (!code)
            code = put_edge(timeline, life, id.text, phase_name[i], 'e', mark_ns[i + 1], error);
    }
    if (!code)
        code = put_spans(timeline, life, &spans, INT64_MAX, error);
    if (!code)
        code = put_edge(timeline, life, id.text, "request", 'e', end_ns, error);
    return code ? code : put_spans_apart(timeline, life, first, spans.end, error);
}

IFL_APART void timeline_request(struct timeline *timeline, const struct life *life)
{
    int64_t mark_ns[N_MARKS];
    const size_t n_phases = find_marks(timeline, life, mark_ns);
    timeline->n_requests++;
    if (life->request_id % timeline->every != 0 ||
        !in_window(timeline, life->arrival_ns, mark_ns[n_phases]) ||
        !takes(timeline, 2 * (n_phases + 1)))
        return;
    timeline->shown[timeline->n_requests_shown++] = life;
}

/* ---- the end ---- */

static json_t *process_name(const struct timeline *timeline)
{
    const bool labelled = timeline->label && timeline->label[0];
    return json_sprintf("point %d%s%s%s", timeline->point, labelled ? ": " : "",
                        labelled ? timeline->label : "", timeline->truncated ? " (truncated)" : "");
}

/* Viewers show the name of a process and ignore metadata events of unknown names. */
static char *process_event(const struct timeline *timeline)
{
    json_t *event =
        json_pack("{s:s, s:s, s:i, s:{s:o, s:b, s:I, s:I, s:I, s:I, s:I}}", "name", "process_name",
                  "ph", "M", "pid", (int)timeline->point, "args", "name", process_name(timeline),
                  "truncated", (int)timeline->truncated, "steps", (json_int_t)timeline->n_steps,
                  "steps_shown", (json_int_t)timeline->n_steps_shown, "requests",
                  (json_int_t)timeline->n_requests, "requests_shown",
                  (json_int_t)timeline->n_requests_shown, "every", (json_int_t)timeline->every);
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    json_decref(event);
    return text;
}

IFL_APART int timeline_end(struct timeline *timeline, struct ifl_error *error)
{
    int code = IFL_OK;
    qsort(timeline->spans, timeline->n_spans, sizeof *timeline->spans, by_request_then_start);
    for (uint64_t i = 0; i < timeline->n_requests_shown && !code; i++)
        code = put_lifeline(timeline, timeline->shown[i], error);
    char *event = code ? NULL : process_event(timeline);
    if (!event)
        return code ? code : ifl_fail_nomem(error);
    code = whole_write(&timeline->file, event, error);
    free(event);
    return code;
}
