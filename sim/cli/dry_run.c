#include "cli/dry_run.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inflight/minmax.h"

#include "cli/interrupt.h"
#include "cli/ranks.h"
#include "cli/terminal.h"
#include "config/check_router.h"
#include "config/key_docs.h"
#include "config/layers.h"
#include "run/capacity.h"
#include "run/point.h"

/* Parts of so many points are flown, for so long together. */
enum { MOST_SAMPLES = 8, SAMPLES_MS = 800, MOST_TOLD = 16, USUAL_TRIALS = 10 };

struct rehearsal {
    struct launch *launch;
    bool searches;
    int columns;
    struct trace_shelf traces;
    struct profile_shelf profiles;
    char *told[MOST_TOLD];
    size_t n_told;
};

static void put_head(const char *title, const char *text, int columns)
{
    printf("%s%-10s%s", terminal_style(stdout, STYLE_NAME), title,
           terminal_style(stdout, STYLE_NONE));
    terminal_wrap(stdout, text, 10, 10, columns);
}

/* ---- the points ---- */

static void put_axis(const struct study *study, size_t a, int columns)
{
    const size_t n_points = study_n_points(study);
    char *text = NULL;
    size_t n_bytes;
    FILE *out = open_memstream(&text, &n_bytes);
    if (!out)
        return;
    fprintf(out, "%s:", study_axis(study, a));
    for (size_t p = 0; p < n_points; p++) {
        const char *value = study_value(study, p, a);
        size_t earlier = 0;
        while (earlier < p && strcmp(study_value(study, earlier, a), value) != 0)
            earlier++;
        if (earlier == p)
            fprintf(out, " %s", value);
    }
    if (fclose(out) == 0)
        put_head("", text, columns);
    free(text);
}

static void put_points(const struct rehearsal *of)
{
    const struct study *study = of->launch->study;
    const size_t n = study_n_points(study), n_replications = study_n_replications(study);
    char text[256];
    put_head("config", of->launch->config_path, of->columns);
    snprintf(text, sizeof text, "%zu", of->searches ? n / n_replications : n);
    put_head(of->searches ? "searches" : "points", text, of->columns);
    for (size_t a = 0; a < study_n_axes(study); a++)
        put_axis(study, a, of->columns);
    fflush(stdout);
}

/* ---- what their flights rest on ---- */

/* `pool` of the point's pools: its own configuration where the point has none. */
static void describe_machine(FILE *out, const struct config *point, size_t pool,
                             const struct machine *machine)
{
    const struct config *config = config_of_pool(point, pool);
    const struct deployment *deployment = &machine->platform.deployment;
    if (point->n_pools > 0)
        fprintf(out, "%s: ", point->pools[pool].name);
    if (machine->has_model)
        fprintf(out, "%s on %d x %s", machine->model.name, config_pool_gpus(point, pool),
                machine->has_hardware ? machine->platform.hardware.name : "no hardware");
    else
        fprintf(out, "no model");
    if (machine->has_hardware)
        fprintf(out, "; deployment %s", deployment->name);
    fprintf(out, "; requests of %s", config->workload.trace);
}

static bool was_told(struct rehearsal *of, const char *text)
{
    for (size_t i = 0; i < of->n_told; i++)
        if (strcmp(of->told[i], text) == 0)
            return true;
    if (of->n_told < MOST_TOLD && (of->told[of->n_told] = strdup(text)))
        of->n_told++;
    return false;
}

static void tell(struct rehearsal *of, size_t point, const char *title, const char *text)
{
    char line[4096];
    if (!*text || of->n_told == MOST_TOLD || was_told(of, text))
        return;
    char *label = point > 0 ? launch_label(of->launch, point) : NULL;
    snprintf(line, sizeof line, "%s%s%s%s", text, label ? " (from " : "", label ? label : "",
             label ? " on)" : "");
    put_head(title, line, of->columns);
    free(label);
}

