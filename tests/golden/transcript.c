/* Flies a transcript and compares every step with the table in the file.
 *
 * A transcript is a text file that a reader can check with a pencil:
 *
 *     prose                    what the case shows, and the source of the rule
 *     == config                serving and cost keys, as in any configuration
 *     == requests              id, arrival_s, prompt, output [, NAME=VALUE of other columns]
 *     == steps                 one line a step, as below
 *     == end                   `ID STATUS`, such as `X rejected`, for each that does not finish
 *
 * A step is `START  ID:TOKENS ...  [| EVENT ...]`, in the order of the batch; a star marks a
 * sampled token, +N stands behind the tokens of which N are guessed beside; decodes stand before
 * prompts. Events are out:ID and in:ID (swaps, with the number of blocks), kept:N (slots that are
 * copied where the end of a prompt gives up K/V), free:N (blocks left, always there), end:T of a
 * step in a pipeline (START is then when it enters the first stage). Times are seconds. A second
 * argument names another preset for which the same table holds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "cost/adapter_cost.h"
#include "cost/cost.h"
#include "run/adapter_table.h"
#include "run/executor_sim.h"
#include "run/flight.h"
#include "run/speculation.h"

#include "../sim/capture.h"

enum { MAX_REQUESTS = 32, MAX_SAMPLES = 8, MAX_ENGINES = 4, MAX_TEXT = 1 << 16 };

struct text {
    char of[MAX_TEXT];
    size_t n;
};

IFL_PRINTF(2, 3)
static void add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text->n += (size_t)vsnprintf(text->of + text->n, MAX_TEXT - text->n, format, args);
    va_end(args);
}

struct transcript {
    struct text config, requests, steps, end;
    char names[MAX_REQUESTS][16];
    struct ifl_trace trace;
};

/* ---- reading ---- */

static void collapse_spaces(char *line)
{
    char *to = line;
    for (char *from = line; *from; from++)
        if (*from != '\r' && *from != '\n' &&
            !((*from == ' ' || *from == '\t') && (to == line || to[-1] == ' ')))
            *to++ = *from == '\t' ? ' ' : *from;
    while (to > line && to[-1] == ' ')
        to--;
    *to = '\0';
}

static bool read_sections(const char *path, struct transcript *t)
{
    static char line[1024];
    struct text *section = NULL;
    FILE *in = fopen(path, "r");
    if (!in)
        return false;
    while (fgets(line, sizeof line, in)) {
        if (strncmp(line, "== ", 3) == 0) {
            section = strstr(line, "config")     ? &t->config
                      : strstr(line, "requests") ? &t->requests
                      : strstr(line, "steps")    ? &t->steps
                                                 : &t->end;
            continue;
        }
        if (!section)
            continue;
        if (section != &t->config) {
            if (strchr(line, '#'))
                *strchr(line, '#') = '\0';
            collapse_spaces(line);
            if (!line[0])
                continue;
            strcat(line, "\n");
        }
        add(section, "%s", line);
    }
    fclose(in);
    return t->config.n && t->requests.n && t->steps.n;
}

/* A number in a transcript, as the cell of a column of that kind. */
#define AS_WHOLE(value) (int32_t)(value)
#define AS_SECONDS(value) ifl_ns_from_s(value)
#define AS_CLIENT(value) (uint32_t)(value)
#define AS_GROUP(value) (uint32_t)(value)
#define AS_MODEL(value) (uint32_t)(value)
#define AS_ADAPTER(value) (uint32_t)(value)
#define AS_ROW(value) (int64_t)(value)

/* Columns behind the lengths, which few transcripts need. */
static bool read_attribute(struct ifl_trace *trace, size_t i, const char *name, double value)
{
#define READ(column, kind, member, csv_name, ...)                                                  \
    if (strcmp(name, csv_name) == 0) {                                                             \
        trace->member[i] = AS_##kind(value);                                                       \
        return true;                                                                               \
    }
    IFL_ATTRIBUTES(READ)
#undef READ
    return false;
}

