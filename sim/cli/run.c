/* inflight run: every point of a study, on as many threads and ranks as there are, and its reports.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/crew.h"
#include "cli/options.h"
#include "cli/ranks.h"
#include "cli/run_files.h"
#include "point.h"

enum { MAX_NOTES = 32 };

struct run {
    const char *out_dir;
    long long n_threads;
    bool quiet, timing, resume;
    struct study *study;
    struct run_files files;
    struct crew crew;
    struct ifl_error error;
    /* what was said: many points have the same to say */
    pthread_mutex_t lock;
    char *notes[MAX_NOTES];
    size_t n_notes;
};

/* ---- a point ---- */

static void say_once(void *context, const char *text)
{
    struct run *run = context;
    size_t i = 0;
    pthread_mutex_lock(&run->lock);
    while (i < run->n_notes && strcmp(run->notes[i], text) != 0)
        i++;
    if (i == run->n_notes && i < MAX_NOTES && (run->notes[i] = strdup(text))) {
        run->n_notes++;
        fprintf(stderr, "note: %s\n", text);
    }
    pthread_mutex_unlock(&run->lock);
}

/* "preset=vllm-v0 rate_rps=4", the caller's to free. NULL without memory: a name is a nicety. */
static char *label_point(const struct run *run, size_t point)
{
    char *label = NULL;
    size_t n_bytes;
    FILE *out = open_memstream(&label, &n_bytes);
    if (!out)
        return NULL;
    for (size_t a = 0; a < study_n_axes(run->study); a++) {
        const char *key = study_axis(run->study, a), *dot = strrchr(key, '.');
        fprintf(out, "%s%s=%s", a ? " " : "", dot ? dot + 1 : key,
                study_value(run->study, point, a));
    }
    fclose(out);
    return label;
}

static int fly_point(struct run *run, size_t point, struct point_result *result,
                     struct ifl_error *error)
{
    const bool speaks = ranks_own() == 0 && !run->quiet;
    char paths[N_REPORTS][IFL_PATH_BYTES];
    struct config config;
    if (study_read(run->study, point, &config, error) < 0)
        return error->code;
    char *label = run->files.wanted[REPORT_TIMELINE] ? label_point(run, point) : NULL;
    struct point_options options = {
        .config = &config,
        .point = (int32_t)point,
        .reports = run_files_of_point(&run->files, point, paths),
        .notes = {speaks ? say_once : NULL, run},
        .stop = &crew_stop,
        .n_ended = &run->crew.n_ended,
        .n_requests = &run->crew.n_begun,
    };
    options.reports.label = label;
    options.intervals_path = run->files.wanted[REPORT_INTERVALS] ? paths[REPORT_INTERVALS] : NULL;
    const int rc = point_fly(&options, result, error);
    free(label);
    config_finish(&config);
    return rc;
}

/* A full disk or a signal concerns all points, anything else only this one. */
static bool concerns_all(int code)
{
    return code == IFL_E_IO || code == IFL_E_INTERRUPTED;
}

static int fly_and_record(void *context, size_t point, struct ifl_error *error)
{
    struct run *run = context;
    struct point_record record;
    memset(&record, 0, sizeof record); /* its padding is written too */
    if (fly_point(run, point, &record.result, error) < 0) {
        if (concerns_all(error->code))
            return error->code;
        record.error = *error;
    }
    return run_files_put(&run->files, point, &record, error);
}

static bool is_recorded(void *context, size_t point)
{
    struct run *run = context;
    struct point_record record;
    return run->resume && run_files_get(&run->files, point, &record);
}

/* ---- reports ---- */

static int get_point(void *context, size_t point, const char **values, struct ifl_summary *summary,
                     struct ifl_error *error)
{
    const struct run *run = context;
    struct point_record record;
    for (size_t a = 0; values && a < study_n_axes(run->study); a++)
        values[a] = study_value(run->study, point, a);
    if (!summary)
        return 0;
    if (!parts_get(&run->files.parts, point, &record))
        return ifl_fail(error, IFL_E_IO, "%s: the record of point %zu is gone",
                        run->files.parts.dir, point);
    *summary = record.result.summary;
    if (record.error.code)
        error_print(&record.error, summary->error, sizeof summary->error);
    return 0;
}

