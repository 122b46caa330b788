/* inflight serve: serves a configuration through OpenAI's API; its requests are those of clients.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/outputs.h"
#include "cli/commands.h"
#include "cli/dir_lock.h"
#include "cli/launch.h"
#include "cli/out_dir.h"
#include "live/serve.h"
#include "run/point.h"

enum { MOST_SETS = 24 };

struct serving {
    struct launch launch; /* first: its options have their places in it */
    const char *port, *speed, *host;
    char dir[480];
    const char *address; /* of the server, borrowed */
    struct out_dir out;
    struct dir_lock lock;
    char *set[MOST_SETS]; /* [n_sets] owned */
    size_t n_sets;
    bool has_recording, has_served, has_begun; /* the last: launch_end is due */
};

/* ---- the configuration ---- */

static int set(struct serving *s, const char *key, const char *value)
{
    struct text_list *sets = &s->launch.sets;
    char *text = NULL;
    size_t n_bytes;
    FILE *out = open_memstream(&text, &n_bytes);
    if (out)
        fprintf(out, "%s=%s", key, value);
    if (!out || fclose(out) != 0 || s->n_sets == MOST_SETS ||
        sets->n == sizeof sets->of / sizeof *sets->of)
        return ifl_fail_nomem(&s->launch.error);
    s->set[s->n_sets++] = text;
    sets->of[sets->n++] = text;
    return 0;
}

/* What is recorded is flown again as it was: its trace is the workload, whole. */
static int set_workload(struct serving *s, const char *trace_path)
{
    static const char *const keys[][2] = {{"workload.format", "inflight"},
                                          {"workload.limit", "0"},
                                          {"workload.skip", "0"},
                                          {"workload.from_s", "0"},
                                          {"workload.to_s", "0"},
                                          {"workload.shuffle", "false"},
                                          {"workload.filter", "null"},
                                          {"workload.shared_prefix_tokens", "0"},
                                          {"workload.arrivals", "{process: trace}"},
                                          {"workload.patience", "null"},
                                          {"workload.retry", "null"},
                                          {"workload.beams", "null"},
                                          {"steady_state", "false"},
                                          {"cost.ensemble", "0"},
                                          {"output.requests", "true"},
                                          {"output.steps", "true"},
                                          {"output.timeline", "false"}};
    json_t *path = json_string(trace_path);
    char *quoted = json_dumps(path, JSON_ENCODE_ANY);
    int rc = quoted ? set(s, "workload.trace", quoted) : ifl_fail_nomem(&s->launch.error);
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof *keys; i++)
        rc = set(s, keys[i][0], keys[i][1]);
    free(quoted);
    json_decref(path);
    return rc;
}

static int set_options(struct serving *s)
{
    int rc = s->port ? set(s, "live.port", s->port) : 0;
    if (rc == 0 && s->speed)
        rc = set(s, "live.speed", s->speed);
    return rc == 0 && s->host ? set(s, "live.host", s->host) : rc;
}

static int load(struct serving *s, const char *trace_path)
{
    struct launch *launch = &s->launch;
    int rc = set_workload(s, trace_path);
    if (rc == 0)
        rc = set_options(s);
    s->has_begun = rc == 0;
    if (rc == 0)
        rc = launch_load(launch);
    if (rc == 0 && study_n_points(launch->study) != 1)
        rc = ifl_fail_at(&launch->error, launch->config_path, 0, 0,
                         "has %zu points, expected one: a server flies no sweep (--set sweep=null, "
                         "--set replications=1)",
                         study_n_points(launch->study));
    return rc;
}

/* ---- the folder ---- */

static void path_in(const struct serving *s, const char *name, char path[IFL_PATH_BYTES])
{
    snprintf(path, IFL_PATH_BYTES, "%s/%s", s->dir, name);
}

static int write_config(struct serving *s)
{
    char path[IFL_PATH_BYTES];
    path_in(s, "config.yaml", path);
    return study_write_file(s->launch.study, path, &s->launch.error);
}

static int write_summary(struct serving *s, const struct ifl_summary *summary)
{
    const struct ifl_points points = ifl_one_point(summary);
    char path[IFL_PATH_BYTES];
    path_in(s, "summary.csv", path);
    int rc = ifl_write_summary(path, &points, &s->launch.error);
    if (rc == 0 && !s->launch.quiet)
        rc = ifl_print_summary(stdout, &points, &s->launch.error);
    return rc;
}

/* ---- serving ---- */

static int fly(struct serving *s, const struct config *config, struct serve *server)
{
    char requests[IFL_PATH_BYTES], steps[IFL_PATH_BYTES], work[IFL_PATH_BYTES],
        quantiles[IFL_PATH_BYTES], pools[IFL_PATH_BYTES], moves[IFL_PATH_BYTES],
        guesses[IFL_PATH_BYTES];
    struct launch *launch = &s->launch;
    const struct ifl_notes notes = {launch->quiet ? NULL : launch_say, launch};
    struct trace_shelf traces;
    struct profile_shelf profiles;
    struct point_result result;
    path_in(s, "requests.csv", requests);
    path_in(s, "steps.csv", steps);
    path_in(s, "work.csv", work);
    path_in(s, "quantiles.csv", quantiles);
    path_in(s, "pools.csv", pools);
    path_in(s, "moves.csv", moves);
    path_in(s, "speculation.csv", guesses);
    trace_shelf_init(&traces, notes);
    profile_shelf_init(&profiles);
    const struct point_options options = {
        .config = config,
        .reports = {.requests_path = requests,
                    .steps_path = steps,
                    .work_path = config->output.work ? work : NULL,
                    .quantiles_path = quantiles,
                    .pools_path = config->n_pools > 0 ? pools : NULL,
                    .moves_path = config_hands_over(config) || config_migrates(config) ||
                                          config_swaps_apart_anywhere(config) ||
                                          config_has_tiers_anywhere(config)
                                      ? moves
                                      : NULL,
                    .migrates = config_migrates(config),
                    .hands_over = config_hands_over(config),
                    .tiers = config_has_tiers_anywhere(config),
                    .may_leave = true,
                    .speculates = config_speculates(config),
                    .grow = true},
        .speculation_path = config_speculates(config) ? guesses : NULL,
        .traces = &traces,
        .profiles = &profiles,
        .source = serve_source(server),
        .notes = notes,
    };
    int rc = point_fly(&options, &result, &launch->error);
    trace_shelf_finish(&traces);
    profile_shelf_finish(&profiles);
    return rc == 0 ? write_summary(s, &result.summary) : rc;
}

