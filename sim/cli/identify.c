/* inflight identify: estimates numbers of a deployment that no document gives, from its recorded
 * runs. */
#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data.h"
#include "base/new_file.h"
#include "cli/commands.h"
#include "cli/identify_files.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/usage.h"
#include "config/registry.h"

struct request {
    struct text_list words, sets, plugins, holds, releases, requests, predicts;
    const char *format, *out_path;
    double share;
};

struct work {
    const struct request *request;
    char config_path[512];
    struct study *study;
    struct config config;
    bool has_config;
    struct trace_shelf traces;
    struct profile_shelf profiles;
    struct recording *recordings; /* [n], then those that are predicted */
    size_t n, n_predicted;
    struct identify_options options;
    struct identified found;
    atomic_ullong n_flown, n_ended;
    struct ifl_error error;
};

/* `set`: the settings, and behind them those of a trace that the configuration lacks. */
static int read_config(struct work *work, const char *const set[], size_t n_sets)
{
    const struct study_options study = {work->config_path, set, n_sets};
    int rc = study_load(&study, &work->study, &work->error);
    if (rc == 0 && study_n_points(work->study) > 1)
        rc =
            ifl_fail_at(&work->error, work->request->words.of[0], 0, 0,
                        "%zu points, expected one: a recorded run has no sweep and no replications",
                        study_n_points(work->study));
    return rc == 0 ? study_read(work->study, 0, &work->config, &work->error) : rc;
}

/* A configuration without a trace is of the first recording's requests. Whatever else is wrong with
 * it is said as of the configuration by itself. */
static int read_config_or_add_trace(struct work *work)
{
    const struct request *request = work->request;
    const char *set[sizeof request->sets.of / sizeof *request->sets.of + 2];
    char trace[600], format[64];
    memcpy(set, request->sets.of, request->sets.n * sizeof *set);
    const int rc = read_config(work, set, request->sets.n);
    if (rc == 0 || !strstr(work->error.text, "workload.trace is missing"))
        return rc;
    snprintf(trace, sizeof trace, "workload.trace=%s", request->words.of[1]);
    snprintf(format, sizeof format, "workload.format=%s", request->format);
    set[request->sets.n] = trace;
    set[request->sets.n + 1] = format;
    study_free(work->study);
    work->study = NULL;
    return read_config(work, set, request->sets.n + 2);
}

static int load(struct work *work)
{
    const struct request *request = work->request;
    int rc = data_find_config(request->words.of[0], work->config_path, &work->error);
    for (size_t i = 0; rc == 0 && i < request->plugins.n; i++)
        rc = registry_load_plugin(request->plugins.of[i], &work->error);
    if (rc == 0)
        rc = read_config_or_add_trace(work);
    work->has_config = rc == 0;
    if (rc == 0 &&
        (work->config.executor != EXECUTOR_SIM || work->config.cost.model != COST_ROOFLINE))
        rc = ifl_fail_at(
            &work->error, request->words.of[0], 0, 0,
            "%s, expected %s, whose parameters are looked for",
            work->config.executor != EXECUTOR_SIM ? "an engine executes" : "cost.model is another",
            work->config.executor != EXECUTOR_SIM ? "executor sim" : "cost.model roofline");
    if (rc == 0 && work->config.n_pools > 0)
        rc = ifl_fail_at(&work->error, request->words.of[0], 0, 0,
                         "cluster.pools is set, expected one kind of replica, whose deployment is "
                         "looked for");
    return rc;
}

/* A run that is given twice would count for two, and intervals would be too narrow. */
static int check_twice(struct work *work)
{
    for (size_t i = 1; i < work->n; i++)
        for (size_t j = 0; j < i; j++)
            if (recording_same(&work->recordings[i], &work->recordings[j]))
                return ifl_fail_at(&work->error, work->recordings[i].path, 0, 0,
                                   "the same run as %s, expected another",
                                   work->recordings[j].path);
    return 0;
}

static int check_requests_used(const struct recording_options *options, struct ifl_error *error)
{
    for (size_t i = 0; i < options->n_requests; i++)
        if (!options->used[i])
            return ifl_fail_at(
                error, options->requests[i], 0, 0,
                "no recorded run has these requests, expected the same numbers of output tokens; "
                "requests before the run's may precede them if both files have request_id");
    return 0;
}