static int write_summary(struct run *run, FILE *terminal)
{
    const size_t n_axes = study_n_axes(run->study);
    char path[IFL_PATH_BYTES];
    const char **keys = calloc(n_axes + 1, sizeof *keys);
    if (!keys)
        return ifl_fail_nomem(&run->error);
    for (size_t a = 0; a < n_axes; a++)
        keys[a] = study_axis(run->study, a);
    const struct ifl_points points = {study_n_points(run->study), n_axes, keys, run, get_point};
    snprintf(path, sizeof path, "%s/summary.csv", run->files.dir);
    const int rc = terminal ? ifl_print_summary(terminal, &points, &run->error)
                            : ifl_write_summary(path, &points, &run->error);
    free(keys);
    return rc;
}

static int write_reports(struct run *run)
{
    int rc = run_files_join(&run->files, &run->error);
    if (rc == 0)
        rc = write_summary(run, NULL);
    return rc == 0 ? run_files_write_config(&run->files, &run->error) : rc;
}

static void say(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "note: %s\n", text);
}

static void draw_figures(const struct run *run)
{
    struct ifl_error error;
    char script_dir[512];
    const char *const dirs[] = {run->files.dir};
    const struct ifl_plot_options options = {
        .n_runs = 1,
        .run_dirs = dirs,
        .drawing = {.out_dir = run->files.dir, .script_dir = script_dir, .columns = 1},
        .say = run->quiet ? NULL : say,
    };
    if (!study_first(run->study)->output.plots)
        return;
    if (data_path("reports/plot", script_dir) < 0)
        fprintf(stderr, "note: no figures: the plot scripts are not installed\n");
    else if (ifl_plot(&options, &error) < 0)
        fprintf(stderr, "note: no figures: %s\n", error.text);
}

/* What the points' records add up to. */
struct outcome {
    size_t n_failed, first_failed;
    struct ifl_error first_error;
    double read_s, simulate_s, write_s;
    unsigned long long n_steps, n_repeats, n_requests;
};

static void add_up(const struct run *run, struct outcome *outcome)
{
    *outcome = (struct outcome){0};
    for (size_t p = 0; p < study_n_points(run->study); p++) {
        struct point_record record;
        if (!parts_get(&run->files.parts, p, &record))
            continue;
        const struct point_result *r = &record.result;
        outcome->read_s += r->read_s;
        outcome->simulate_s += r->simulate_s;
        outcome->write_s += r->write_s;
        outcome->n_steps += r->n_plans + r->n_repeats;
        outcome->n_repeats += r->n_repeats;
        outcome->n_requests += r->summary.n_requests;
        if (record.error.code && outcome->n_failed++ == 0) {
            outcome->first_failed = p;
            outcome->first_error = record.error;
        }
    }
}

static void print_timing(const struct outcome *outcome)
{
    const double total_s = outcome->read_s + outcome->simulate_s + outcome->write_s;
    fprintf(stderr,
            "timing: read %.3f s, simulate %.3f s, write %.3f s; %llu requests, %.0f a second; "
            "%llu steps, %llu of them repeated without a plan\n",
            outcome->read_s, outcome->simulate_s, outcome->write_s, outcome->n_requests,
            (double)outcome->n_requests / total_s, outcome->n_steps, outcome->n_repeats);
}

static int fail_some(struct run *run, const struct outcome *outcome)
{
    char *label = label_point(run, outcome->first_failed), why[512];
    error_print(&outcome->first_error, why, sizeof why);
    const int rc =
        ifl_fail(&run->error, IFL_E_POLICY,
                 "%zu of %zu points failed, the first is point %zu (%.200s): %s", outcome->n_failed,
                 study_n_points(run->study), outcome->first_failed, label ? label : "", why);
    free(label);
    return rc;
}

/* Rank 0, when all points are done with. */
static int finish(struct run *run)
{
    struct outcome outcome;
    add_up(run, &outcome);
    if (outcome.n_failed == study_n_points(run->study)) {
        run->error = outcome.first_error;
        parts_remove(&run->files.parts);
        return run->error.code;
    }
    int rc = write_reports(run);
    if (rc == 0 && !run->quiet)
        rc = write_summary(run, stdout);
    if (rc < 0)
        return rc;
    parts_remove(&run->files.parts);
    if (run->timing)
        print_timing(&outcome);
    draw_figures(run);
    return outcome.n_failed ? fail_some(run, &outcome) : 0;
}

/* ---- the study ---- */

