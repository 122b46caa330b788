/* The files of a load client's run, when it is over. */
#include "live/replay_parts.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/new_file.h"
#include "inflight/export.h"
#include "inflight/inputs.h"

/* ---- in order of arrival ---- */

static int by_due(const void *a, const void *b)
{
    const struct replay_record *x = a, *y = b;
    if (x->due_ns != y->due_ns)
        return x->due_ns < y->due_ns ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_sent(const void *a, const void *b)
{
    const struct replay_record *x = *(struct replay_record *const *)a,
                               *y = *(struct replay_record *const *)b;
    if (x->sent_ns != y->sent_ns)
        return x->sent_ns < y->sent_ns ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* The file in order of ends makes way for it. */
static int write_requests(const struct replay *replay, const char *path, struct ifl_error *error)
{
    const struct replay_records *records = &replay->records;
    struct new_file file;
    size_t most = 0;
    for (size_t i = 0; i < records->n; i++)
        if (replay_request_bytes(&records->of[i]) > most)
            most = replay_request_bytes(&records->of[i]);
    char *row = malloc(most + 1);
    if (!row)
        return ifl_fail_nomem(error);
    int rc = new_file_open(&file, path, error);
    if (rc == 0) {
        fputs(replay_requests_header, file.out);
        for (size_t i = 0; i < records->n; i++)
            fwrite(row, 1, (size_t)(replay_put_request(row, &records->of[i]) - row), file.out);
        rc = new_file_close(&file, 0, error);
    }
    free(row);
    if (rc == 0)
        remove(replay->requests.path);
    return rc;
}

/* ---- the summary ---- */

static struct ifl_request_record to_report(const struct replay_record *r)
{
    const int64_t late_ns = r->sent_ns - r->due_ns;
    int64_t longest_ns = -1;
    for (int32_t i = 0; i < r->n_gaps; i++)
        longest_ns = r->gap_ns[i] > longest_ns ? r->gap_ns[i] : longest_ns;
    return (struct ifl_request_record){
        .request_id = r->id,
        .arrival_ns = r->due_ns,
        .first_scheduled_ns = r->queue_ns == IFL_NEVER ? IFL_NEVER : r->due_ns + r->queue_ns,
        .first_token_ns = r->first_token_ns == IFL_NEVER ? IFL_NEVER : r->first_token_ns - late_ns,
        .finish_ns = (r->status == IFL_FINISHED ? r->last_token_ns : r->end_ns) - late_ns,
        .max_itl_ns = longest_ns,
        .ttft_slo_ns = r->ttft_slo_ns,
        .tpot_slo_ns = r->tpot_slo_ns,
        .prompt_tokens = r->prompt_tokens,
        .output_tokens = r->output_tokens,
        .cached_tokens = r->cached_tokens > 0 ? r->cached_tokens : 0,
        .status = r->status,
        .is_retry = r->is_retry,
    };
}

static int record_all(const struct replay_records *records, struct ifl_recorder *recorder,
                      struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < records->n; i++) {
        const struct ifl_request_record record = to_report(&records->of[i]);
        rc = ifl_record_request(recorder, &record, error);
        for (int32_t k = 0; rc == 0 && k < records->of[i].n_gaps; k++)
            rc = ifl_record_gaps(recorder, records->of[i].gap_ns[k], 1, error);
    }
    return rc;
}

static int write_summary(const struct replay *replay, struct replay_result *result,
                         struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    snprintf(path, sizeof path, "%s/quantiles.csv", replay->options->out_dir);
    const struct ifl_recorder_options options = {.quantiles_path = path,
                                                 .n_requests = replay->records.n};
    struct ifl_recorder *recorder = ifl_recorder_create(&options, error);
    if (!recorder)
        return error->code;
    int rc = record_all(&replay->records, recorder, error);
    if (rc == 0)
        rc = ifl_recorder_finish(recorder, &result->summary, error);
    ifl_recorder_destroy(recorder);
    snprintf(path, sizeof path, "%s/summary.csv", replay->options->out_dir);
    const struct ifl_points points = ifl_one_point(&result->summary);
    return rc == 0 ? ifl_write_summary(path, &points, error) : rc;
}

/* ---- the JSON of vllm bench serve ---- */

static int fill_trace(const struct replay_records *records, struct replay_record *const *order,
                      struct ifl_trace *trace, struct ifl_error *error)
{
    size_t n_gaps = 0;
    for (size_t i = 0; i < records->n; i++)
        n_gaps += (size_t)records->of[i].n_gaps;
    trace->n = records->n;
    trace->has_stamps = true;
    trace->arrival_ns = malloc((trace->n + 1) * sizeof *trace->arrival_ns);
    trace->n_prompt = malloc((trace->n + 1) * sizeof *trace->n_prompt);
    trace->n_output = malloc((trace->n + 1) * sizeof *trace->n_output);
    trace->outcome = malloc((trace->n + 1) * sizeof *trace->outcome);
    trace->gap_at = calloc(trace->n + 1, sizeof *trace->gap_at);
    trace->gap_ns = malloc((n_gaps + 1) * sizeof *trace->gap_ns);
    if (!trace->arrival_ns || !trace->n_prompt || !trace->n_output || !trace->outcome ||
        !trace->gap_at || !trace->gap_ns)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < trace->n; i++) {
        const struct replay_record *r = order[i];
        const size_t at = trace->gap_at[i];
        trace->arrival_ns[i] = r->sent_ns;
        trace->n_prompt[i] = r->prompt_tokens;
        trace->n_output[i] = r->output_tokens;
        trace->outcome[i] =
            (struct ifl_outcome){r->queue_ns, replay_ttft_ns(r), replay_e2e_ns(r), -1};
        if (r->n_gaps > 0)
            memcpy(trace->gap_ns + at, r->gap_ns, (size_t)r->n_gaps * sizeof *r->gap_ns);
        trace->gap_at[i + 1] = at + (size_t)r->n_gaps;
    }
    return 0;
}