static void say_ready(void *context, const struct serve *server)
{
    const struct serving *s = context;
    fprintf(stderr, "serving at http://%s:%d/ and recording in %s, until SIGTERM or SIGINT\n",
            s->address, serve_port(server), s->dir);
}

static int serve_config(struct serving *s, const struct config *config, const char *trace_path)
{
    struct launch *launch = &s->launch;
    const struct serve_options options = {config, trace_path, say_ready, s};
    s->address = config->live.host;
    struct serve *server = serve_open(&options, &launch->error);
    if (!server)
        return launch->error.code;
    int rc = write_config(s);
    s->has_served = rc == 0;
    if (rc == 0)
        rc = fly(s, config, server);
    serve_close(server);
    return rc;
}

/* What is served is read before the first request, so that all inputs are known. */
static int check_outputs(struct serving *s, const struct config *config)
{
    static const char *const names[] = {
        "config.yaml", "requests.csv", "steps.csv",       "work.csv",    "quantiles.csv",
        "pools.csv",   "moves.csv",    "speculation.csv", "summary.csv", NULL};
    inputs_note(config);
    return outputs_check(s->dir, names, &s->launch.error);
}

static int serve(struct serving *s)
{
    char trace_path[IFL_PATH_BYTES];
    struct launch *launch = &s->launch;
    struct config config;
    int rc = out_dir_make(&s->out, s->dir, &launch->error);
    path_in(s, "trace.csv", trace_path);
    if (rc == 0)
        rc = dir_lock_take(&s->lock, s->dir, &launch->error);
    if (rc == 0)
        rc = serve_make_recording(trace_path, &launch->error);
    s->has_recording = rc == 0;
    if (rc == 0)
        rc = load(s, trace_path);
    if (rc == 0 && (rc = study_read(launch->study, 0, &config, &launch->error)) == 0) {
        rc = check_outputs(s, &config);
        if (rc == 0)
            rc = serve_config(s, &config, trace_path);
        config_finish(&config);
    }
    if (rc < 0 && s->has_recording && !s->has_served)
        unlink(trace_path); /* nothing was served */
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct serving s = {0};
    if (launch_read(&s.launch, &command_serve, argc, argv) < 0)
        return 2;
    snprintf(s.dir, sizeof s.dir, "%s", s.launch.out_dir ? s.launch.out_dir : "results/live");
    const int rc = serve(&s);
    dir_lock_release(&s.lock);
    out_dir_tidy(&s.out);
    for (size_t i = 0; i < s.n_sets; i++)
        free(s.set[i]);
    return s.has_begun ? launch_end(&s.launch, rc) : cli_fail(&s.launch.error);
}

#define SERVING_OPTION(name, kind, member, ...)                                                    \
    {                                                                                              \
        name, NULL, OPTION_##kind, offsetof(struct serving, member), __VA_ARGS__                   \
    }

static const struct option_spec options[] = {
    LAUNCH_OPTION("--set", NULL, LIST, sets, "KEY=VALUE", "set a key of the configuration",
                  COMPLETE_SETTING),
    LAUNCH_OPTION("--plugin", NULL, LIST, plugins, "FILE.so", "load a file with your own policies",
                  COMPLETE_FILE),
    LAUNCH_OPTION("--output", "-o", TEXT, out_dir, "DIR",
                  "folder for the recording; it must not have one yet (results/live)",
                  COMPLETE_FOLDER),
    SERVING_OPTION("--host", TEXT, host, "ADDRESS",
                   "address on which to listen (the key live.host)", COMPLETE_NOTHING),
    SERVING_OPTION("--port", TEXT, port, "N", "port; 0: any free port (the key live.port)",
                   COMPLETE_NOTHING),
    SERVING_OPTION("--speed", TEXT, speed, "X", "simulated seconds per second (the key live.speed)",
                   COMPLETE_NOTHING),
    LAUNCH_OPTION("--quiet", "-q", FLAG, quiet, NULL, "no table and no notes", COMPLETE_NOTHING),
};

const struct command command_serve = {
    .name = "serve",
    .doc = "answer OpenAI's API at the pace of a simulated server, or with an engine",
    .arguments = "CONFIG.yaml",
    .example = "inflight serve quickstart --set sweep=null --port 8000 -o results/live",
    .notes =
        "Every request is recorded: `inflight run DIR/config.yaml` repeats the recording with the "
        "same steps. The keys under `live` are for servers only: `inflight list keys live`.",
    .completion = COMPLETE_CONFIG,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