static bool read_attributes(struct ifl_trace *trace, size_t i, const char *at)
{
    char name[16];
    double value;
    int n_read;
#define SET_ABSENT(column, kind, member, ...) trace->member[i] = ifl_attributes_absent.member;
    IFL_ATTRIBUTES(SET_ABSENT)
#undef SET_ABSENT
    for (; sscanf(at, " %15[a-z_]=%lf%n", name, &value, &n_read) == 2; at += n_read)
        if (!read_attribute(trace, i, name, value))
            return false;
    return *at == '\n';
}

/* Adapters are numbers in a transcript, and their names are these. */
static void name_adapters(struct ifl_trace *trace)
{
    for (size_t i = 0; i < trace->n; i++)
        trace->n_adapters = ifl_max(trace->n_adapters, trace->adapter[i]);
    trace->adapter_names = calloc((size_t)trace->n_adapters + 1, sizeof *trace->adapter_names);
    for (uint32_t i = 0; i < trace->n_adapters; i++) {
        trace->adapter_names[i] = malloc(16);
        snprintf(trace->adapter_names[i], 16, "%u", i + 1);
    }
}

static bool read_requests(struct transcript *t)
{
    struct ifl_trace *trace = &t->trace;
    trace->arrival_ns = calloc(MAX_REQUESTS, sizeof *trace->arrival_ns);
    trace->n_prompt = calloc(MAX_REQUESTS, sizeof *trace->n_prompt);
    trace->n_output = calloc(MAX_REQUESTS, sizeof *trace->n_output);
#define CREATE(column, kind, member, ...)                                                          \
    trace->member = calloc(MAX_REQUESTS, sizeof *trace->member);
    IFL_ATTRIBUTES(CREATE)
#undef CREATE
    trace->has_stamps = true;
    for (char *line = t->requests.of; *line && trace->n < MAX_REQUESTS;) {
        double arrival_s;
        int n_read = 0;
        const size_t i = trace->n++;
        if (sscanf(line, "%15s %lf %d %d%n", t->names[i], &arrival_s, &trace->n_prompt[i],
                   &trace->n_output[i], &n_read) != 4 ||
            !read_attributes(trace, i, line + n_read))
            return false;
        trace->arrival_ns[i] = ifl_ns_from_s(arrival_s);
        line = strchr(line, '\n') + 1;
    }
    name_adapters(trace);
    return true;
}

/* Writes the configuration to a file. The trace in it must exist, so the file names itself; it is
 * never read as a trace. */
static struct study *load_config(const struct transcript *t, const char *preset,
                                 struct ifl_error *error)
{
    char path[] = "/tmp/transcript-XXXXXX.yaml", trace[64], as_preset[80];
    const char *const sets[] = {trace, "workload.format=inflight",
                                "workload.arrivals.process=trace",
                                "cluster.links.token_bytes=1000000", as_preset};
    struct study *study = NULL;
    const int file = mkstemps(path, 5);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    if (!out)
        return NULL;
    fputs(t->config.of, out);
    fclose(out);
    snprintf(trace, sizeof trace, "workload.trace=%s", path);
    snprintf(as_preset, sizeof as_preset, "serving.preset=%s", preset ? preset : "");
    const struct study_options options = {path, sets, preset ? 5 : 4};
    study_load(&options, &study, error);
    remove(path);
    return study;
}

/* ---- flying ---- */

struct scribe { /* an executor with linear cost that records the steps submitted to it */
    const struct transcript *t;
    struct replica *replica; /* or several, that are virtual engines */
    struct executor_sim sim;
    struct speculation speculation;
    struct text actual, unfinished;
};

static const char *name_of(const struct scribe *s, const struct ifl_request *r)
{
    return s->t->names[live(r)->row];
}

static int64_t scribe_now(void *self)
{
    return executor_sim_ops.now(&((struct scribe *)self)->sim);
}

static void write_work(struct scribe *s, const struct ifl_work *work)
{
    add(&s->actual, " %s:%d", name_of(s, work->request), work->n_new - work->n_draft);
    if (work->n_draft > 0)
        add(&s->actual, "+%d", work->n_draft);
    add(&s->actual, work->samples ? "*" : "");
}