static void describe_load(const struct ifl_arrivals *arrivals, struct ifl_bench_export *export)
{
    const bool drawn = arrivals->process == IFL_ARRIVE_POISSON ||
                       arrivals->process == IFL_ARRIVE_GAMMA ||
                       arrivals->process == IFL_ARRIVE_CONSTANT;
    const bool closed = arrivals->process == IFL_ARRIVE_CLOSED;
    export->rate_rps = drawn                                             ? arrivals->rate_rps
                       : closed || arrivals->process == IFL_ARRIVE_BURST ? (double)INFINITY
                                                                         : (double)NAN;
    export->burstiness = arrivals->process == IFL_ARRIVE_POISSON ? 1
                         : arrivals->process == IFL_ARRIVE_GAMMA ? pow(arrivals->cv, -2)
                                                                 : (double)NAN;
    export->concurrency = closed ? arrivals->concurrency : 0;
}

static int write_bench(const struct replay *replay, const struct replay_result *result,
                       struct ifl_error *error)
{
    const struct replay_records *records = &replay->records;
    struct ifl_trace trace = {0};
    char path[IFL_PATH_BYTES];
    struct replay_record **order = malloc((records->n + 1) * sizeof *order);
    if (!order)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < records->n; i++)
        order[i] = &records->of[i];
    qsort(order, records->n, sizeof *order, by_sent);
    struct ifl_bench_export export = {.trace = &trace,
                                      .dir = replay->options->out_dir,
                                      .model = result->model,
                                      .backend = replay->body.chat ? "openai-chat" : "openai"};
    describe_load(&replay->options->config->workload.arrivals, &export);
    snprintf(path, sizeof path, "%s/bench.json", replay->options->out_dir);
    int rc = fill_trace(records, order, &trace, error);
    if (rc == 0)
        rc = ifl_export_bench(&export, path, error);
    ifl_trace_free(&trace);
    free(order);
    return rc;
}

/* ---- run.json ---- */

