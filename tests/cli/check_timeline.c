/* Reads timeline.json as a viewer does, and prints its contents as one line of counts:
 *
 *     steps N requests N chunk_tokens N stalls N counters N
 *
 * Exit 1, with the reason, if slices of a request do not nest or those of a thread overlap. */
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 4, MAX_ROWS = 64 };

static void fail(const json_t *event, const char *why)
{
    char *text = json_dumps(event, JSON_COMPACT);
    printf("%s: %s\n", why, text ? text : "");
    free(text);
    exit(1);
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static long long ns_of(const json_t *event, const char *key)
{
    return llround(json_number_value(json_object_get(event, key)) * 1000);
}

static long long argument(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(event, "args"), key));
}

struct totals {
    long long steps, requests, chunk_tokens, stalls, counters;
};

/* ---- steps, and their stages ---- */

/* When the last slice of the thread ends. */
static long long *end_of_row(const json_t *event)
{
    static long long tids[MAX_ROWS], end_ns[MAX_ROWS];
    static int n_rows;
    const long long tid = json_integer_value(json_object_get(event, "tid"));
    int row = 0;
    while (row < n_rows && tids[row] != tid)
        row++;
    if (row == MAX_ROWS)
        fail(event, "one thread too many");
    if (row == n_rows)
        tids[n_rows++] = tid;
    return &end_ns[row];
}

static void take_slice(const json_t *event, struct totals *totals)
{
    long long *end_ns = end_of_row(event);
    if (ns_of(event, "ts") < *end_ns)
        fail(event, "begins before the slice in front of it has ended");
    *end_ns = ns_of(event, "ts") + ns_of(event, "dur");
    totals->steps += strcmp(text_of(event, "cat"), "step") == 0;
}

/* ---- requests: the events of one come together ---- */

struct lifeline {
    char id[32];
    const char *open[MAX_DEPTH];
    long long last_ns;
    int depth;
};

/* A chunk or a stall that does not nest is a lifeline of its own; its id has a dot. */
static void begin_lifeline(struct lifeline *line, const json_t *event, struct totals *totals)
{
    const bool is_request = strcmp(text_of(event, "name"), "request") == 0;
    *line = (struct lifeline){.last_ns = ns_of(event, "ts")};
    snprintf(line->id, sizeof line->id, "%s", text_of(json_object_get(event, "id2"), "local"));
    if (is_request == (strchr(line->id, '.') != NULL))
        fail(event, "outside its request");
    totals->requests += is_request;
}

static void begin(struct lifeline *line, const json_t *event, struct totals *totals)
{
    const char *name = text_of(event, "name");
    if (line->depth == 0)
        begin_lifeline(line, event, totals);
    if (line->depth == MAX_DEPTH)
        fail(event, "nested too deep");
    if (strcmp(name, "chunk") == 0 || strcmp(name, "recompute") == 0)
        totals->chunk_tokens += argument(event, "tokens");
    if (strcmp(name, "preempted") == 0 || strcmp(name, "swapped") == 0)
        totals->stalls++;
    line->open[line->depth++] = name;
}

static void end(struct lifeline *line, const json_t *event)
{
    if (line->depth == 0 || strcmp(line->open[line->depth - 1], text_of(event, "name")) != 0)
        fail(event, "closes what is not open");
    line->depth--;
}

static void take_edge(struct lifeline *line, const json_t *event, struct totals *totals)
{
    if (line->depth > 0 && strcmp(line->id, text_of(json_object_get(event, "id2"), "local")) != 0)
        fail(event, "within another request");
    if (line->depth > 0 && ns_of(event, "ts") < line->last_ns)
        fail(event, "goes back in time");
    if (text_of(event, "ph")[0] == 'b')
        begin(line, event, totals);
    else
        end(line, event);
    line->last_ns = ns_of(event, "ts");
}

int main(int argc, char **argv)
{
    json_error_t error;
    json_t *events = argc == 2 ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error) : NULL;
    struct lifeline line = {0};
    struct totals totals = {0};
    size_t i;
    json_t *event;
    if (!json_is_array(events)) {
        printf("%s\n", argc == 2 ? error.text : "usage: check_timeline timeline.json");
        return 1;
    }
    json_array_foreach(events, i, event)
    {
        const char phase = text_of(event, "ph")[0];
        totals.counters += phase == 'C';
        if (phase == 'X')
            take_slice(event, &totals);
        else if (phase == 'b' || phase == 'e')
            take_edge(&line, event, &totals);
    }
    if (line.depth > 0)
        fail(json_object(), "a request without an end");
    printf("steps %lld requests %lld chunk_tokens %lld stalls %lld counters %lld\n", totals.steps,
           totals.requests, totals.chunk_tokens, totals.stalls, totals.counters);
    json_decref(events);
    return 0;
}