/* What a broken study leaves for --resume. */
static int salvage(struct run *run)
{
    const bool kept = study_n_points(run->study) > 1 && parts_keep(&run->files.parts);
    if (!kept)
        parts_remove(&run->files.parts);
    else if (run->error.code == IFL_E_INTERRUPTED)
        snprintf(run->error.text, sizeof run->error.text,
                 "interrupted; the same command with --resume does the rest");
    return run->error.code;
}

static int run_study(struct run *run)
{
    const bool first = ranks_own() == 0;
    int rc = run_files_init(&run->files, run->study, run->out_dir, &run->error);
    bool whole = rc == 0 && run->resume && run_files_whole(&run->files);
    rc = ranks_agree(rc, &run->error);
    if (rc < 0)
        return rc;
    if (first && whole && !run->quiet)
        fprintf(stderr, "note: %s is whole, there is nothing to resume\n", run->files.dir);
    if (whole)
        return 0;
    rc = first ? run_files_open(&run->files, run->resume, &run->error) : 0;
    rc = ranks_agree(rc, &run->error);
    if (rc < 0)
        return rc;
    run->crew.n_points = study_n_points(run->study);
    run->crew.n_threads = run->n_threads;
    run->crew.quiet = run->quiet;
    run->crew.context = run;
    run->crew.done = is_recorded;
    run->crew.fly = fly_and_record;
    rc = crew_work(&run->crew, &run->error);
    if (rc == 0 && first)
        rc = finish(run);
    rc = ranks_agree(rc, &run->error);
    return rc < 0 && first ? salvage(run) : rc;
}

static int load_plugins(const struct text_list *plugins, struct ifl_error *error)
{
    int rc = 0;
    for (size_t i = 0; i < plugins->n && rc == 0; i++)
        rc = registry_load_plugin(plugins->of[i], error);
    return rc;
}

/* Points that fly side by side would measure each other. */
static int check_jobs(struct run *run)
{
    if (!study_flies_engine(run->study) || (run->n_threads == 1 && ranks_n() == 1))
        return 0;
    if (run->n_threads > 1)
        return ifl_fail(&run->error, IFL_E_INPUT,
                        "--jobs is %lld, expected 1 where an engine flies in wall time",
                        run->n_threads);
    return ifl_fail(&run->error, IFL_E_INPUT,
                    "there are %d ranks, expected 1 where an engine flies in wall time", ranks_n());
}

static int load(struct run *run, const struct study_options *study, const struct text_list *plugins)
{
    int rc = load_plugins(plugins, &run->error);
    if (rc == 0)
        rc = study_load(study, &run->study, &run->error);
    if (rc == 0)
        rc = check_jobs(run);
    return ranks_agree(rc, &run->error);
}

int cli_run(int argc, char **argv)
{
    struct run run = {.n_threads = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct text_list configs = {0}, sets = {0}, plugins = {0};
    const struct option_spec options[] = {
        {"--set", NULL, OPTION_LIST, &sets},
        {"--plugin", NULL, OPTION_LIST, &plugins},
        {"--output", "-o", OPTION_TEXT, &run.out_dir},
        {"--jobs", "-j", OPTION_COUNT, &run.n_threads},
        {"--resume", NULL, OPTION_FLAG, &run.resume},
        {"--quiet", "-q", OPTION_FLAG, &run.quiet},
        {"--timing", NULL, OPTION_FLAG, &run.timing},
    };
    if (options_read("run", argc, argv, options, sizeof options / sizeof *options, &configs) < 0)
        return 2;
    if (run.n_threads < 1) {
        fprintf(stderr, "inflight run: -j 0: expected a whole number from 1 on\n");
        return 2;
    }
    if (configs.n != 1) {
        fprintf(stderr, "usage: inflight run CONFIG.yaml [--set path.to.key=value]... "
                        "[--plugin FILE.so]... [-o DIR] [-j N] [--resume] [--quiet] [--timing]\n");
        return 2;
    }
    const struct study_options study = {configs.of[0], sets.of, sets.n};
    int rc = ranks_join(&run.error);
    if (rc == 0)
        rc = load(&run, &study, &plugins);
    if (rc == 0)
        rc = run_study(&run);
    int exit_code = rc == 0 ? 0 : run.error.code == IFL_E_INPUT ? 2 : 1;
    if (rc < 0 && ranks_own() == 0)
        exit_code = cli_fail(&run.error); /* before anyone leaves: mpirun ends those that are left */
    ranks_leave();
    study_free(run.study);
    for (size_t i = 0; i < run.n_notes; i++)
        free(run.notes[i]);
    return exit_code;
}