/* JSON has no NaN. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *spread_json(const struct replay_spread *of)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "p50", number(of->p50), "p90", number(of->p90), "p99",
                     number(of->p99), "max", number(of->max));
}

static json_t *text_or_null(const char *text)
{
    json_t *json = text && *text ? json_string(text) : NULL;
    return json ? json : json_null();
}

/* The key is not among them. */
static json_t *options_json(const struct replay *replay)
{
    const struct replay_options *o = replay->options;
    json_t *extra = json_array();
    for (size_t i = 0; i < o->body.n_extra; i++)
        json_array_append_new(extra, json_string(o->body.extra[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:i, s:i, s:b, s:b, s:f, s:I, s:f, s:f, s:f, s:o}", "trace",
        o->config->workload.trace_name, "endpoint", o->body.chat ? "chat" : "completions",
        "prompts", o->body.prompts == REPLAY_PROMPT_IDS && !o->body.chat ? "ids" : "words", "seed",
        (json_int_t)o->vocabulary.seed, "first_id", o->vocabulary.first_id, "n_ids",
        o->vocabulary.n_ids, "may_stop", o->body.may_stop, "priority", o->body.sends_priority,
        "ramp_s", o->ramp_s, "warmup", (json_int_t)o->n_warmup, "timeout_s", o->timeout_s,
        "stall_s", o->stall_s, "metrics_s", o->metrics_s, "body", extra);
}

static json_t *client_json(const struct replay_client *client)
{
    const double chunk_us =
        client->n_chunks > 0 ? client->cpu_s / (double)client->n_chunks * 1e6 : (double)NAN;
    return json_pack("{s:I, s:o, s:f, s:s, s:f, s:f, s:I, s:o}", "sent", (json_int_t)client->n_sent,
                     "late_s", spread_json(&client->late_s), "late_bound_s", client->late_bound_s,
                     "verdict", client->is_bound ? "client-bound" : "in time", "wall_s",
                     client->wall_s, "cpu_s", client->cpu_s, "chunks", (json_int_t)client->n_chunks,
                     "cpu_us_per_chunk", number(chunk_us));
}

static int write_run(const struct replay *replay, const struct replay_result *result,
                     struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    struct new_file file;
    json_t *root = json_pack(
        "{s:s, s:s, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o}", "inflight",
        INFLIGHT_VERSION, "server", replay->options->server.url, "server_version",
        text_or_null(result->version), "model", result->model, "complete", !result->stopped,
        "client", client_json(&result->client), "ttft_due_s", spread_json(&result->ttft_due_s),
        "e2e_due_s", spread_json(&result->e2e_due_s), "connect_s", spread_json(&result->connect_s),
        "options", options_json(replay), "requests_uncounted", (json_int_t)result->n_uncounted,
        "prompts_counted_otherwise", (json_int_t)result->n_other_prompts, "first_error",
        text_or_null(result->first_error));
    snprintf(path, sizeof path, "%s/run.json", replay->options->out_dir);
    if (!root)
        return ifl_fail_nomem(error);
    int rc = new_file_open(&file, path, error);
    if (rc == 0) {
        const int wrong = json_dumpf(root, file.out, JSON_INDENT(1)) < 0 && !ferror(file.out)
                              ? ifl_fail_nomem(error)
                              : 0;
        putc('\n', file.out);
        rc = new_file_close(&file, wrong, error);
    }
    json_decref(root);
    return rc;
}

/* ---- all of it ---- */

static void count_odd(const struct replay_records *records, struct replay_result *result)
{
    for (size_t i = 0; i < records->n; i++) {
        const struct replay_record *r = &records->of[i];
        result->n_uncounted += r->status == IFL_FINISHED && !r->counted;
        result->n_other_prompts += r->status == IFL_FINISHED && r->prompt_tokens_server >= 0 &&
                                   r->prompt_tokens_server != r->prompt_tokens;
        if (r->error && r->status != IFL_ABORTED && !*result->first_error)
            snprintf(result->first_error, sizeof result->first_error, "request %llu: %.260s",
                     (unsigned long long)r->id, r->error);
    }
}

static int measure(const struct replay *replay, struct replay_result *result,
                   struct ifl_error *error)
{
    const struct replay_records *records = &replay->records;
    int rc = replay_judge(records, &result->client, error);
    if (rc == 0)
        rc = replay_spread_of(records, REPLAY_TTFT_DUE, &result->ttft_due_s, error);
    if (rc == 0)
        rc = replay_spread_of(records, REPLAY_E2E_DUE, &result->e2e_due_s, error);
    return rc == 0 ? replay_spread_of(records, REPLAY_CONNECT, &result->connect_s, error) : rc;
}

/* A file that was written while the run went on gets its name. */
static int name_part(const char *path, struct ifl_error *error)
{
    char name[IFL_PATH_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)(strlen(path) - strlen(".part")), path);
    if (ifl_output_check(name, error))
        return error->code;
    return rename(path, name) == 0
               ? 0
               : ifl_fail(error, IFL_E_IO, "%s: cannot give the finished file its name: %s", path,
                          strerror(errno));
}

