/* inflight capacity: the highest rate that each deployment of a sweep serves within its objectives.
 */
#include <gsl/gsl_errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/new_file.h"
#include "cli/capacity_cells.h"
#include "cli/capacity_check.h"
#include "cli/capacity_files.h"
#include "cli/capacity_plan.h"
#include "cli/commands.h"
#include "cli/crew.h"
#include "cli/dry_run.h"
#include "cli/interrupt.h"
#include "cli/launch.h"
#include "cli/placement_files.h"
#include "cli/ranks.h"
#include "cli/run_files.h"

struct quest {
    struct launch launch;
    struct run_files files;
    struct crew crew;
    struct capacity_trials trials;
    struct trace_shelf traces;
    struct profile_shelf profiles;
    size_t n_rows, n_members; /* members of the ensemble that each row is searched for */
};

/* The record of a deployment that is done with; parts.record_bytes long. */
struct record {
    struct ifl_error error;
    struct capacity capacity;
    struct replica_cost cost;
    double target_rps;
    int32_t n_gpus; /* of all pools as configured */
    double usd_per_hour;
    struct capacity_member members[]; /* [n_members] */
};

static struct record *new_record(const struct quest *quest)
{
    return calloc(1, quest->files.parts.record_bytes);
}

/* ---- a search ---- */

/* The profile's, where the configuration has none. */
static int look_up_watts(struct quest *quest, const struct config *config,
                         struct replica_cost *cost, struct ifl_error *error)
{
    struct platform platform = {.hardware.gpu.tdp_w = 0};
    cost->watts_per_gpu = gpu_rate_of(&config->capacity.watts_per_gpu, config->hardware);
    if (!isnan(cost->watts_per_gpu) || !config->hardware[0])
        return 0;
    const int rc = profile_shelf_hardware(&quest->profiles, config->hardware, &platform, error);
    cost->is_tdp = platform.hardware.gpu.tdp_w > 0;
    if (cost->is_tdp)
        cost->watts_per_gpu = platform.hardware.gpu.tdp_w;
    return rc;
}

static int price(struct quest *quest, const struct config *config, struct record *record,
                 struct ifl_error *error)
{
    struct replica_cost *cost = &record->cost;
    *cost = (struct replica_cost){
        .n_gpus = config->tensor_parallel * config->pipeline_parallel * config->data_parallel,
        .usd_per_gpu_hour = gpu_rate_of(&config->capacity.usd_per_gpu_hour, config->hardware)};
    record->target_rps = config->capacity.target_rps;
    record->n_gpus = 0;
    record->usd_per_hour = 0;
    for (size_t i = 0; i < config_n_pools(config); i++) {
        const int32_t n_gpus = config_pool_gpus(config, i);
        record->n_gpus += n_gpus;
        if (n_gpus > 0)
            record->usd_per_hour += n_gpus * gpu_rate_of(&config->capacity.usd_per_gpu_hour,
                                                         config_of_pool(config, i)->hardware);
    }
    return record->target_rps > 0 ? look_up_watts(quest, config, cost, error) : 0;
}

/* The configurations of a row's replications; *n_read of them need config_finish. */
static int read_row(const struct study *study, size_t row, struct config *configs, size_t *n_read,
                    struct ifl_error *error)
{
    const size_t n = study_n_replications(study);
    for (*n_read = 0; *n_read < n; ++*n_read)
        if (study_read(study, row * n + *n_read, &configs[*n_read], error) < 0)
            return error->code;
    return capacity_check(&configs[0], error);
}

/* Threads of each search: more than one only where there are fewer searches than threads. */
static size_t threads_of_a_search(const struct quest *quest)
{
    const size_t n = (size_t)quest->launch.n_threads;
    return n > quest->n_rows ? n / quest->n_rows : 1;
}

