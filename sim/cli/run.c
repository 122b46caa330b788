/* inflight run: simulates every point of a study, on as many threads and ranks as there are, and
 * writes its reports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/data.h"
#include "cli/commands.h"
#include "cli/crew.h"
#include "cli/dry_run.h"
#include "cli/interrupt.h"
#include "cli/launch.h"
#include "cli/ranks.h"
#include "cli/resume.h"
#include "cli/run_files.h"
#include "cli/saturation.h"
#include "run/point.h"

struct run {
    struct launch launch;
    struct run_files files;
    struct crew crew;
    struct trace_shelf traces;
    struct profile_shelf profiles;
};

/* ---- a point ---- */

static struct ifl_notes notes_of(struct run *run)
{
    return (struct ifl_notes){launch_speaks(&run->launch) ? launch_say : NULL, &run->launch};
}

static int fly_point(struct run *run, size_t point, struct input_sums *inputs,
                     struct point_result *result, struct ifl_error *error)
{
    char paths[N_REPORTS][IFL_PATH_BYTES];
    struct config config;
    if (study_read(run->launch.study, point, &config, error) < 0)
        return error->code;
    char *label = run->files.wanted[REPORT_TIMELINE] ? launch_label(&run->launch, point) : NULL;
    struct point_options options = {
        .config = &config,
        .point = (int32_t)point,
        .reports = run_files_of_point(&run->files, point, paths),
        .traces = &run->traces,
        .profiles = &run->profiles,
        .is_last = point + 1 == study_n_points(run->launch.study),
        .notes = notes_of(run),
        .stop = &interrupt_asked,
        .n_ended = &run->crew.n_ended,
        .n_requests = &run->crew.n_begun,
    };
    options.reports.label = label;
    options.speculation_path =
        run->files.wanted[REPORT_SPECULATION] ? paths[REPORT_SPECULATION] : NULL;
    options.intervals_path = run->files.wanted[REPORT_INTERVALS] ? paths[REPORT_INTERVALS] : NULL;
    /* Sums are taken before the inputs are read: --resume notices a change in between. */
    int rc = run_files_resumable(&run->files)
                 ? inputs_sum(&run->launch.inputs, &config, inputs, error)
                 : 0;
    if (rc == 0)
        rc = point_fly(&options, result, error);
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
    struct input_sums inputs = {0};
    memset(&record, 0, sizeof record); /* its padding is written too */
    if (fly_point(run, point, &inputs, &record.result, error) < 0) {
        if (concerns_all(error->code))
            return error->code;
        record.error = *error;
    }
    const int rc = run_files_put(&run->files, point, &inputs, &record, error);
    return rc == 0 && ranks_own() == 0 ? run_files_join(&run->files, error) : rc;
}

static bool is_recorded(void *context, size_t point)
{
    struct run *run = context;
    struct point_record record;
    return run->launch.resume && run_files_get(&run->files, point, &record);
}

/* ---- reports ---- */

static int get_point(void *context, size_t point, const char **values, struct ifl_summary *summary,
                     struct ifl_error *error)
{
    const struct run *run = context;
    struct point_record record;
    for (size_t a = 0; values && a < study_n_axes(run->launch.study); a++)
        values[a] = study_value(run->launch.study, point, a);
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

/* The terminal shows one row for all replications. */
static int print_table(struct run *run, const struct ifl_points *points)
{
    struct ifl_replications of = {points, study_n_replications(run->launch.study)};
    const struct ifl_points means = {points->n_points / of.n, points->n_keys - 1, points->keys, &of,
                                     ifl_mean_of_runs};
    if (of.n == 1)
        return ifl_print_summary(stdout, points, &run->launch.error);
    const int rc = ifl_print_summary(stdout, &means, &run->launch.error);
    if (rc == 0)
        printf("means of %zu replications; replications.csv has their intervals\n", of.n);
    return rc;
}

static int write_tables(struct run *run, const struct ifl_points *points)
{
    const struct ifl_replications of = {points, study_n_replications(run->launch.study)};
    char path[IFL_PATH_BYTES];
    snprintf(path, sizeof path, "%s/summary.csv", run->files.dir);
    if (ifl_write_summary(path, points, &run->launch.error) < 0)
        return run->launch.error.code;
    snprintf(path, sizeof path, "%s/replications.csv", run->files.dir);
    if (of.n > 1)
        return ifl_write_replications(path, &of, &run->launch.error);
    remove(path); /* of an earlier run */
    return 0;
}

static int explain_saturation(struct run *run, const struct ifl_points *points)
{
    const struct ifl_notes notes = notes_of(run);
    return notes.say ? saturation_explain(points, &notes, &run->launch.error) : 0;
}

static int with_points(struct run *run,
                       int (*use)(struct run *run, const struct ifl_points *points))
{
    const size_t n_axes = study_n_axes(run->launch.study);
    const char **keys = calloc(n_axes + 1, sizeof *keys);
    if (!keys)
        return ifl_fail_nomem(&run->launch.error);
    for (size_t a = 0; a < n_axes; a++)
        keys[a] = study_axis(run->launch.study, a);
    const struct ifl_points points = {study_n_points(run->launch.study), n_axes, keys, run,
                                      get_point};
    const int rc = use(run, &points);
    free(keys);
    return rc;
}

static int write_reports(struct run *run)
{
    int rc = run_files_close(&run->files, &run->launch.error);
    if (rc == 0)
        rc = with_points(run, write_tables);
    return rc == 0 ? run_files_write_config(&run->files, &run->launch.error) : rc;
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
        .say = run->launch.quiet ? NULL : cli_note,
    };
    if (!study_first(run->launch.study)->output.plots)
        return;
    if (data_plot_scripts(script_dir, &error) < 0 || ifl_plot(&options, &error) < 0)
        fprintf(stderr, "note: no figures: %s\n", error.text);
}

