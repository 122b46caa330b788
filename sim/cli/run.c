/* inflight run: every point of a study, on as many threads as asked, and its reports. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/progress.h"
#include "cli/run_files.h"
#include "point.h"

struct run {
    const char *out_dir;
    long long n_threads;
    bool quiet, timing;
    struct study *study;
    size_t n_points;
    struct point_result *results;
    struct run_files files;
    /* shared by the workers */
    atomic_size_t next_point;
    atomic_ullong n_ended, n_requests, n_points_done;
    pthread_mutex_t lock;
    size_t failed_point; /* the lowest that failed */
    struct ifl_error error;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- workers ---- */

static void say(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "note: %s\n", text);
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

static int fly_point(struct run *run, size_t point, struct ifl_error *error)
{
    const bool speaks = point == 0 && !run->quiet;
    char *label = run->files.wanted[REPORT_TIMELINE] ? label_point(run, point) : NULL;
    struct point_options options = {
        .config = study_point(run->study, point),
        .point = (int32_t)point,
        .reports = run_files_of_point(&run->files, point),
        .notes = {speaks ? say : NULL, NULL},
        .stop = &stop,
        .n_ended = &run->n_ended,
        .n_requests = &run->n_requests,
    };
    options.reports.label = label;
    const int rc = point_fly(&options, &run->results[point], error);
    free(label);
    return rc;
}

static void note_failure(struct run *run, size_t point, const struct ifl_error *error)
{
    pthread_mutex_lock(&run->lock);
    if (point < run->failed_point) {
        run->failed_point = point;
        run->error = *error;
    }
    pthread_mutex_unlock(&run->lock);
}

static void *work(void *context)
{
    struct run *run = context;
    size_t point;
    while ((point = atomic_fetch_add(&run->next_point, 1)) < run->n_points) {
        struct ifl_error error;
        if (fly_point(run, point, &error) < 0) {
            note_failure(run, point, &error);
            break;
        }
        atomic_fetch_add(&run->n_points_done, 1);
    }
    if (point >= run->n_points)
        return NULL;
    atomic_store(&run->next_point, run->n_points); /* a failure ends the run */
    return NULL;
}