static int search(struct quest *quest, size_t row, struct input_sums *inputs, struct record *record,
                  struct ifl_error *error)
{
    const struct study *study = quest->launch.study;
    const size_t n = study_n_replications(study);
    struct config *configs = calloc(n, sizeof *configs);
    size_t n_read = 0;
    if (!configs)
        return ifl_fail_nomem(error);
    int rc = read_row(study, row, configs, &n_read, error);
    if (rc == 0)
        rc = inputs_sum(&quest->launch.inputs, &configs[0], inputs, error);
    if (rc == 0) {
        const struct capacity_options options = {.configs = configs,
                                                 .n_replications = n,
                                                 .members = record->members,
                                                 .n_threads = threads_of_a_search(quest),
                                                 .traces = &quest->traces,
                                                 .profiles = &quest->profiles,
                                                 .stop = &interrupt_asked,
                                                 .n_ended = &quest->crew.n_ended,
                                                 .trials = &quest->trials};
        rc = price(quest, &configs[0], record, error);
        if (rc == 0)
            rc = capacity_find(&options, &record->capacity, error);
    }
    while (n_read > 0)
        config_finish(&configs[--n_read]);
    free(configs);
    return rc;
}

static int search_and_record(void *context, size_t row, struct ifl_error *error)
{
    struct quest *quest = context;
    struct record *record = new_record(quest);
    struct input_sums inputs = {0};
    if (!record)
        return ifl_fail_nomem(error);
    int rc = search(quest, row, &inputs, record, error);
    if (rc < 0 && rc != IFL_E_IO && rc != IFL_E_INTERRUPTED) {
        record->error = *error;
        rc = 0;
    }
    if (rc == 0)
        rc = parts_put(&quest->files.parts, row, &inputs, record, error);
    free(record);
    return rc;
}

/* The share of trials. A search that has not begun is taken to need as many as those that are done
 * have needed; before any is done, and before the only one knows what it searches between, how many
 * are left is not known. */
static double share_of_trials(void *context, size_t n_done, char text[80])
{
    struct quest *quest = context;
    const double n_flown = (double)atomic_load(&quest->trials.n_flown);
    const double n_closing = (double)atomic_load(&quest->trials.n_closing);
    const double n_open = (double)(quest->n_rows - n_done) - n_closing;
    double n_left = (double)atomic_load(&quest->trials.n_left);
    snprintf(text, 80, "%.0f trials, ", n_flown);
    if (n_open > 0 && n_done == 0)
        return (double)NAN;
    if (n_open > 0)
        n_left += n_open * n_flown / (double)n_done;
    return n_flown > 0 ? n_flown / (n_flown + n_left) : (double)NAN;
}

static bool is_recorded(void *context, size_t row)
{
    struct quest *quest = context;
    struct record *record = quest->launch.resume ? new_record(quest) : NULL;
    const bool found = record && parts_get(&quest->files.parts, row, record);
    free(record);
    return found;
}

/* ---- reports ---- */

static void fill_row(const struct record *record, struct capacity_row *row)
{
    const struct capacity *found = &record->capacity;
    const double nan = (double)NAN;
    const struct ifl_interval none = {nan, nan};
    *row = (struct capacity_row){.error = record->error,
                                 .status = found->status,
                                 .rps = nan,
                                 .low_rps = nan,
                                 .high_rps = nan,
                                 .members_low_rps = nan,
                                 .members_high_rps = nan,
                                 .at = {.rate_rps = nan,
                                        .goodput_rps = none,
                                        .attainment_frac = none,
                                        .output_throughput_tok_per_s = none,
                                        .p90_ttft_s = none,
                                        .p99_ttft_s = none,
                                        .p99_itl_s = none,
                                        .p50_queue_s = none,
                                        .mean_queue_s = none},
                                 .n_trials = found->n_trials,
                                 .n_gpus = record->n_gpus,
                                 .usd_per_hour = record->usd_per_hour,
                                 .usd_per_mtok = nan};
    if (record->error.code)
        return;
    row->rps = found->rps;
    row->low_rps = found->low_rps;
    row->high_rps = found->high_rps;
    row->members_low_rps = found->members_low_rps;
    row->members_high_rps = found->members_high_rps;
    capacity_name_binding(found, row->binding, sizeof row->binding);
    if (found->status == CAPACITY_NONE)
        return;
    row->at = found->trials[found->at];
    memcpy(row->objectives, found->objectives, sizeof row->objectives);
    row->n_objectives = found->n_objectives;
    row->usd_per_mtok = row->usd_per_hour / (row->at.output_throughput_tok_per_s.mean * 3600) * 1e6;
}