/* Sums over the points' records. */
struct outcome {
    size_t n_failed, first_failed;
    struct ifl_error first_error;
    double read_s, simulate_s, write_s;
    unsigned long long n_steps, n_repeats, n_requests;
};

static void add_up(const struct run *run, struct outcome *outcome)
{
    *outcome = (struct outcome){0};
    for (size_t p = 0; p < study_n_points(run->launch.study); p++) {
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
    char *label = launch_label(&run->launch, outcome->first_failed), why[512];
    error_print(&outcome->first_error, why, sizeof why);
    const int rc =
        ifl_fail(&run->launch.error, IFL_E_POLICY,
                 "%zu of %zu points failed, the first is point %zu (%.200s): %s", outcome->n_failed,
                 study_n_points(run->launch.study), outcome->first_failed, label ? label : "", why);
    free(label);
    return rc;
}

static int print_plot(struct run *run)
{
    const char *const dirs[] = {run->files.dir};
    return ifl_plot_terminal(stdout, 1, dirs, CLI_PLOTTED, &run->launch.error);
}

/* Rank 0, when all points are done with. */
static int finish(struct run *run)
{
    struct outcome outcome;
    add_up(run, &outcome);
    if (outcome.n_failed == study_n_points(run->launch.study)) {
        run->launch.error = outcome.first_error;
        parts_remove(&run->files.parts);
        return run->launch.error.code;
    }
    int rc = write_reports(run);
    if (rc == 0 && !run->launch.quiet)
        rc = with_points(run, print_table);
    if (rc == 0)
        rc = with_points(run, explain_saturation);
    if (rc == 0 && run->launch.plot)
        rc = print_plot(run);
    if (rc < 0)
        return rc;
    parts_remove(&run->files.parts);
    if (run->launch.timing)
        print_timing(&outcome);
    draw_figures(run);
    return outcome.n_failed ? fail_some(run, &outcome) : 0;
}

/* ---- the study ---- */

static int run_study(struct run *run)
{
    const bool first = ranks_own() == 0;
    const struct ifl_notes notes = notes_of(run);
    int rc = run_files_init(&run->files, run->launch.study, &run->launch.inputs,
                            run->launch.out_dir, &run->launch.error);
    bool whole = rc == 0 && run->launch.resume && resume_is_whole(&run->files, &notes);
    rc = ranks_agree(rc, &run->launch.error);
    if (rc < 0)
        return rc;
    if (first && whole && !run->launch.quiet)
        fprintf(stderr, "note: %s is complete, there is nothing to resume\n", run->files.dir);
    if (whole && first)
        run_files_clear_lock(&run->files);
    if (whole)
        return 0;
    rc = first ? run_files_open(&run->files, run->launch.resume, &notes, &run->launch.error) : 0;
    rc = ranks_agree(rc, &run->launch.error);
    if (rc < 0)
        return rc;
    run->crew.n_points = study_n_points(run->launch.study);
    if (run->crew.n_points == 1 && study_first(run->launch.study)->cost.ensemble == 0)
        array_map_large();
    run->crew.n_threads = run->launch.n_threads;
    run->crew.quiet = run->launch.quiet;
    run->crew.context = run;
    run->crew.done = is_recorded;
    run->crew.fly = fly_and_record;
    trace_shelf_init(&run->traces, notes_of(run));
    profile_shelf_init(&run->profiles);
    rc = crew_work(&run->crew, &run->launch.error);
    trace_shelf_finish(&run->traces);
    profile_shelf_finish(&run->profiles);
    if (rc == 0 && first)
        rc = finish(run);
    rc = ranks_agree(rc, &run->launch.error);
    if (rc < 0 && first)
        parts_salvage(&run->files.parts, run->crew.n_points, &run->launch.error);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct run run = {0};
    if (launch_read(&run.launch, &command_run, argc, argv) < 0)
        return 2;
    int rc = launch_load(&run.launch);
    if (rc == 0 && run.launch.dry_run)
        rc = dry_run(&run.launch, false);
    else if (rc == 0)
        rc = run_study(&run);
    run_files_finish(&run.files);
    return launch_end(&run.launch, rc);
}

static const struct option_spec options[] = {
    LAUNCH_OPTIONS,
    LAUNCH_OPTION("--plot", NULL, FLAG, plot, NULL,
                  "draw the latency against the rate, for a terminal of 80 columns",
                  COMPLETE_NOTHING),
};

const struct command command_run = {
    .name = "run",
    .doc = "run a configuration: every point of its sweep",
    .arguments = "CONFIG.yaml",
    .example = "inflight run quickstart --set serving.preset=sarathi -o results/quickstart",
    .notes = "-j N runs points on N threads, mpirun on many machines; the reports have the same "
             "bytes. `inflight list keys` lists every key.",
    .completion = COMPLETE_CONFIG,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