static int fly_all(struct run *run)
{
    const size_t n =
        (size_t)run->n_threads < run->n_points ? (size_t)run->n_threads : run->n_points;
    pthread_t *threads = calloc(n + 1, sizeof *threads);
    struct progress progress = {.n_ended = &run->n_ended,
                                .n_requests = &run->n_requests,
                                .n_points_done = &run->n_points_done,
                                .n_points = run->n_points,
                                .quiet = run->quiet};
    size_t n_started = 0;
    if (!threads)
        return ifl_fail_nomem(&run->error);
    run->failed_point = run->n_points;
    progress_start(&progress);
    while (n_started < n && pthread_create(&threads[n_started], NULL, work, run) == 0)
        n_started++;
    if (n_started == 0)
        work(run);
    for (size_t i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
    progress_stop(&progress);
    free(threads);
    return run->failed_point < run->n_points ? run->error.code : 0;
}

/* ---- reports ---- */

static int write_summary(struct run *run, bool to_terminal)
{
    const size_t n_axes = study_n_axes(run->study);
    const char **keys = calloc(n_axes + 1, sizeof *keys);
    const char **values = calloc(run->n_points * n_axes + 1, sizeof *values);
    struct ifl_summary *summaries = calloc(run->n_points, sizeof *summaries);
    int rc = keys && values && summaries ? 0 : ifl_fail_nomem(&run->error);
    for (size_t a = 0; rc == 0 && a < n_axes; a++)
        keys[a] = study_axis(run->study, a);
    for (size_t p = 0; rc == 0 && p < run->n_points; p++) {
        summaries[p] = run->results[p].summary;
        for (size_t a = 0; a < n_axes; a++)
            values[p * n_axes + a] = study_value(run->study, p, a);
    }
    if (rc == 0 && to_terminal)
        ifl_print_summary(stdout, run->n_points, n_axes, keys, values, summaries);
    else if (rc == 0)
        rc = ifl_write_summary(run->files.summary, run->n_points, n_axes, keys, values, summaries,
                               &run->error);
    free(keys);
    free(values);
    free(summaries);
    return rc;
}

static int write_reports(struct run *run)
{
    int rc = run_files_join(&run->files, &run->error);
    if (rc == 0)
        rc = write_summary(run, false);
    if (rc == 0)
        rc = run_files_write_config(&run->files, run->study, &run->error);
    return rc;
}

static void draw_figures(const struct run *run)
{
    struct ifl_error error;
    char script_dir[512];
    const char *const dirs[] = {run->files.dir};
    if (!study_point(run->study, 0)->output.plots)
        return;
    if (data_path("reports", script_dir) < 0 ||
        ifl_plot(1, dirs, run->files.dir, script_dir, run->quiet ? NULL : say, NULL, &error) < 0)
        fprintf(stderr, "note: no figures: %s\n", error.text);
}

static void print_timing(const struct run *run)
{
    double read_s = 0, simulate_s = 0, write_s = 0;
    unsigned long long n_steps = 0, n_repeats = 0, n_requests = 0;
    for (size_t p = 0; p < run->n_points; p++) {
        const struct point_result *r = &run->results[p];
        read_s += r->read_s;
        simulate_s += r->simulate_s;
        write_s += r->write_s;
        n_steps += r->n_plans + r->n_repeats;
        n_repeats += r->n_repeats;
        n_requests += r->summary.n_requests;
    }
    const double total_s = read_s + simulate_s + write_s;
    fprintf(stderr,
            "timing: read %.3f s, simulate %.3f s, write %.3f s; %llu requests, %.0f a second; "
            "%llu steps, %llu of them repeated without a plan\n",
            read_s, simulate_s, write_s, n_requests, (double)n_requests / total_s, n_steps,
            n_repeats);
}

/* The arithmetic behind a computed KV pool, once for each distinct one. */
static void explain_pool(const struct run *run)
{
    char text[1024], last[1024] = "";
    struct ifl_limits limits;
    struct ifl_error error;
    for (size_t p = 0; p < run->n_points; p++) {
        if (point_limits(study_point(run->study, p), &limits, text, sizeof text, &error) < 0)
            return; /* the point itself will say so */
        if (text[0] && strcmp(text, last) != 0)
            fprintf(stderr, "note: %s\n", text);
        memcpy(last, text, sizeof last);
    }
}

static int run_study(struct run *run)
{
    run->n_points = study_n_points(run->study);
    run->results = calloc(run->n_points, sizeof *run->results);
    if (!run->results)
        return ifl_fail_nomem(&run->error);
    const struct config *first = study_point(run->study, 0);
    int rc = run_files_open(&run->files, run->out_dir ? run->out_dir : first->output.dir,
                            run->n_points, &first->output, &run->error);
    if (rc < 0)
        return rc;
    if (!run->quiet)
        explain_pool(run);
    catch_signals();
    rc = fly_all(run);
    if (rc == 0)
        rc = write_reports(run);
    if (rc < 0)
        return rc;
    if (!run->quiet)
        write_summary(run, true);
    if (run->timing)
        print_timing(run);
    draw_figures(run);
    return 0;
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
    for (size_t p = 0; run->n_threads > 1 && p < study_n_points(run->study); p++)
        if (study_point(run->study, p)->executor != EXECUTOR_SIM)
            return ifl_fail(&run->error, IFL_E_INPUT,
                            "--jobs is %lld, expected 1 where an engine flies in wall time",
                            run->n_threads);
    return 0;
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
                        "[--plugin FILE.so]... [-o DIR] [-j N] [--quiet] [--timing]\n");
        return 2;
    }
    const struct study_options study = {configs.of[0], sets.of, sets.n};
    int rc = load_plugins(&plugins, &run.error);
    if (rc == 0)
        rc = study_load(&study, &run.study, &run.error);
    if (rc == 0)
        rc = check_jobs(&run);
    if (rc == 0)
        rc = run_study(&run);
    run_files_close(&run.files);
    study_free(run.study);
    free(run.results);
    return rc < 0 ? cli_fail(&run.error) : 0;
}
