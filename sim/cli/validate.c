/* inflight validate: compares a simulated run with a recorded one. */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "inflight/report.h"
#include "inflight/validate.h"

#include "base/data.h"
#include "base/outputs.h"
#include "cli/commands.h"
#include "cli/out_dir.h"
#include "cli/progress.h"
#include "cli/usage.h"
#include "cli/validate_live.h"
#include "config/config.h"

/* A folder of inflight's own, or a file in a format of recorded runs. */
static int read_run(const struct ifl_trace_file *file, struct ifl_run *run, struct ifl_trace *trace,
                    struct ifl_error *error)
{
    const char *path = file->path;
    const struct ifl_notes notes = {cli_note, NULL};
    struct stat status;
    char requests[4096];
    *run = (struct ifl_run){.name = path, .trace = trace};
    if (stat(path, &status) < 0)
        return ifl_fail_at(error, path, 0, 0, "cannot open: %s", strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return ifl_trace_read(file, &notes, trace, error);
    run->dir = path;
    snprintf(requests, sizeof requests, "%s/requests.csv", path);
    return ifl_trace_read(&(struct ifl_trace_file){requests, "requests", file->max_record_mib},
                          &notes, trace, error);
}

/* ---- progress: what is under way, and then how many figures are done ---- */

enum stage { READING_SIMULATED, READING_MEASURED, COMPARING };

static void look_at_stage(void *context, struct progress_state *state)
{
    static const char *const stages[] = {[READING_SIMULATED] = "reading the simulated run",
                                         [READING_MEASURED] = "reading the recorded run",
                                         [COMPARING] = "comparing them"};
    state->done_frac = (double)NAN;
    snprintf(state->text, sizeof state->text, "%s", stages[atomic_load((atomic_int *)context)]);
}

static void look_at_figures(void *context, struct progress_state *state)
{
    const int n_drawn = atomic_load((atomic_int *)context);
    int n = 0;
    while (ifl_validation_figures[n])
        n++;
    state->done_frac = (double)n_drawn / n;
    snprintf(state->text, sizeof state->text, "%d of %d figures", n_drawn, n);
}

/* Figures are optional: without gnuplot there are only the numbers. */
static void draw(const char *out_dir, const char *const runs[2])
{
    struct ifl_error error;
    char script_dir[512], *source = NULL;
    int rc = ifl_figure_source(&source, 2, runs, &error);
    const struct ifl_drawing drawing = {
        .out_dir = out_dir, .script_dir = script_dir, .columns = 2, .source = source};
    if (rc == 0)
        rc = data_plot_scripts(script_dir, &error);
    atomic_int n_drawn = 0;
    struct progress progress = {.look = look_at_figures, .context = &n_drawn};
    progress_start(&progress);
    for (const char *const *figure = ifl_validation_figures; rc == 0 && *figure; figure++) {
        rc = ifl_figure(&drawing, *figure, *figure, &error);
        atomic_fetch_add(&n_drawn, 1);
    }
    progress_stop(&progress);
    if (rc < 0)
        fprintf(stderr, "note: no figures: %s\n", error.text);
    free(source);
}

struct request {
    const char *simulated, *measured, *format, *out_dir, *part;
    uint64_t part_of, n_parts;
    long long max_record_mib;
    struct text_list runs;
    bool no_plots;
    const char *server;
    struct text_list sets;
    struct live_options live;
};

/* "0/2": every second request, from the first on. */
static int read_part(struct request *request)
{
    unsigned long long part, n_parts;
    char rest;
    if (!request->part)
        return 0;
    if (sscanf(request->part, "%llu/%llu%c", &part, &n_parts, &rest) != 2 || n_parts < 1 ||
        part >= n_parts || strchr(request->part, '-')) {
        fprintf(stderr, "inflight validate: --part %s: expected K/N with K below N\n",
                request->part);
        return -1;
    }
    request->part_of = part;
    request->n_parts = n_parts;
    return 0;
}

static int validate(const struct request *request, FILE *table, atomic_int *stage,
                    struct ifl_error *error)
{
    struct ifl_trace simulated = {0}, measured = {0};
    struct out_dir out = {0};
    struct ifl_validation v = {.out_dir = request->out_dir,
                               .table = table,
                               .part = request->part_of,
                               .n_parts = request->n_parts};
    const int32_t mib = (int32_t)request->max_record_mib;
    const struct ifl_trace_file files[] = {{request->simulated, "auto", mib},
                                           {request->measured, request->format, mib}};
    int rc = read_run(&files[0], &v.simulated, &simulated, error);
    atomic_store(stage, READING_MEASURED);
    if (rc == 0)
        rc = read_run(&files[1], &v.measured, &measured, error);
    atomic_store(stage, COMPARING);
    if (rc == 0 && !v.out_dir)
        v.out_dir = v.simulated.dir;
    if (rc == 0 && !v.out_dir)
        rc = ifl_fail(error, IFL_E_INPUT, "%s is no folder, expected -o DIR to say where to write",
                      request->simulated);
    else if (rc == 0)
        rc = outputs_check(v.out_dir, ifl_validation_files, error);
    if (rc == 0)
        rc = out_dir_make(&out, v.out_dir, error);
    if (rc == 0)
        rc = ifl_validate(&v, error);
    out_dir_tidy(&out);
    ifl_trace_free(&simulated);
    ifl_trace_free(&measured);
    return rc;
}

/* The table comes when the progress line is gone. */
static int validate_watched(const struct request *request, struct ifl_error *error)
{
    char *table = NULL;
    size_t n_bytes;
    atomic_int stage = READING_SIMULATED;
    struct progress progress = {.look = look_at_stage, .context = &stage};
    FILE *out = open_memstream(&table, &n_bytes);
    if (!out)
        return ifl_fail_nomem(error);
    progress_start(&progress);
    const int rc = validate(request, out, &stage, error);
    progress_stop(&progress);
    if (fclose(out) == 0)
        fputs(table, stdout);
    free(table);
    return rc;
}

static int compare(const struct request *request)
{
    const char *const runs[] = {request->simulated, request->measured};
    struct ifl_error error;
    if (validate_watched(request, &error) < 0)
        return cli_fail(&error);
    if (!request->no_plots)
        draw(request->out_dir ? request->out_dir : request->simulated, runs);
    return 0;
}

/* A configuration instead of two runs: both are made. */
static int compare_live(struct request *request)
{
    char simulated[IFL_PATH_BYTES], measured[IFL_PATH_BYTES];
    const struct validate_live live = {
        .url = request->server,
        .config = request->runs.of[0],
        .sets = request->sets.of,
        .n_sets = request->sets.n,
        .out_dir = request->out_dir ? request->out_dir : "results/validate-live",
        .live = &request->live,
    };
    snprintf(simulated, sizeof simulated, "%.600s/simulated", live.out_dir);
    snprintf(measured, sizeof measured, "%.600s/live", live.out_dir);
    request->simulated = simulated;
    request->measured = measured;
    request->out_dir = simulated;
    int code = validate_live(&live);
    if (code == 0)
        code = compare(request);
    return code == 0 ? validate_live_page(&live) : code;
}

static int run_command(int argc, char **argv)
{
    struct request request = {
        .format = "auto", .max_record_mib = IFL_MAX_RECORD_MIB, .live = live_options_default};
    const struct text_list *runs = &request.runs;
    struct ifl_error error;
    if (options_read(&command_validate, &request, argc, argv, &request.runs) < 0 ||
        read_part(&request) < 0 || cli_check_max_record("validate", request.max_record_mib) < 0)
        return 2;
    if (runs->n != (request.server ? 1 : 2))
        return usage_fail(&command_validate);
    if (ifl_trace_check_format(request.format, &error) < 0) /* a folder is read without it */
        return cli_fail(&error);
    if (request.server)
        return compare_live(&request);
    request.simulated = runs->of[0];
    request.measured = runs->of[1];
    return compare(&request);
}

static const struct option_spec options[] = {
    {"--output", "-o", OPTION_TEXT, offsetof(struct request, out_dir), "DIR",
     "folder for tables and figures (SIM_DIR)", COMPLETE_FOLDER},
    {"--format", NULL, OPTION_TEXT, offsetof(struct request, format), "NAME",
     "format of REAL, see `inflight list traces` (auto)", COMPLETE_FORMAT},
    {"--max-record", NULL, OPTION_COUNT, offsetof(struct request, max_record_mib), "MIB",
     "longest line or JSON object that is accepted (256)", COMPLETE_NOTHING},
    {"--part", NULL, OPTION_TEXT, offsetof(struct request, part), "K/N",
     "compare only requests whose request_id modulo N is K", COMPLETE_NOTHING},
    {"--no-plots", NULL, OPTION_FLAG, offsetof(struct request, no_plots), NULL, "draw no figures",
     COMPLETE_NOTHING},
    {"--live", NULL, OPTION_TEXT, offsetof(struct request, server), "URL",
     "make both runs: send the requests of CONFIG.yaml to this server, and simulate them",
     COMPLETE_NOTHING},
    {"--set", NULL, OPTION_LIST, offsetof(struct request, sets), "KEY=VALUE",
     "with --live: set a key of the configuration", COMPLETE_SETTING},
    LIVE_OPTIONS(struct request),
};

const struct command command_validate = {
    .name = "validate",
    .doc = "compare a simulated run with a recorded one",
    .arguments = "SIM_DIR REAL | --live URL CONFIG.yaml",
    .example = "inflight validate results/mine recorded.jsonl",
    .notes = "Options from --model on are those of `inflight replay`; they need --live.",
    .completion = COMPLETE_FILE,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