static int tell_of_pool(struct rehearsal *of, size_t point, const struct config *all, size_t pool,
                        struct ifl_error *error)
{
    const struct config *config = config_of_pool(all, pool);
    struct machine *machine = malloc(sizeof *machine);
    struct ifl_summary summary = {0};
    struct ifl_limits limits = {0};
    char text[MACHINE_TEXT_BYTES], arithmetic[MACHINE_TEXT_BYTES], sentence[2048] = "";
    if (!machine)
        return ifl_fail_nomem(error);
    int rc = machine_load(machine, config, &of->profiles, error);
    if (rc == 0)
        rc = machine_size_pool(machine, config, &limits, arithmetic, error);
    FILE *out = rc == 0 ? fmemopen(sentence, sizeof sentence, "w") : NULL;
    if (out) {
        describe_machine(out, all, pool, machine);
        fclose(out);
        tell(of, point, "machine", sentence);
        snprintf(sentence, sizeof sentence, "%d of %d tokens%s%s", limits.n_blocks,
                 limits.block_tokens, *arithmetic ? ": " : "", arithmetic);
        tell(of, point, "blocks", sentence);
        machine_unused_costs(config, text);
        tell(of, point, "unused", text);
        machine_disclose(machine, config, limits.max_model_tokens, &summary);
        tell(of, point, "assumed", summary.assumed);
    }
    free(machine);
    return rc;
}

static int tell_of_all(struct rehearsal *of, struct ifl_error *error)
{
    struct config config;
    char unused[MACHINE_TEXT_BYTES];
    int rc = 0;
    for (size_t p = 0; rc == 0 && p < study_n_points(of->launch->study); p++) {
        rc = study_read(of->launch->study, p, &config, error);
        if (rc < 0)
            break;
        for (size_t i = 0; rc == 0 && i < config_n_pools(&config); i++)
            if (config_pool_gpus(&config, i) > 0)
                rc = tell_of_pool(of, p, &config, i, error);
        router_unused(&config, unused, sizeof unused);
        tell(of, p, "unused", unused);
        config_finish(&config);
    }
    if (of->n_told == MOST_TOLD)
        put_head("", "... and the assumptions of further points", of->columns);
    return rc;
}

/* ---- defaults ---- */

struct open_keys {
    const struct node *root;
    const struct config *config;
    bool searches;
    FILE *out;
    size_t n;
};

static bool begins(const char *key, const char *section)
{
    return strncmp(key, section, strlen(section)) == 0;
}

/* Keys of another command, another executor or another cost model say nothing here. */
static bool is_of_use(const struct open_keys *keys, const char *key)
{
    const struct cost_config *cost = &keys->config->cost;
    return !(
        begins(key, "deployment") || begins(key, "output.") || begins(key, "sweep") ||
        (begins(key, "capacity.") && !keys->searches) ||
        (begins(key, "engine.") && keys->config->executor == EXECUTOR_SIM) ||
        (begins(key, "cost.") && strcmp(key, "cost.model") != 0 && cost->model == COST_ROOFLINE));
}

static void put_open(void *context, const struct key_doc *doc)
{
    struct open_keys *keys = context;
    if (is_of_use(keys, doc->key) && config_leaves(keys->root, doc))
        fprintf(keys->out, "%s%s=%s", keys->n++ ? ", " : "", doc->key, doc->dflt);
}

static int put_defaults(const struct rehearsal *of, struct ifl_error *error)
{
    struct node *root;
    char *text = NULL;
    size_t n_bytes;
    int rc = study_layers(of->launch->study, 0, &root, error);
    FILE *out = rc == 0 ? open_memstream(&text, &n_bytes) : NULL;
    if (out) {
        struct open_keys keys = {root, study_first(of->launch->study), of->searches, out, 0};
        config_each_key(put_open, &keys);
        if (fclose(out) == 0)
            put_head("defaults", text, of->columns);
        free(text);
    }
    tree_free(root);
    return rc;
}

/* ---- what it takes ---- */

struct sample {
    atomic_ullong n_requests;
    unsigned long long n_heard;
    struct timespec until;
    volatile sig_atomic_t stop;
};

static bool is_past(const struct timespec *when)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec != when->tv_sec ? now.tv_sec > when->tv_sec : now.tv_nsec > when->tv_nsec;
}

static void hear(void *context, const struct ifl_request_record *record)
{
    struct sample *sample = context;
    (void)record;
    sample->n_heard++;
    if (interrupt_asked || is_past(&sample->until))
        sample->stop = 1;
}