/* done: when it begins and ends. */
static void write_step(struct scribe *s, const struct ifl_step_desc *desc,
                       const struct ifl_done *done)
{
    add(&s->actual, "%g", ifl_s_from_ns(done->start_ns));
    for (size_t i = 0; i < desc->n_work; i++)
        write_work(s, &desc->work[i]);
    add(&s->actual, " |");
    if (desc->n_outs)
        add(&s->actual, " out:%zu", desc->n_outs);
    if (desc->n_ins)
        add(&s->actual, " in:%zu", desc->n_ins);
    if (desc->n_copies)
        add(&s->actual, " copied:%zu", desc->n_copies);
    if (desc->totals.adapters.n_loads)
        add(&s->actual, " loads:%d", desc->totals.adapters.n_loads);
    if (desc->totals.n_slots_kept)
        add(&s->actual, " kept:%d", desc->totals.n_slots_kept);
    /* Preemptions by the plan of this step; steps.csv adds those of earlier plans without a step.
     */
    const int32_t n_preempted = s->replica[desc->replica].plan.step.n_preempted -
                                s->replica[desc->replica].plan.n_ended_victims;
    if (n_preempted > 0)
        add(&s->actual, " preempted:%d", n_preempted);
    if (done->stages)
        add(&s->actual, " end:%g", ifl_s_from_ns(done->end_ns));
    add(&s->actual, " free:%d\n", s->replica[desc->replica].kv.device.n_free);
}

static int scribe_submit(void *self, const struct ifl_step_desc *desc, struct ifl_error *error)
{
    struct scribe *s = self;
    const int rc = executor_sim_ops.submit(&s->sim, desc, error);
    const struct lane *lane = &s->sim.lanes[desc->replica];
    const struct pipeline *pipeline = lane->pipeline;
    if (rc == 0 && pipeline)
        write_step(s, desc, &pipeline->of[(pipeline->first + pipeline->n - 1) % pipeline->cap]);
    else if (rc == 0)
        write_step(s, desc, &lane->of[(lane->first + lane->n - 1) % EXECUTOR_SIM_MAX_IN_FLIGHT]);
    return rc;
}

static int scribe_next(void *self, int64_t until_ns, struct ifl_done *done, struct ifl_error *error)
{
    return executor_sim_ops.next(&((struct scribe *)self)->sim, until_ns, done, error);
}

static const struct ifl_executor_ops scribe_ops = {
    .size_bytes = sizeof(struct ifl_executor_ops),
    .name = "transcript",
    .wants_work = true,
    .now = scribe_now,
    .submit = scribe_submit,
    .next = scribe_next,
};

static void write_unfinished(struct scribe *s, const struct capture *capture)
{
    for (size_t row = 0; row < s->t->trace.n; row++)
        for (size_t i = 0; i < capture->n_requests; i++) {
            const struct ifl_request_record *r = &capture->requests[i];
            if (r->request_id == row && r->status != IFL_FINISHED)
                add(&s->unfinished, "%s %s\n", s->t->names[row], ifl_status_names[r->status]);
        }
}

