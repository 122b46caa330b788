#include "timeline.h"

#include <jansson.h>
#include <string.h>

enum { EVENT_BYTES = 768, STEP_EVENTS = 4 };

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

/* Steps and requests are shown whole or not at all. */
static bool takes(struct timeline *timeline, uint64_t n_events)
{
    timeline->truncated |= n_events > timeline->max_events - timeline->n_events;
    if (timeline->truncated)
        return false;
    timeline->n_events += n_events;
    return true;
}

int timeline_open(struct timeline *timeline, const struct ifl_recorder_options *options,
                  struct ifl_error *error)
{
    *timeline = (struct timeline){
        .point = options->point, .label = options->label, .max_events = options->timeline_events};
    if (whole_open(&timeline->file, options->timeline_path, error))
        return error->code;
    return put(timeline, error,
               "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,"
               "\"args\":{\"name\":\"steps\"}},\n",
               timeline->point);
}

/* ---- steps ---- */

static const char *step_name(const struct ifl_step_record *step)
{
    if (step->prefill_seqs > 0)
        return step->decode_seqs > 0 ? "mixed" : "prefill";
    return step->decode_seqs > 0 ? "decode" : "copies";
}

static int put_slice(struct timeline *timeline, const struct ifl_step_record *step,
                     struct ifl_error *error)
{
    return put(timeline, error,
               "{\"name\":\"%s\",\"cat\":\"step\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,"
               "\"ts\":%s,\"dur\":%s,\"args\":{\"step\":%llu,\"prefill_tokens\":%d,"
               "\"decode_tokens\":%d,\"prefill_seqs\":%d,\"decode_seqs\":%d,"
               "\"context_tokens\":%lld,\"preempted\":%d,\"blocks_out\":%d,\"blocks_in\":%d}},\n",
               step_name(step), timeline->point, step->replica, us(step->start_ns).text,
               us(step->duration_ns).text, (unsigned long long)step->step, step->prefill_tokens,
               step->decode_tokens, step->prefill_seqs, step->decode_seqs,
               (long long)step->context_tokens, step->preempted, step->blocks_out, step->blocks_in);
}

static int put_counter(struct timeline *timeline, const struct ifl_step_record *step,
                       const char *name, const char *one, int32_t n_one, const char *other,
                       int32_t n_other, struct ifl_error *error)
{
    return put(timeline, error,
               "{\"name\":\"%s\",\"ph\":\"C\",\"pid\":%d,\"tid\":%d,\"ts\":%s,"
               "\"args\":{\"%s\":%d,\"%s\":%d}},\n",
               name, timeline->point, step->replica, us(step->start_ns).text, one, n_one, other,
               n_other);
}

int timeline_step(struct timeline *timeline, const struct ifl_step_record *step,
                  struct ifl_error *error)
{
    timeline->n_steps++;
    if (!takes(timeline, STEP_EVENTS))
        return IFL_OK;
    timeline->n_steps_shown++;
    int code = put_slice(timeline, step, error);
    if (!code)
        code = put_counter(timeline, step, "batch", "prefill_seqs", step->prefill_seqs,
                           "decode_seqs", step->decode_seqs, error);
    if (!code)
        code = put_counter(timeline, step, "queue", "waiting", step->waiting, "swapped",
                           step->swapped, error);
    if (!code)
        code = put_counter(timeline, step, "kv_blocks", "used", step->kv_used_blocks, "total",
                           step->kv_total_blocks, error);
    return code;
}

/* ---- requests ---- */

static const char *const status_name[] = {
    [IFL_FINISHED] = "finished", [IFL_REJECTED] = "rejected", [IFL_FAILED] = "failed"};

enum { N_PHASES = 3, N_MARKS = N_PHASES + 1 };

static const char *const phase_name[N_PHASES] = {"queued", "prefill", "decode"};