static int read_recordings(struct work *work)
{
    const struct request *request = work->request;
    const struct ifl_notes notes = {cli_note, NULL};
    const size_t n = request->words.n - 1;
    bool used[sizeof request->requests.of / sizeof *request->requests.of] = {false};
    struct recording_options options = {
        .config = &work->config,
        .format = request->format,
        .fit_frac = request->share,
        .requests = request->requests.of,
        .n_requests = request->requests.n,
        .used = used,
        .notes = &notes,
    };
    int rc = 0;
    work->recordings = calloc(n + request->predicts.n, sizeof *work->recordings);
    if (!work->recordings)
        return ifl_fail_nomem(&work->error);
    for (work->n = 0; rc == 0 && work->n < n; work->n++)
        rc = recording_read(&work->recordings[work->n], request->words.of[work->n + 1], &options,
                            &work->error);
    options.fit_frac = 1;
    for (; rc == 0 && work->n_predicted < request->predicts.n; work->n_predicted++)
        rc = recording_read(&work->recordings[work->n + work->n_predicted],
                            request->predicts.of[work->n_predicted], &options, &work->error);
    if (rc == 0)
        rc = check_requests_used(&options, &work->error);
    return rc == 0 ? check_twice(work) : rc;
}

/* The search ends where it has converged: how much is left is not known. */
static void look(void *context, struct progress_state *state)
{
    struct work *work = context;
    state->done_frac = (double)NAN;
    snprintf(state->text, sizeof state->text, "%llu flights, %llu requests",
             atomic_load(&work->n_flown), atomic_load(&work->n_ended));
}

static int find(struct work *work)
{
    work->options = (struct identify_options){
        .setting = {.config = &work->config,
                    .traces = &work->traces,
                    .profiles = &work->profiles,
                    .stop = &interrupt_asked,
                    .n_flown = &work->n_flown,
                    .n_ended = &work->n_ended},
        .recordings = work->recordings,
        .n_recordings = work->n,
        .n_predicted = work->n_predicted,
        .study = work->study,
    };
    for (size_t i = 0; i < work->request->holds.n; i++)
        work->options.hold[parameter_find(work->request->holds.of[i])] = true;
    for (size_t i = 0; i < work->request->releases.n; i++)
        work->options.release[parameter_find(work->request->releases.of[i])] = true;
    struct progress progress = {.look = look, .context = work};
    progress_start(&progress);
    const int rc = identify(&work->options, &work->found, &work->error);
    progress_stop(&progress);
    return rc;
}

static int report(struct work *work)
{
    const struct identify_report report = {
        .options = &work->options,
        .found = &work->found,
        .predicted = work->recordings + work->n,
        .n_predicted = work->n_predicted,
        .config_path = work->request->words.of[0],
        .table = stdout,
    };
    int rc = identify_print(&report, &work->error);
    if (rc == 0 && work->request->out_path)
        rc = identify_write_overlay(&report, work->request->out_path, &work->error);
    return rc;
}

static int check_parameters(const char *option, const struct text_list *words)
{
    const char *keys[N_PARAMETERS];
    for (enum parameter p = 0; p < N_PARAMETERS; p++)
        keys[p] = parameter_rows[p].key;
    for (size_t i = 0; i < words->n; i++)
        if (parameter_find(words->of[i]) < 0) {
            fprintf(stderr, "inflight identify: %s %s: no parameter, ", option, words->of[i]);
            cli_suggest(words->of[i], keys, N_PARAMETERS);
            return -1;
        }
    return 0;
}

static bool has(const struct text_list *words, const char *word)
{
    for (size_t i = 0; i < words->n; i++)
        if (strcmp(words->of[i], word) == 0)
            return true;
    return false;
}