/* Flights of a point: of the ensemble, and again without the warm-up. */
static double n_flights(const struct config *config)
{
    return (1.0 + config->cost.ensemble) * (config->steady_state ? 2 : 1);
}

/* Seconds that the whole point takes, from its first requests. */
static int time_point(struct rehearsal *of, size_t point, long budget_ms, double *whole_s,
                      struct ifl_error *error)
{
    struct config config;
    struct sample sample = {.n_requests = 0};
    struct point_result result = {0};
    if (study_read(of->launch->study, point, &config, error) < 0)
        return error->code;
    const double n = n_flights(&config);
    config.steady_state = false;
    const struct point_options options = {
        .config = &config,
        .point = (int32_t)point,
        .reports = {.on_request = hear, .on_request_context = &sample},
        .traces = &of->traces,
        .profiles = &of->profiles,
        .stop = &sample.stop,
        .n_requests = &sample.n_requests,
    };
    clock_gettime(CLOCK_MONOTONIC, &sample.until);
    sample.until.tv_nsec += budget_ms * 1000000;
    sample.until.tv_sec += sample.until.tv_nsec / 1000000000;
    sample.until.tv_nsec %= 1000000000;
    int rc = point_fly(&options, &result, error);
    if (rc == IFL_E_INTERRUPTED && !interrupt_asked)
        rc = 0;
    const double share =
        sample.n_heard ? (double)sample.n_heard / (double)atomic_load(&sample.n_requests) : 1;
    *whole_s = n * (result.simulate_s + result.write_s) / share;
    config_finish(&config);
    return rc;
}

static void put_cost(const struct rehearsal *of, const double *taken_s, size_t n_samples)
{
    const struct study *study = of->launch->study;
    const size_t n_points = study_n_points(study);
    double least_s = taken_s[0], most_s = taken_s[0], sum_s = 0;
    char text[512];
    for (size_t i = 0; i < n_samples; i++) {
        least_s = fmin(least_s, taken_s[i]);
        most_s = fmax(most_s, taken_s[i]);
        sum_s += taken_s[i];
    }
    const double all_s = sum_s / (double)n_samples * (double)n_points;
    if (of->searches)
        snprintf(text, sizeof text,
                 "about %.2g s of processor time for a trial of each search; a search has about "
                 "%d trials, at most %d: about %.2g s in all",
                 all_s, USUAL_TRIALS, CAPACITY_MAX_TRIALS, all_s * USUAL_TRIALS);
    else
        snprintf(text, sizeof text,
                 "about %.2g s of processor time, without the files: %.2g to %.2g s a point, "
                 "from parts of %zu of %zu points",
                 all_s, least_s, most_s, n_samples, n_points);
    put_head("cost", text, of->columns);
}

static int estimate(struct rehearsal *of, struct ifl_error *error)
{
    const size_t n_points = study_n_points(of->launch->study);
    const size_t n = ifl_min(n_points, (size_t)MOST_SAMPLES);
    double taken_s[MOST_SAMPLES] = {0};
    if (study_any(of->launch->study).flies_engine) {
        put_head("cost",
                 "not estimated: an engine flies in wall time, as long as the arrivals last "
                 "or longer",
                 of->columns);
        return 0;
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = time_point(of, n == 1 ? 0 : i * (n_points - 1) / (n - 1), SAMPLES_MS / (long)n,
                        &taken_s[i], error);
    if (rc == 0)
        put_cost(of, taken_s, n);
    return rc;
}

int dry_run(struct launch *launch, bool searches)
{
    struct rehearsal of = {
        .launch = launch, .searches = searches, .columns = terminal_columns(stdout)};
    if (ranks_own() != 0)
        return 0;
    put_points(&of);
    interrupt_catch();
    trace_shelf_init(&of.traces, (struct ifl_notes){0});
    profile_shelf_init(&of.profiles);
    int rc = tell_of_all(&of, &launch->error);
    if (rc == 0)
        rc = put_defaults(&of, &launch->error);
    fflush(stdout);
    if (rc == 0)
        rc = estimate(&of, &launch->error);
    for (size_t i = 0; i < of.n_told; i++)
        free(of.told[i]);
    trace_shelf_finish(&of.traces);
    profile_shelf_finish(&of.profiles);
    return rc;
}