/* The times between which the phases lie. Returns how many of the phases have an end. */
static size_t find_marks(const struct ifl_request_record *request, int64_t mark_ns[N_MARKS])
{
    const int64_t ns[N_MARKS] = {request->arrival_ns, request->first_scheduled_ns,
                                 request->first_token_ns, request->finish_ns};
    size_t n = 0;
    memcpy(mark_ns, ns, sizeof ns);
    while (n < N_PHASES && ns[n + 1] != IFL_NEVER)
        n++;
    return n;
}

/* A request has no thread of its own. The id is text: JSON readers may keep 53 bits of a number. */
static int put_edge(struct timeline *timeline, const struct ifl_request_record *request,
                    const char *name, char edge, int64_t at_ns, struct ifl_error *error)
{
    return put(timeline, error,
               "{\"name\":\"%s\",\"cat\":\"request\",\"ph\":\"%c\",\"id2\":{\"local\":\"%llu\"},"
               "\"pid\":%d,\"tid\":%d,\"ts\":%s},\n",
               name, edge, (unsigned long long)request->request_id, timeline->point,
               request->replica, us(at_ns).text);
}

static int put_arrival(struct timeline *timeline, const struct ifl_request_record *request,
                       struct ifl_error *error)
{
    const unsigned long long id = request->request_id;
    return put(timeline, error,
               "{\"name\":\"request\",\"cat\":\"request\",\"ph\":\"b\",\"id2\":{\"local\":\"%llu\"}"
               ",\"pid\":%d,\"tid\":%d,\"ts\":%s,\"args\":{\"request_id\":\"%llu\","
               "\"status\":\"%s\",\"prompt_tokens\":%d,\"output_tokens\":%d,\"cached_tokens\":%d,"
               "\"preemptions\":%d,\"swap_outs\":%d,\"stalled_s\":%s}},\n",
               id, timeline->point, request->replica, us(request->arrival_ns).text, id,
               status_name[request->status], request->prompt_tokens, request->output_tokens,
               request->cached_tokens, request->preemptions, request->swap_outs,
               decimal(request->stalled_ns, IFL_NS_PER_S, 9).text);
}

int timeline_request(struct timeline *timeline, const struct ifl_request_record *request,
                     struct ifl_error *error)
{
    int64_t mark_ns[N_MARKS];
    const size_t n_phases = find_marks(request, mark_ns);
    timeline->n_requests++;
    if (!takes(timeline, 2 * (n_phases + 1)))
        return IFL_OK;
    timeline->n_requests_shown++;
    int code = put_arrival(timeline, request, error);
    for (size_t i = 0; i < n_phases && !code; i++) {
        code = put_edge(timeline, request, phase_name[i], 'b', mark_ns[i], error);
        if (!code)
            code = put_edge(timeline, request, phase_name[i], 'e', mark_ns[i + 1], error);
    }
    return code ? code : put_edge(timeline, request, "request", 'e', mark_ns[n_phases], error);
}

/* ---- the end ---- */

static json_t *process_name(const struct timeline *timeline)
{
    const bool labelled = timeline->label && timeline->label[0];
    return json_sprintf("point %d%s%s%s", timeline->point, labelled ? ": " : "",
                        labelled ? timeline->label : "", timeline->truncated ? " (truncated)" : "");
}

/* Viewers show a process's name, and of a metadata event of a name they do not know nothing. */
static char *process_event(const struct timeline *timeline)
{
    json_t *event = json_pack(
        "{s:s, s:s, s:i, s:{s:o, s:b, s:I, s:I, s:I, s:I}}", "name", "process_name", "ph", "M",
        "pid", (int)timeline->point, "args", "name", process_name(timeline), "truncated",
        (int)timeline->truncated, "steps", (json_int_t)timeline->n_steps, "steps_shown",
        (json_int_t)timeline->n_steps_shown, "requests", (json_int_t)timeline->n_requests,
        "requests_shown", (json_int_t)timeline->n_requests_shown);
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    json_decref(event);
    return text;
}

int timeline_end(struct timeline *timeline, struct ifl_error *error)
{
    char *event = process_event(timeline);
    if (!event)
        return ifl_fail_nomem(error);
    const int code = whole_write(&timeline->file, event, error);
    free(event);
    return code;
}