/* What --free asks for must be possible. */
static int check_releases(const struct request *request)
{
    for (size_t i = 0; i < request->releases.n; i++) {
        const char *word = request->releases.of[i];
        const char *acts_as = parameter_acts_as((enum parameter)parameter_find(word));
        if (acts_as)
            fprintf(stderr,
                    "inflight identify: --free %s: acts as %s in every step of one model, expected "
                    "--free %s\n",
                    word, acts_as, acts_as);
        else if (has(&request->holds, word))
            fprintf(stderr, "inflight identify: --free %s: --hold %s contradicts it\n", word, word);
        else
            continue;
        return -1;
    }
    return 0;
}

static int check_request(const struct request *request)
{
    if (check_parameters("--hold", &request->holds) < 0 ||
        check_parameters("--free", &request->releases) < 0 || check_releases(request) < 0)
        return -1;
    if (request->share > 0 && request->share <= 1)
        return 0;
    fprintf(stderr, "inflight identify: --share %g: expected more than 0 and at most 1\n",
            request->share);
    return -1;
}

/* A file that cannot be written is said before a search of minutes. */
static int check_out(const char *path, struct ifl_error *error)
{
    struct new_file file;
    const int rc = new_file_open(&file, path, error);
    if (rc == 0)
        (void)new_file_close(&file, -1, error);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct request request = {.format = "auto", .share = 0.5};
    struct work work = {.request = &request};
    if (options_read(&command_identify, &request, argc, argv, &request.words) < 0 ||
        check_request(&request) < 0)
        return 2;
    if (request.words.n < 2)
        return usage_fail(&command_identify);
    gsl_set_error_handler_off();
    interrupt_catch();
    trace_shelf_init(&work.traces, (struct ifl_notes){0});
    profile_shelf_init(&work.profiles);
    int rc = load(&work);
    if (rc == 0)
        rc = read_recordings(&work);
    if (rc == 0 && request.out_path) /* before the search, which takes long */
        rc = check_out(request.out_path, &work.error);
    if (rc == 0)
        rc = find(&work);
    if (rc == 0)
        rc = report(&work);
    const int code = rc < 0 ? cli_fail(&work.error) : 0;
    for (size_t i = 0; work.recordings && i < request.words.n - 1 + request.predicts.n; i++)
        recording_free(&work.recordings[i]);
    free(work.recordings);
    if (work.has_config)
        config_finish(&work.config);
    study_free(work.study);
    trace_shelf_finish(&work.traces);
    profile_shelf_finish(&work.profiles);
    return code;
}

static const struct option_spec options[] = {
    {"--set", NULL, OPTION_LIST, offsetof(struct request, sets), "KEY=VALUE",
     "set a key of the configuration", COMPLETE_SETTING},
    {"--plugin", NULL, OPTION_LIST, offsetof(struct request, plugins), "FILE.so",
     "load a file with your own policies", COMPLETE_FILE},
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_path), "OUT.yaml",
     "file for the deployment, which other configurations can name", COMPLETE_FILE},
    {"--format", NULL, OPTION_TEXT, offsetof(struct request, format), "NAME",
     "format of the recorded runs (auto)", COMPLETE_FORMAT},
    {"--share", NULL, OPTION_REAL, offsetof(struct request, share), "FRAC",
     "fraction of each run that is fitted; the rest judges the fit (0.5)", COMPLETE_NOTHING},
    {"--hold", NULL, OPTION_LIST, offsetof(struct request, holds), "PARAMETER",
     "do not fit this parameter: take it from the configuration", COMPLETE_NOTHING},
    {"--free", NULL, OPTION_LIST, offsetof(struct request, releases), "PARAMETER",
     "fit this parameter, even if the configuration sets it", COMPLETE_NOTHING},
    {"--requests", NULL, OPTION_LIST, offsetof(struct request, requests), "TRACE",
     "trace with more data on the recorded requests, such as shared prefixes", COMPLETE_FILE},
    {"--predict", NULL, OPTION_LIST, offsetof(struct request, predicts), "RECORDED",
     "also judge the result on this run", COMPLETE_FILE},
};

const struct command command_identify = {
    .name = "identify",
    .doc = "estimate unknown numbers of a deployment from its recorded runs",
    .arguments = "CONFIG.yaml RECORDED...",
    .example = "inflight identify deployment.yaml morning.jsonl noon.jsonl -o mine.yaml",
    .completion = COMPLETE_FILE,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