/* A row a deployment: of its capacity, or of its plan for a target. */
struct answers {
    struct capacity_row *rates;
    struct plan_row *plans;
    struct choices choices; /* of a placement */
};

static bool has_target(const struct quest *quest)
{
    return study_first(quest->launch.study)->capacity.target_rps > 0;
}

static void fill(const struct quest *quest, const struct record *record, size_t row,
                 struct answers *answers)
{
    if (!has_target(quest))
        fill_row(record, &answers->rates[row]);
    else
        plan_fill(&record->capacity, &record->cost, record->target_rps, &answers->plans[row]);
    if (has_target(quest))
        answers->plans[row].error = record->error;
}

static int get_record(struct quest *quest, size_t row, struct record *record)
{
    return parts_get(&quest->files.parts, row, record)
               ? 0
               : ifl_fail(&quest->launch.error, IFL_E_IO, "%s: the record of row %zu is gone",
                          quest->files.parts.dir, row);
}

static int gather(struct quest *quest, struct answers *answers)
{
    struct record *record = new_record(quest);
    int rc = record ? 0 : ifl_fail_nomem(&quest->launch.error);
    for (size_t i = 0; i < quest->n_rows && rc == 0; i++)
        if ((rc = get_record(quest, i, record)) == 0)
            fill(quest, record, i, answers);
    free(record);
    return rc;
}

/* The trials of each row, and its members if there are any. */
static int list_searches(struct quest *quest, FILE *trials, FILE *members)
{
    const struct study *study = quest->launch.study;
    struct record *record = new_record(quest);
    int rc = record ? 0 : ifl_fail_nomem(&quest->launch.error);
    if (rc == 0)
        capacity_write_trial_head(trials, study);
    if (rc == 0 && members)
        capacity_write_member_head(members, study);
    for (size_t i = 0; i < quest->n_rows && rc == 0; i++) {
        if ((rc = get_record(quest, i, record)) < 0)
            break;
        capacity_write_trials(trials, study, i, &record->capacity);
        if (members)
            capacity_write_members(members, study, i, record->members, record->capacity.n_members);
    }
    free(record);
    return rc;
}

static const struct ifl_error *error_of(const struct quest *quest, const struct answers *answers,
                                        size_t row)
{
    return has_target(quest) ? &answers->plans[row].error : &answers->rates[row].error;
}

static size_t count_failed(const struct quest *quest, const struct answers *answers, size_t *first)
{
    size_t n_failed = 0;
    for (size_t i = quest->n_rows; i-- > 0;)
        if (error_of(quest, answers, i)->code) {
            n_failed++;
            *first = i;
        }
    return n_failed;
}

/* An earlier search may have left a members.csv that this one does not write. */
static int write_searches(struct quest *quest)
{
    struct ifl_error *error = &quest->launch.error;
    char path[IFL_PATH_BYTES];
    struct new_file trials, members = {0};
    snprintf(path, sizeof path, "%s/members.csv", quest->files.dir);
    if (quest->n_members == 0)
        remove(path);
    else if (new_file_open(&members, path, error) < 0)
        return error->code;
    snprintf(path, sizeof path, "%s/trials.csv", quest->files.dir);
    int rc = new_file_open(&trials, path, error);
    if (rc == 0) {
        rc = list_searches(quest, trials.out, members.out);
        rc = new_file_close(&trials, rc, error);
    }
    return quest->n_members > 0 ? new_file_close(&members, rc, error) : rc;
}

static const struct placement *placement_of(const struct quest *quest)
{
    return study_placement(quest->launch.study);
}

/* An earlier search may have left another kind of answer. */
static int write_answers(struct quest *quest, struct answers *answers)
{
    static const char *const names[] = {"capacity.csv", "plan.csv", "candidates.csv",
                                        "placements.csv"};
    struct ifl_error *error = &quest->launch.error;
    const struct study *study = quest->launch.study;
    char path[IFL_PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (placement_of(quest) ? i >= 2 : i == (size_t)has_target(quest))
            continue;
        snprintf(path, sizeof path, "%s/%s", quest->files.dir, names[i]);
        remove(path);
    }
    if (placement_of(quest))
        return placement_write(quest->files.dir, study, answers->rates, &answers->choices, error);
    snprintf(path, sizeof path, "%s/%s", quest->files.dir, names[has_target(quest)]);
    if (has_target(quest)) {
        plan_mark(answers->plans, quest->n_rows);
        return plan_write(path, study, answers->plans, quest->n_rows, error);
    }
    capacity_mark(answers->rates, quest->n_rows);
    return capacity_write(path, study, answers->rates, quest->n_rows, error);
}

