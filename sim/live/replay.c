#include "live/replay_parts.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/outputs.h"
#include "base/turns.h"
#include "inflight/minmax.h"
#include "run/workload_load.h"

/* Bodies that are made before they are due, together; the time that making one may take; how often
 * rows are handed to the system. */
enum { READY_BYTES = 64 << 20, LONGEST_ANSWER_BYTES = 1 << 20 };
#define QUIET_NS ((int64_t)2000000)
#define FLUSH_NS ((int64_t)200000000)
/* Between the last preparation and the first request. */
#define LEAD_NS ((int64_t)10000000)
#define READY_S 30

/* ---- the server ---- */

static int fail_answer(const struct replay_server *server, const char *path,
                       const struct replay_got *got, struct ifl_error *error)
{
    char text[200];
    replay_answer_error(got->text.of, got->text.n, text, sizeof text);
    return ifl_fail(error, IFL_E_DEVICE, "%s%s: HTTP %ld%s%s", server->url, path, got->status,
                    *text ? ": " : "", text);
}

void replay_version(const struct replay_server *server, char text[128])
{
    struct replay_got got;
    struct ifl_error ignored;
    *text = '\0';
    if (replay_http_get(server, "/version", LONGEST_ANSWER_BYTES, READY_S, &got, &ignored) == 0 &&
        got.status == 200) {
        json_t *root = json_loadb(got.text.of, got.text.n, 0, NULL);
        const char *version = json_string_value(json_object_get(root, "version"));
        snprintf(text, 128, "%.127s", version ? version : "");
        replay_printable(text);
        json_decref(root);
    }
    replay_text_free(&got.text);
}

/* The first model that the server names. A model that the options name needs no such list. */
static int ask_model(const struct replay_server *server, const char *wanted, char model[256],
                     struct ifl_error *error)
{
    struct replay_got got;
    int rc = replay_http_get(server, "/v1/models", LONGEST_ANSWER_BYTES, READY_S, &got, error);
    if (rc == 0 && got.status != 200 && (!wanted || got.status >= 500))
        rc = fail_answer(server, "/v1/models", &got, error);
    json_t *root = rc == 0 ? json_loadb(got.text.of, got.text.n, 0, NULL) : NULL;
    const json_t *first = json_array_get(json_object_get(root, "data"), 0);
    const char *id = wanted ? wanted : json_string_value(json_object_get(first, "id"));
    if (rc == 0 && !id)
        rc = ifl_fail(error, IFL_E_DEVICE,
                      "%s/v1/models names no model, expected --model to say which", server->url);
    if (rc == 0)
        snprintf(model, 256, "%s", id);
    json_decref(root);
    replay_text_free(&got.text);
    return rc;
}

static bool asked_to_stop(const struct replay_options *options)
{
    return options->stop && *options->stop;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Asks until the server answers, or its time is over. */
static int reach(const struct replay_options *options, char model[256], struct ifl_error *error)
{
    const int64_t until_ns = clock_steady_ns() + ifl_ns_from_s(options->wait_s);
    for (;;) {
        const int rc = ask_model(&options->server, options->body.model, model, error);
        if (rc != IFL_E_DEVICE || clock_steady_ns() >= until_ns || asked_to_stop(options))
            return rc;
        pause_ms(250);
    }
}

/* ---- the workload ---- */

/* With a rate that grows linearly from nothing over ramp_s, the n-th request comes when the area
 * below the rate is what it was without: t^2 / (2 ramp) = a, then t - ramp / 2 = a. */
static void ramp_up(struct ifl_trace *trace, int32_t concurrency, double ramp_s)
{
    for (size_t i = 0; i < trace->n; i++) {
        const double a_s = ifl_s_from_ns(trace->arrival_ns[i]);
        double at_s = a_s < ramp_s / 2 ? sqrt(2 * ramp_s * a_s) : a_s + ramp_s / 2;
        if (concurrency > 0) /* one after the other, evenly */
            at_s = ramp_s * fmin((double)i / concurrency, 1);
        trace->arrival_ns[i] = ifl_ns_from_s(at_s);
    }
}

static int load(struct replay *replay, struct ifl_error *error)
{
    const struct replay_options *options = replay->options;
    const struct workload_config *w = &options->config->workload;
    const int32_t concurrency = workload_concurrency(w);
    const struct workload_source source = {w, options->traces, NULL, options->notes};
    int32_t longest = 1;
    int rc = workload_load(&source, &replay->trace, error);
    if (rc == 0 && options->ramp_s > 0)
        ramp_up(&replay->trace, concurrency, options->ramp_s);
    if (rc == 0)
        rc = workload_create(&replay->workload, &replay->trace, concurrency, error);
    if (rc < 0)
        return rc;
    workload_configure(&replay->workload, options->config);
    for (size_t i = 0; i < replay->trace.n; i++)
        longest = ifl_max(longest, replay->trace.n_prompt[i]);
    replay->ids = malloc((size_t)longest * sizeof *replay->ids);
    replay->ready = calloc(replay->trace.n + 1, sizeof *replay->ready);
    replay->known = calloc(replay->trace.n + 1, sizeof *replay->known);
    if (options->n_requests)
        atomic_store(options->n_requests, replay->trace.n);
    return replay->ids && replay->ready && replay->known ? 0 : ifl_fail_nomem(error);
}

/* Makes the body of one more row that will stream. False: there is nothing to make. */
static bool prepare_one(struct replay *replay)
{
    const struct workload *workload = &replay->workload;
    struct ifl_error ignored;
    struct arrival arrival;
    if (replay->n_ready_bytes > READY_BYTES)
        return false;
    const size_t gone = workload->closed && workload->next == workload->limit ? workload->next_held
                                                                              : workload->next;
    size_t row = ifl_max(replay->next_ready, gone);
    while (row < replay->trace.n && workload->waits && workload->waits[row])
        row++;
    replay->next_ready = row + 1;
    if (row >= replay->trace.n) {
        replay->next_ready = row;
        return false;
    }
    workload_describe(workload, row, &arrival);
    arrival.row = row;
    struct replay_text *text = &replay->ready[row];
    if (replay_make_body(replay, &arrival, text, &ignored) < 0) { /* made again when it is due */
        replay_text_free(text);
        return false;
    }
    replay->n_ready_bytes += text->n;
    return true;
}

/* ---- the loop ---- */

static int send_due(struct replay *replay, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0 && workload_next_ns(&replay->workload) <= replay_now(replay)) {
        struct arrival arrival;
        workload_take(&replay->workload, &arrival);
        rc = replay_send(replay, &arrival, error);
    }
    return rc;
}

