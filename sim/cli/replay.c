/* inflight replay: sends the requests of a trace to a server. */
#include <gsl/gsl_errno.h>
#include <stdio.h>
#include <string.h>

#include "base/data.h"
#include "base/tree.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/live_options.h"
#include "cli/usage.h"
#include "config/sweep.h"
#include "import/import.h"

struct request {
    struct text_list traces, sets;
    const char *server, *out_dir, *format;
    double speed, rate_rps;
    long long concurrency;
    struct live_options live;
};

/* ---- the workload, as keys of a configuration ---- */

static const struct node nowhere = {.file = (char *)"inflight replay"};

static int put(struct node *root, const char *key, const char *value, struct ifl_error *error)
{
    struct node *scalar = tree_scalar(value, strcmp(key, "workload.trace") == 0, &nowhere);
    const int rc = scalar ? tree_put(root, key, scalar, error) : ifl_fail_nomem(error);
    tree_free(scalar);
    return rc;
}

static int put_number(struct node *root, const char *key, double value, struct ifl_error *error)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    return put(root, key, text, error);
}

/* What a client does is all that there is to set. */
static int check_set(const char *set, struct ifl_error *error)
{
    return strncmp(set, "workload.", 9) == 0 || strncmp(set, "slo.", 4) == 0
               ? 0
               : ifl_fail(error, IFL_E_INPUT,
                          "--set %s: expected a key of workload or slo: the rest of a "
                          "configuration describes the server",
                          set);
}

static int describe(const struct request *request, struct node *root, struct ifl_error *error)
{
    struct node *sweep = NULL;
    int rc = put(root, "workload.trace", request->traces.of[0], error);
    if (rc == 0 && request->format)
        rc = put(root, "workload.format", request->format, error);
    if (rc == 0 && request->speed > 0)
        rc = put_number(root, "workload.arrivals.speedup", request->speed, error);
    if (rc == 0 && request->rate_rps > 0)
        rc = put(root, "workload.arrivals.process", "poisson", error);
    if (rc == 0 && request->rate_rps > 0)
        rc = put_number(root, "workload.arrivals.rate_rps", request->rate_rps, error);
    if (rc == 0 && request->concurrency > 0)
        rc = put(root, "workload.arrivals.process", "closed", error);
    if (rc == 0 && request->concurrency > 0)
        rc = put_number(root, "workload.arrivals.concurrency", (double)request->concurrency, error);
    for (size_t i = 0; rc == 0 && i < request->sets.n; i++) {
        rc = check_set(request->sets.of[i], error);
        if (rc == 0)
            rc = edit_apply(request->sets.of[i], root, &sweep, error);
    }
    tree_free(sweep);
    return rc;
}

static int read_workload(const struct request *request, struct config *config,
                         struct ifl_error *error)
{
    struct node *root = tree_node(NODE_MAP, &nowhere);
    int rc = root ? describe(request, root, error) : ifl_fail_nomem(error);
    if (rc == 0) /* a configuration is whole with some scheduler: this one is not looked at */
        rc = put(root, "serving.preset", "vllm-v1", error);
    if (rc == 0)
        rc = import_resolve(root, config, error);
    tree_free(root);
    if (rc < 0)
        return rc;
    struct workload_config *w = &config->workload;
    if (data_path(w->trace_name, w->trace) < 0) {
        rc = ifl_fail(error, IFL_E_INPUT, "there is no file %s, expected a trace", w->trace_name);
        config_finish(config);
    }
    return rc;
}

static int check_request(const struct request *request)
{
    const char *of_rate = request->rate_rps > 0 && request->concurrency > 0 ? "--concurrency"
                          : request->rate_rps > 0 && request->speed > 0     ? "--speed"
                                                                            : NULL;
    if (of_rate)
        fprintf(stderr, "inflight replay: --rate and %s, expected one of them\n", of_rate);
    else if (request->rate_rps < 0 || request->speed < 0)
        fprintf(stderr, "inflight replay: --%s %g: expected a number above 0\n",
                request->rate_rps < 0 ? "rate" : "speed",
                request->rate_rps < 0 ? request->rate_rps : request->speed);
    else
        return 0;
    return -1;
}

/* ---- the command ---- */

static int replay(const struct request *request, const struct config *config)
{
    struct live live;
    struct replay_result result;
    struct ifl_error error;
    if (live_init(&live, "replay", request->server, &request->live, config, request->out_dir) < 0)
        return 2;
    const int rc = live_replay(&live, &request->live, &result, &error);
    if (result.summary.n_requests > 0 && !request->live.quiet)
        replay_print(&result, stdout);
    live_finish(&live);
    return rc < 0 ? cli_fail(&error) : 0;
}

static int run_command(int argc, char **argv)
{
    struct request request = {.out_dir = "results/replay", .live = live_options_default};
    struct config config;
    struct ifl_error error;
    if (options_read(&command_replay, &request, argc, argv, &request.traces) < 0 ||
        check_request(&request) < 0)
        return 2;
    if (request.traces.n != 1 || !request.server)
        return usage_fail(&command_replay);
    gsl_set_error_handler_off();
    interrupt_catch();
    if (read_workload(&request, &config, &error) < 0)
        return cli_fail(&error);
    const int code = replay(&request, &config);
    config_finish(&config);
    return code;
}

static const struct option_spec options[] = {
    {"--server", "-s", OPTION_TEXT, offsetof(struct request, server), "URL",
     "URL of the server, such as http://localhost:8000", COMPLETE_NOTHING},
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_dir), "DIR",
     "folder for the reports (results/replay)", COMPLETE_FOLDER},
    {"--format", NULL, OPTION_TEXT, offsetof(struct request, format), "NAME",
     "format of the trace, see `inflight list traces` (auto)", COMPLETE_FORMAT},
    {"--speed", NULL, OPTION_REAL, offsetof(struct request, speed), "FACTOR",
     "divide the arrival times of the trace by this (1)", COMPLETE_NOTHING},
    {"--rate", NULL, OPTION_REAL, offsetof(struct request, rate_rps), "RPS",
     "draw arrivals at this rate instead: a Poisson process", COMPLETE_NOTHING},
    {"--concurrency", NULL, OPTION_COUNT, offsetof(struct request, concurrency), "N",
     "a closed loop with this many requests in progress", COMPLETE_NOTHING},
    {"--ramp", NULL, OPTION_REAL, offsetof(struct request, live.ramp_s), "S",
     "time in which the load grows from zero (0)", COMPLETE_NOTHING},
    {"--set", NULL, OPTION_LIST, offsetof(struct request, sets), "KEY=VALUE",
     "set a key of workload or slo", COMPLETE_SETTING},
    LIVE_OPTIONS(struct request),
};

const struct command command_replay = {
    .name = "replay",
    .doc = "send the requests of a trace to a server",
    .arguments = "TRACE",
    .example = "inflight replay trace.csv --server http://localhost:8000 -o results/live",
    .notes = "The server must speak OpenAI's API with streams: vLLM, SGLang, llama.cpp's. Requests "
             "arrive as in a simulated run. `validate` and `identify` read the reports.",
    .completion = COMPLETE_FILE,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