/* What is chosen among candidates is flown as a whole. */
static int settle(struct quest *quest, struct answers *answers)
{
    const struct capacity_options options = {.n_threads = (size_t)quest->launch.n_threads,
                                             .traces = &quest->traces,
                                             .profiles = &quest->profiles,
                                             .stop = &interrupt_asked,
                                             .n_ended = &quest->crew.n_ended};
    return placement_of(quest) ? placement_settle(quest->launch.study, &options, answers->rates,
                                                  &answers->choices, &quest->launch.error)
                               : 0;
}

static int write_files(struct quest *quest, struct answers *answers)
{
    if (write_searches(quest) < 0 || settle(quest, answers) < 0 ||
        write_answers(quest, answers) < 0)
        return quest->launch.error.code;
    return run_files_write_config(&quest->files, &quest->launch.error);
}

static void print(const struct quest *quest, const struct answers *answers)
{
    if (placement_of(quest))
        placement_print(stdout, quest->launch.study, answers->rates, &answers->choices);
    else if (has_target(quest))
        plan_print(stdout, quest->launch.study, answers->plans, quest->n_rows);
    else
        capacity_print(stdout, quest->launch.study, answers->rates, quest->n_rows);
}

/* Of options for a target some may well be impossible, such as a model on too few GPUs. */
static int judge(struct quest *quest, const struct answers *answers)
{
    size_t first = 0;
    struct ifl_error *error = &quest->launch.error;
    const size_t n_failed = count_failed(quest, answers, &first);
    if (placement_of(quest))
        return placement_judge(quest->launch.study, answers->rates, &answers->choices, error);
    if (n_failed == quest->n_rows) {
        *error = *error_of(quest, answers, first);
        return error->code;
    }
    if (has_target(quest))
        return plan_judge(quest->launch.study, answers->plans, quest->n_rows, error);
    return n_failed == 0 ? 0
                         : ifl_fail(error, IFL_E_POLICY, "%zu of %zu searches failed", n_failed,
                                    quest->n_rows);
}

/* As a run's figures: without gnuplot there are none. */
static void draw(const struct quest *quest, const struct answers *answers)
{
    struct ifl_error error;
    const struct study *study = quest->launch.study;
    int rc = 0;
    if (!study_first(study)->output.plots)
        return;
    if (placement_of(quest))
        rc = answers->choices.n > 0
                 ? placement_draw(quest->files.dir, study, &answers->choices, &error)
                 : 0;
    else if (has_target(quest))
        rc = plan_draw(quest->files.dir, study, answers->plans, quest->n_rows, &error);
    else
        rc = capacity_draw(quest->files.dir, study, answers->rates, quest->n_rows, &error);
    if (rc < 0)
        fprintf(stderr, "note: no figures: %s\n", error.text);
}

/* As a run's: where every search has failed there is nothing to write. */
static int report(struct quest *quest, struct answers *answers)
{
    size_t first;
    const bool none = count_failed(quest, answers, &first) == quest->n_rows;
    if (!none && write_files(quest, answers) < 0)
        return quest->launch.error.code;
    parts_remove(&quest->files.parts);
    if (!none && !quest->launch.quiet)
        print(quest, answers);
    if (!none)
        draw(quest, answers);
    return judge(quest, answers);
}

static int finish(struct quest *quest)
{
    struct answers answers = {calloc(quest->n_rows, sizeof *answers.rates),
                              calloc(quest->n_rows, sizeof *answers.plans),
                              {0}};
    int rc = answers.rates && answers.plans ? 0 : ifl_fail_nomem(&quest->launch.error);
    if (rc == 0)
        rc = gather(quest, &answers);
    if (rc == 0)
        rc = report(quest, &answers);
    free(answers.rates);
    free(answers.plans);
    choices_free(&answers.choices);
    return rc;
}

/* ---- the study ---- */