static int fly(const struct config *config, struct scribe *s, struct ifl_error *error)
{
    const struct cost_config *c = &config->cost;
    const struct linear_cost linear = {c->step_s, c->prefill_token_s, c->decode_seq_s,
                                       c->context_token_s};
    const uint32_t n_engines = config_engines(config);
    if (speculation_create(&s->speculation, config, &s->t->trace, error) < 0)
        return error->code;
    struct stages stages;
    struct replica_options options = {
        .modules = config->serving.modules,
        .limits = {.block_tokens = config->serving.kv.block_tokens,
                   .n_blocks = (config->serving.kv.num_blocks - config->serving.kv.null_blocks) /
                               (int32_t)n_engines,
                   .n_host_blocks = (int32_t)config->serving.kv.swap_gib / (int32_t)n_engines,
                   .max_model_tokens = config->serving.max_model_len,
                   .n_clients = MAX_REQUESTS},
        .allocator = config->serving.kv.allocator,
        .prefix_cache = config->serving.kv.prefix_cache,
        .unhashed = config->serving.kv.unhashed,
        .publish = config->serving.kv.publish,
        .swap_full = config->serving.kv.swap_full,
        .keep = config->serving.kv.keep,
        .leave = config->serving.leave,
        .overlap = config_overlap(config),
        .wants_work = true,
        .max_samples = config_speculates(config) ? 1 : MAX_SAMPLES,
        .speculation = speculation_options(&s->speculation, config),
        .beams = config->workload.beams,
    };
    struct deployment deployment = {.name = "none"};
    struct capture capture = {0};
    struct module router = {0};
    size_t parts_bytes = 0;
    struct workload workload;
    const struct fleet_pool pool = {
        .n = n_engines, .n_engines = n_engines, .door = config->serving.door};
    struct flight flight = {.replicas = s->replica,
                            .n_replicas = n_engines,
                            .router = n_engines > 1 ? &router : NULL,
                            .pools = &pool,
                            .n_pools = 1,
                            .workload = &workload,
                            .executor = &scribe_ops,
                            .executor_self = s,
                            .recorder = (struct ifl_recorder *)(void *)&capture,
                            .steady_runs = config->serving.steady_runs};
    static const struct machine none;
    struct adapter_table adapters;
    struct cost *cost = cost_create_linear(&linear, error);
    const struct adapter_cost adapter_cost = adapter_table_cost(&none, config);
    if (adapter_table_make(&s->t->trace, config, &none, &adapters, error) < 0)
        return error->code;
    adapter_table_limit(&adapters, config, &options.limits);
    options.adapters = adapter_table_options(&adapters, config);
    cost_adapt(cost, &adapter_cost);
    int rc = executor_sim_create(&s->sim, cost, n_engines, error);
    stages_cut_evenly(&stages, config->pipeline_parallel);
    if (rc == 0 && config_pipelines(config))
        rc = executor_sim_pipeline(&s->sim, &stages, 0, n_engines, n_engines,
                                   config->pipeline_parallel + config->serving.in_flight.ahead,
                                   error);
    for (; rc == 0 && options.number < n_engines; options.number++)
        rc = replica_create(&s->replica[options.number], &options, error);
    if (rc == 0)
        rc = module_create_router(&router, &config->serving.modules[IFL_ROUTE], &options.limits,
                                  n_engines, &parts_bytes, error);
    if (rc == 0)
        rc = workload_create(&workload, &s->t->trace, 0, error);
    workload.predictor = config->workload.predictor;
    workload_slo(&workload, config->ttft_slo_s, config->tpot_slo_s);
    if (rc == 0)
        rc = deployment_lay(config->deployment, "deployment", NULL, &deployment, error);
    if (rc == 0)
        rc = workload_go_through(&workload, &deployment.front_end, error);
    if (rc == 0)
        rc = flight_run(&flight, error);
    workload_destroy(&workload);
    module_destroy(&router);
    executor_sim_destroy(&s->sim);
    cost_destroy(cost);
    write_unfinished(s, &capture);
    capture_free(&capture);
    for (uint32_t i = 0; i < n_engines; i++) /* which borrow the adapters */
        replica_destroy(&s->replica[i]);
    adapter_table_free(&adapters);
    return rc;
}

static int compare(const char *path, const char *section, const char *expected, const char *actual)
{
    if (strcmp(expected, actual) == 0)
        return 0;
    printf("%s: section %s differs\n-- expected\n%s-- actual\n%s", path, section, expected, actual);
    return 1;
}

int main(int argc, char **argv)
{
    static struct transcript t;
    static struct scribe s;
    static struct replica replicas[MAX_ENGINES];
    struct ifl_error error = {0};
    if (argc < 2 || argc > 3 || !read_sections(argv[1], &t) || !read_requests(&t)) {
        fprintf(stderr,
                "usage: transcript FILE [PRESET], FILE with sections config, requests and steps\n");
        return 2;
    }
    struct study *study = load_config(&t, argv[2], &error);
    s.t = &t;
    s.replica = replicas;
    int rc = study ? fly(study_first(study), &s, &error) : -1;
    if (rc < 0)
        add(&s.actual, "error: %s\n", error.text);
    rc = compare(argv[1], "steps", t.steps.of, s.actual.of) |
         compare(argv[1], "end", t.end.of, s.unfinished.of);
    for (size_t i = 0; i < MAX_ENGINES; i++)
        replica_destroy(&replicas[i]);
    speculation_destroy(&s.speculation);
    study_free(study);
    ifl_trace_free(&t.trace);
    return rc;
}