static int flush(struct replay *replay, int64_t now_ns, struct ifl_error *error)
{
    if (now_ns < replay->flushed_ns + FLUSH_NS)
        return 0;
    replay->flushed_ns = now_ns;
    const int rc = replay_rows_flush(&replay->requests, error);
    return rc == 0 && replay->options->keeps_chunks ? replay_rows_flush(&replay->chunks, error)
                                                    : rc;
}

static int64_t to_clock(const struct replay *replay, int64_t at_ns)
{
    return at_ns == IFL_NEVER ? IFL_NEVER : replay->start_ns + at_ns;
}

/* Waits for what comes next; uses the time to make bodies where it is long enough. */
static int wait_on(struct replay *replay, int64_t next_ns, struct ifl_error *error)
{
    const int64_t now_ns = replay_now(replay);
    if (!replay->warming && next_ns - now_ns > QUIET_NS && prepare_one(replay))
        next_ns = now_ns;
    next_ns = ifl_min(next_ns, now_ns + FLUSH_NS); /* to look for a signal, too */
    return replay_http_wait(replay->http, to_clock(replay, next_ns), error);
}

static int turn(struct replay *replay, struct ifl_error *error)
{
    int64_t look_ns = IFL_NEVER;
    int rc = replay->warming ? 0 : send_due(replay, error);
    const int64_t now_ns = replay_now(replay);
    if (rc == 0)
        rc = replay_expire(replay, now_ns, error);
    if (rc == 0 && !replay->warming)
        rc = replay_scrape_look(replay, now_ns, &look_ns, error);
    if (rc == 0 && !replay->warming)
        rc = flush(replay, now_ns, error);
    const int64_t due_ns = replay->warming ? IFL_NEVER : workload_next_ns(&replay->workload);
    if (rc == 0)
        rc = wait_on(replay, ifl_min(ifl_min(look_ns, due_ns), event_next_ns(&replay->timers)),
                     error);
    return rc == 0 && replay->failed ? replay_give_up(replay, error) : rc;
}

static bool goes_on(const struct replay *replay)
{
    return replay->n_open > 0 ||
           (!replay->warming && workload_next_ns(&replay->workload) != IFL_NEVER);
}

static int fly(struct replay *replay, struct ifl_error *error)
{
    int rc = 0;
    while (rc == 0 && goes_on(replay) && !asked_to_stop(replay->options))
        rc = turn(replay, error);
    if (replay->failed)
        *error = replay->error;
    return replay->failed ? error->code : rc;
}

/* ---- the run ---- */