static int check_axes(struct quest *quest)
{
    for (size_t a = 0; a < study_n_axes(quest->launch.study); a++) {
        const char *key = study_axis(quest->launch.study, a);
        if (strcmp(key, "workload.arrivals.rate_rps") == 0)
            return ifl_fail(&quest->launch.error, IFL_E_INPUT,
                            "workload.arrivals.rate_rps is swept, expected one rate, where the "
                            "search for the capacity starts");
    }
    if (has_target(quest) && study_sweeps(quest->launch.study, "cluster.replicas"))
        return ifl_fail(&quest->launch.error, IFL_E_INPUT,
                        "cluster.replicas is swept, expected one number, where the search for "
                        "capacity.target_rps begins");
    if (study_sweeps(quest->launch.study, "cost.ensemble"))
        return ifl_fail(&quest->launch.error, IFL_E_INPUT,
                        "cost.ensemble is swept, expected one number of members for all searches");
    return capacity_check(study_first(quest->launch.study), &quest->launch.error);
}

static int prepare(struct quest *quest)
{
    struct ifl_error *error = &quest->launch.error;
    const struct ifl_notes notes = {launch_speaks(&quest->launch) ? launch_say : NULL,
                                    &quest->launch};
    int rc = check_axes(quest);
    if (rc == 0)
        rc = run_files_init(&quest->files, quest->launch.study, &quest->launch.inputs,
                            quest->launch.out_dir, error);
    quest->n_members = (size_t)study_first(quest->launch.study)->cost.ensemble;
    if (rc == 0)
        run_files_of_searches(&quest->files, sizeof(struct record) +
                                                 quest->n_members * sizeof(struct capacity_member));
    if (rc == 0 && ranks_own() == 0)
        rc = run_files_open(&quest->files, quest->launch.resume, &notes, error);
    return ranks_agree(rc, error);
}

static int search_all(struct quest *quest)
{
    struct ifl_error *error = &quest->launch.error;
    if (prepare(quest) < 0)
        return error->code;
    quest->n_rows = study_n_points(quest->launch.study) / study_n_replications(quest->launch.study);
    quest->crew.n_points = quest->n_rows;
    quest->crew.n_threads = quest->launch.n_threads;
    quest->crew.quiet = quest->launch.quiet;
    quest->crew.context = quest;
    quest->crew.done = is_recorded;
    quest->crew.fly = search_and_record;
    quest->crew.share = share_of_trials;
    trace_shelf_init(&quest->traces, (struct ifl_notes){0});
    profile_shelf_init(&quest->profiles);
    int rc = crew_work(&quest->crew, error);
    if (rc == 0 && ranks_own() == 0)
        rc = finish(quest);
    trace_shelf_finish(&quest->traces);
    profile_shelf_finish(&quest->profiles);
    rc = ranks_agree(rc, error);
    if (rc < 0 && ranks_own() == 0)
        parts_salvage(&quest->files.parts, quest->n_rows, error);
    return rc;
}

static int run_command(int argc, char **argv)
{
    struct quest quest = {.launch = {.places = true}};
    if (launch_read(&quest.launch, &command_capacity, argc, argv) < 0)
        return 2;
    gsl_set_error_handler_off();
    int rc = launch_load(&quest.launch);
    if (rc == 0 && quest.launch.dry_run && (rc = check_axes(&quest)) == 0)
        rc = dry_run(&quest.launch, true);
    else if (rc == 0)
        rc = search_all(&quest);
    run_files_finish(&quest.files);
    return launch_end(&quest.launch, rc);
}

static const struct option_spec options[] = {LAUNCH_OPTIONS};

const struct command command_capacity = {
    .name = "capacity",
    .doc = "find the highest rate that meets the objectives, and its cost",
    .arguments = "CONFIG.yaml",
    .example = "inflight capacity quickstart --set 'sweep={serving.preset: [vllm-v0, sarathi]}' "
               "--set capacity.criterion=goodput -o results/capacity",
    .notes =
        "The objectives are the keys under `capacity` and `slo`. With capacity.target_rps: the "
        "fewest replicas for that rate. With capacity.placement: the parallelism and the replicas "
        "of each pool.",
    .completion = COMPLETE_CONFIG,
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run_command,
};