int replay_report(struct replay *replay, struct replay_result *result, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    /* Streams know their records by place: there is none left. */
    qsort(replay->records.of, replay->records.n, sizeof *replay->records.of, by_due);
    count_odd(&replay->records, result);
    snprintf(path, sizeof path, "%s/requests.csv", replay->options->out_dir);
    int rc = measure(replay, result, error);
    if (rc == 0)
        rc = write_requests(replay, path, error);
    if (rc == 0 && replay->options->keeps_chunks)
        rc = name_part(replay->chunks.path, error);
    snprintf(path, sizeof path, "%s/server_metrics.csv.part", replay->options->out_dir);
    if (rc == 0 && replay->scrape)
        rc = name_part(path, error);
    if (rc == 0)
        rc = write_summary(replay, result, error);
    if (rc == 0)
        rc = write_bench(replay, result, error);
    return rc == 0 ? write_run(replay, result, error) : rc;
}

void replay_print(const struct replay_result *result, FILE *out)
{
    const struct ifl_summary *s = &result->summary;
    const struct ifl_quantiles *const from_sent[] = {&s->ttft_s, &s->tpot_s, &s->itl_s, &s->e2e_s};
    static const char *const names[] = {"TTFT", "TPOT", "gaps of chunks", "end to end"};
    const struct replay_client *client = &result->client;
    fprintf(out,
            "%llu requests: %llu finished, %llu failed, %llu rejected, %llu shed, "
            "%llu timed out, %llu aborted%s\n",
            (unsigned long long)s->n_requests, (unsigned long long)s->n_finished,
            (unsigned long long)s->n_failed, (unsigned long long)s->n_rejected,
            (unsigned long long)s->n_shed, (unsigned long long)s->n_timed_out,
            (unsigned long long)s->n_aborted, result->stopped ? "; stopped" : "");
    fprintf(out, "%.4g requests/s, %.4g output tokens/s over %.4g s\n", s->request_throughput_rps,
            s->output_throughput_tok_per_s, s->duration_s);
    fprintf(out, "%-22s %10s %10s %10s\n", "ms", "p50", "p90", "p99");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(out, "%-22s %10.3f %10.3f %10.3f\n", names[i], 1e3 * from_sent[i]->p50,
                1e3 * from_sent[i]->p90, 1e3 * from_sent[i]->p99);
    fprintf(out, "%-22s %10.3f %10.3f %10.3f\n", "TTFT from due", 1e3 * result->ttft_due_s.p50,
            1e3 * result->ttft_due_s.p90, 1e3 * result->ttft_due_s.p99);
    fprintf(out, "%-22s %10.3f %10.3f %10.3f\n", "sent late", 1e3 * client->late_s.p50,
            1e3 * client->late_s.p90, 1e3 * client->late_s.p99);
    if (client->is_bound)
        fprintf(out,
                "client-bound: p99 of lateness is %.3g ms, above %.3g ms: the client was the "
                "bottleneck\n",
                1e3 * client->late_s.p99, 1e3 * client->late_bound_s);
}