/* Requests with the lengths of the first rows and prompts of their own, all at once. */
static int warm_up(struct replay *replay, struct ifl_error *error)
{
    const uint64_t n = replay->options->n_warmup;
    int rc = 0;
    replay->warming = true;
    replay->start_ns = clock_steady_ns();
    replay->vocabulary.seed = ~replay->options->vocabulary.seed;
    for (uint64_t i = 0; rc == 0 && i < n; i++) {
        struct arrival arrival;
        workload_describe(&replay->workload, (size_t)(i % replay->trace.n), &arrival);
        arrival.said.abort_ns = arrival.said.deadline_ns = IFL_NEVER;
        arrival.sent_ns = replay_now(replay);
        rc = replay_send(replay, &arrival, error);
    }
    if (rc == 0)
        rc = fly(replay, error);
    size_t n_failed = 0, first = 0;
    for (size_t i = replay->records.n; i-- > 0;)
        if (replay->records.of[i].status != IFL_FINISHED) {
            n_failed++;
            first = i;
        }
    const char *why = n_failed > 0 ? replay->records.of[first].error : NULL;
    if (rc == 0 && n_failed > 0 && !asked_to_stop(replay->options))
        rc = ifl_fail(error, IFL_E_DEVICE, "%s: %zu of %zu requests to warm up failed: %s",
                      replay->options->server.url, n_failed, replay->records.n,
                      why ? why : "they were not finished");
    replay_records_free(&replay->records);
    event_heap_destroy(&replay->timers);
    replay->timers = (struct event_heap){0};
    replay->n_chunks = 0;
    replay->vocabulary.seed = replay->options->vocabulary.seed;
    replay->warming = false;
    return rc;
}

const char *const replay_files[] = {"requests.csv",
                                    "requests.csv.part",
                                    "chunks.csv",
                                    "chunks.csv.part",
                                    "server_metrics.csv",
                                    "server_metrics.csv.part",
                                    "quantiles.csv",
                                    "summary.csv",
                                    "bench.json",
                                    "run.json",
                                    NULL};

static int open_files(struct replay *replay, struct ifl_error *error)
{
    const struct replay_options *options = replay->options;
    char path[IFL_PATH_BYTES];
    snprintf(path, sizeof path, "%s/requests.csv.part", options->out_dir);
    int rc = replay_rows_open(&replay->requests, path, replay_requests_header, error);
    snprintf(path, sizeof path, "%s/chunks.csv.part", options->out_dir);
    if (rc == 0 && options->keeps_chunks)
        rc = replay_rows_open(&replay->chunks, path, "request_id,chunk,time_s,tokens\n", error);
    snprintf(path, sizeof path, "%s/server_metrics.csv.part", options->out_dir);
    return rc == 0 && options->metrics_s > 0 ? replay_scrape_open(replay, path, error) : rc;
}

/* Every stream needs a socket: as many as the system gives. */
static void raise_limits(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static double cpu_s(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static int measure(struct replay *replay, struct replay_result *result, struct ifl_error *error)
{
    while (prepare_one(replay) && replay->next_ready < 64)
        continue;
    replay->start_ns = clock_steady_ns() + LEAD_NS;
    const double began_s = cpu_s();
    int rc = fly(replay, error);
    result->client.cpu_s = cpu_s() - began_s;
    result->client.wall_s = ifl_s_from_ns(replay_now(replay));
    result->client.n_chunks = replay->n_chunks;
    result->client.late_bound_s = replay->options->late_bound_s;
    result->stopped = asked_to_stop(replay->options);
    if (rc == 0)
        replay_end_all(replay, "stopped");
    return rc == 0 && replay->failed ? replay_give_up(replay, error) : rc;
}

static void destroy(struct replay *replay)
{
    replay_end_all(replay, "stopped");
    replay_scrape_destroy(replay->scrape);
    replay_http_close(replay->http);
    for (size_t i = 0; i < replay->trace.n; i++) {
        if (replay->ready)
            replay_text_free(&replay->ready[i]);
        if (replay->known)
            free(replay->known[i].ids);
    }
    free(replay->ready);
    free(replay->known);
    free(replay->ids);
    replay_records_free(&replay->records);
    event_heap_destroy(&replay->timers);
    workload_destroy(&replay->workload);
    ifl_trace_free(&replay->trace);
    free(replay);
}

/* Rows that have come are written, whatever ended the run. */
static int close_files(struct replay *replay, int rc, struct ifl_error *error)
{
    rc = replay_scrape_finish(replay, rc, error);
    rc = replay_rows_close(&replay->requests, rc, error);
    return replay_rows_close(&replay->chunks, rc, error);
}

int replay_run(const struct replay_options *options, struct replay_result *result,
               struct ifl_error *error)
{
    struct replay *replay = calloc(1, sizeof *replay);
    *result = (struct replay_result){0};
    if (!replay)
        return ifl_fail_nomem(error);
    replay->options = options;
    replay->requests.fd = replay->chunks.fd = -1;
    replay->body = options->body;
    replay->vocabulary = options->vocabulary;
    raise_limits();
    turns_ask_for_short();
    int rc = load(replay, error);
    if (rc == 0)
        rc = outputs_check(options->out_dir, replay_files, error);
    if (rc == 0)
        rc = reach(options, result->model, error);
    if (rc == 0)
        replay_version(&options->server, result->version);
    replay->body.model = result->model;
    if (rc == 0)
        rc = replay_http_open(&options->server, &replay->http, error);
    if (rc == 0 && options->n_warmup > 0)
        rc = warm_up(replay, error);
    if (rc == 0)
        rc = open_files(replay, error);
    if (rc == 0)
        rc = measure(replay, result, error);
    rc = close_files(replay, rc, error);
    if (rc == 0)
        rc = replay_report(replay, result, error);
    destroy(replay);
    return rc;
}
