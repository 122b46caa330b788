#include "cli/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/outputs.h"
#include "cli/interrupt.h"
#include "cli/ranks.h"
#include "cli/resume.h"

#include "inflight/inputs.h"
#include "inflight/minmax.h"

static const char *const report_names[N_REPORTS] = {
    "requests.csv",  "steps.csv",       "work.csv",  "quantiles.csv", "timeline.json",
    "intervals.csv", "differences.csv", "pools.csv", "moves.csv",     "speculation.csv"};
static const char config_name[] = "config.yaml";
static const char *const tables_of_runs[] = {"summary.csv", "replications.csv", NULL};
static const char *const tables_of_searches[] = {
    "capacity.csv", "plan.csv", "candidates.csv", "placements.csv", "trials.csv",
    "members.csv",  NULL};

/* A million events are some 150 MB, which a viewer has to hold in memory. */
enum { TIMELINE_EVENTS = 1000000, TIMELINE_POINT_EVENTS = 200000 };

enum { WAIT_S = 60 };

int run_files_init(struct run_files *files, const struct study *study, struct inputs *inputs,
                   const char *dir, struct ifl_error *error)
{
    const struct output_config *output = &study_first(study)->output;
    const struct study_traits any = study_any(study);
    *files = (struct run_files){
        .study = study,
        .inputs = inputs,
        .points_a_record = 1,
        .wanted = {output->requests, output->steps, output->work, true, output->timeline,
                   study_first(study)->cost.ensemble > 0,
                   config_lists_differences(study_first(study)), study_first(study)->n_pools > 0,
                   any.hands_over || any.has_tiers || any.migrates || any.swaps_apart,
                   any.speculates},
        .tables = tables_of_runs,
        .joining = PTHREAD_MUTEX_INITIALIZER,
    };
    dir = dir ? dir : output->dir;
    if (strlen(dir) >= sizeof files->dir)
        return ifl_fail(error, IFL_E_INPUT,
                        "the output directory has a name of %zu bytes, expected at most %zu",
                        strlen(dir), sizeof files->dir - 1);
    snprintf(files->dir, sizeof files->dir, "%s", dir);
    if (study_text_make(&files->config, study, error) < 0)
        return error->code;
    parts_init(&files->parts, dir, files->config.hash, sizeof(struct point_record));
    return 0;
}

void run_files_of_searches(struct run_files *files, size_t record_bytes)
{
    files->points_a_record = study_n_replications(files->study);
    files->parts.study_hash = ~files->parts.study_hash;
    files->parts.record_bytes = record_bytes;
    files->tables = tables_of_searches;
    for (int kind = 0; kind < N_REPORTS; kind++)
        files->wanted[kind] = false;
}

size_t run_files_n_records(const struct run_files *files)
{
    return study_n_points(files->study) / files->points_a_record;
}

bool run_files_resumable(const struct run_files *files)
{
    return run_files_n_records(files) > 1;
}

static int lock(struct run_files *files, const struct ifl_notes *notes, struct ifl_error *error)
{
    char text[IFL_PATH_BYTES + 128];
    const int rc = dir_lock_take(&files->lock, files->dir, error);
    if (rc < 0 || files->lock.taken || !notes->say)
        return rc;
    snprintf(text, sizeof text,
             "%s: its file system has no locks, so a second run there would not be noticed",
             files->dir);
    notes->say(notes->context, text);
    return 0;
}

static void final_path(const struct run_files *files, const char *name, char path[IFL_PATH_BYTES])
{
    snprintf(path, IFL_PATH_BYTES, "%s/%s", files->dir, name);
}

/* True if config.yaml has the text that this study would write; *status is the file's then. */
static bool has_config(const struct run_files *files, struct stat *status)
{
    char path[IFL_PATH_BYTES];
    const struct study_text *text = &files->config;
    size_t at = 0;
    final_path(files, config_name, path);
    FILE *there = fopen(path, "r");
    bool same = there;
    for (int c; same && (c = getc(there)) != EOF; at++)
        same = at < text->n_bytes && text->text[at] == (char)c;
    same = same && fstat(fileno(there), status) == 0;
    if (there)
        fclose(there);
    return same && at == text->n_bytes;
}

/* ---- inputs in the directory ---- */

static int note_inputs(const struct run_files *files, struct ifl_error *error)
{
    const size_t n_replications = study_n_replications(files->study);
    struct config config;
    for (size_t p = 0; p < study_n_points(files->study); p += n_replications) {
        if (study_read(files->study, p, &config, error) < 0)
            return error->code;
        inputs_note(&config);
        config_finish(&config);
    }
    return 0;
}

/* A run of the configuration that it has written before changes nothing in it. */
static int check_config(const struct run_files *files, struct ifl_error *error)
{
    const char *const names[] = {config_name, NULL};
    struct stat status;
    return has_config(files, &status) ? 0 : outputs_check(files->dir, names, error);
}

/* Inputs of points are opened when these are flown, which is too late: some reports are in place by
 * then. Where there is no file yet, none can be an input, and the points are not looked at. */
static int check_outputs(const struct run_files *files, struct ifl_error *error)
{
    const bool reports = files->tables == tables_of_runs;
    const char *names[N_REPORTS + 1] = {NULL};
    for (int kind = 0; kind < N_REPORTS && reports; kind++)
        names[kind] = report_names[kind];
    if ((outputs_exist(files->dir, names) || outputs_exist(files->dir, files->tables) ||
         parts_exist(&files->parts)) &&
        note_inputs(files, error) < 0)
        return error->code;
    if (outputs_check(files->dir, names, error) < 0 ||
        outputs_check(files->dir, files->tables, error) < 0 ||
        parts_check(&files->parts, error) < 0)
        return error->code;
    return check_config(files, error);
}

int run_files_open(struct run_files *files, bool resume, const struct ifl_notes *notes,
                   struct ifl_error *error)
{
    int rc = check_outputs(files, error);
    if (rc == 0)
        rc = out_dir_make(&files->out, files->dir, error);
    interrupt_catch();
    if (rc == 0)
        rc = lock(files, notes, error);
    if (rc == 0 && resume && run_files_resumable(files))
        rc = resume_check(files, notes, error);
    else if (rc == 0)
        parts_remove(&files->parts);
    return rc == 0 ? parts_make(&files->parts, error) : rc;
}

/* config.yaml is written last: if it has the text that this study would write, the other reports
 * are there, too. */
bool run_files_whole(const struct run_files *files, struct timespec *when)
{
    struct stat status;
    if (parts_exist(&files->parts) || !has_config(files, &status))
        return false;
    *when = status.st_mtim;
    return true;
}

/* ---- the files of a point ---- */

/* The events of a timeline are divided equally among the points. */
static uint64_t timeline_events(size_t n_points)
{
    const size_t share = TIMELINE_EVENTS / n_points;
    return ifl_min(share, TIMELINE_POINT_EVENTS);
}

struct ifl_recorder_options run_files_of_point(const struct run_files *files, size_t point,
                                               char paths[N_REPORTS][IFL_PATH_BYTES])
{
    const struct study_traits any = study_any(files->study);
    for (int kind = 0; kind < N_REPORTS; kind++)
        parts_path(&files->parts, report_names[kind], point, paths[kind]);
    return (struct ifl_recorder_options){
        .requests_path = files->wanted[REPORT_REQUESTS] ? paths[REPORT_REQUESTS] : NULL,
        .steps_path = files->wanted[REPORT_STEPS] ? paths[REPORT_STEPS] : NULL,
        .work_path = files->wanted[REPORT_WORK] ? paths[REPORT_WORK] : NULL,
        .quantiles_path = files->wanted[REPORT_QUANTILES] ? paths[REPORT_QUANTILES] : NULL,
        .timeline_path = files->wanted[REPORT_TIMELINE] ? paths[REPORT_TIMELINE] : NULL,
        .differences_path = files->wanted[REPORT_DIFFERENCES] ? paths[REPORT_DIFFERENCES] : NULL,
        .pools_path = files->wanted[REPORT_POOLS] ? paths[REPORT_POOLS] : NULL,
        .hands_over = any.hands_over,
        .tiers = any.has_tiers,
        .migrates = any.migrates,
        .may_leave = any.may_leave,
        .moves_path = files->wanted[REPORT_MOVES] ? paths[REPORT_MOVES] : NULL,
        .gives_up = any.gives_up,
        .speculates = files->wanted[REPORT_SPECULATION],
        .timeline_events = timeline_events(study_n_points(files->study)),
    };
}

static uint64_t part_bytes(const struct run_files *files, enum report_kind kind, size_t point)
{
    char path[IFL_PATH_BYTES];
    struct stat status;
    parts_path(&files->parts, report_names[kind], point, path);
    return files->wanted[kind] && stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static struct checksum part_sum(const struct run_files *files, int kind, size_t point)
{
    char path[IFL_PATH_BYTES];
    struct checksum sum = {0, 0};
    parts_path(&files->parts, report_names[kind], point, path);
    if (files->wanted[kind])
        checksum_add(&sum, path);
    return sum;
}

int run_files_put(const struct run_files *files, size_t point, const struct input_sums *inputs,
                  struct point_record *record, struct ifl_error *error)
{
    for (int kind = 0; kind < N_REPORTS && !record->error.code; kind++)
        if (run_files_resumable(files))
            record->parts[kind] = part_sum(files, kind, point);
        else
            record->parts[kind].n_bytes = part_bytes(files, kind, point);
    return parts_put(&files->parts, point, inputs, record, error);
}

const char *run_files_damaged(const struct run_files *files, size_t point,
                              const struct point_record *record)
{
    for (int kind = 0; kind < N_REPORTS; kind++) {
        if (!files->wanted[kind] || record->error.code)
            continue;
        const struct checksum sum = part_sum(files, kind, point);
        if (!checksum_same(&sum, &record->parts[kind]))
            return report_names[kind];
    }
    return NULL;
}

bool run_files_get(const struct run_files *files, size_t point, struct point_record *record)
{
    bool same = parts_get(&files->parts, point, record);
    for (int kind = 0; same && !record->error.code && kind < N_REPORTS; kind++)
        same = record->parts[kind].n_bytes == part_bytes(files, kind, point);
    return same;
}

/* ---- reports ---- */

static struct ifl_joint *joint_of(struct run_files *files, int kind, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    final_path(files, report_names[kind], path);
    if (!files->joints[kind])
        files->joints[kind] = ifl_joint_open(path, kind == REPORT_TIMELINE, error);
    return files->joints[kind];
}

/* The table of a single point is renamed, since there is nothing to join it with. */
static int append(struct run_files *files, int kind, size_t point, struct ifl_error *error)
{
    char part[IFL_PATH_BYTES], path[IFL_PATH_BYTES];
    parts_path(&files->parts, report_names[kind], point, part);
    final_path(files, report_names[kind], path);
    if (ifl_output_check(path, error) < 0)
        return error->code;
    if (study_n_points(files->study) == 1 && kind != REPORT_TIMELINE)
        return rename(part, path) < 0
                   ? ifl_fail(error, IFL_E_IO, "%s: cannot rename: %s", part, strerror(errno))
                   : 0;
    struct ifl_joint *joint = joint_of(files, kind, error);
    return joint ? ifl_joint_append(joint, part, error) : error->code;
}

/* A failed point has no files. */
static int join_next(struct run_files *files, const struct point_record *record,
                     struct ifl_error *error)
{
    const size_t point = files->n_joined++;
    int rc = 0;
    for (int kind = 0; kind < N_REPORTS && rc == 0 && !record->error.code; kind++)
        if (files->wanted[kind])
            rc = append(files, kind, point, error);
    return rc;
}

int run_files_join(struct run_files *files, struct ifl_error *error)
{
    struct point_record record;
    int rc = 0;
    if (pthread_mutex_trylock(&files->joining) != 0)
        return 0;
    while (rc == 0 && files->n_joined < study_n_points(files->study) &&
           run_files_get(files, files->n_joined, &record))
        rc = join_next(files, &record, error);
    pthread_mutex_unlock(&files->joining);
    return rc;
}

/* A network file system may report a new file as missing for a minute, so missing points of other
 * ranks are waited for. */
static int join_rest(struct run_files *files, struct ifl_error *error)
{
    const size_t n_points = study_n_points(files->study);
    int rc = run_files_join(files, error);
    for (int i = 0; i < WAIT_S && rc == 0 && files->n_joined < n_points && ranks_n() > 1; i++) {
        nanosleep(&(struct timespec){1, 0}, NULL);
        rc = run_files_join(files, error);
    }
    if (rc == 0 && files->n_joined < n_points)
        rc = ifl_fail(error, IFL_E_IO, "%s: the files of point %zu are gone", files->parts.dir,
                      files->n_joined);
    return rc;
}

/* Removes reports of an earlier run that this run does not write. */
static void remove_unwanted(const struct run_files *files)
{
    char path[IFL_PATH_BYTES], temporary[IFL_PATH_BYTES + 8];
    for (int kind = 0; kind < N_REPORTS; kind++) {
        final_path(files, report_names[kind], path);
        snprintf(temporary, sizeof temporary, "%s.tmp", path);
        if (!files->wanted[kind]) {
            remove(path);
            remove(temporary);
        }
    }
}

int run_files_close(struct run_files *files, struct ifl_error *error)
{
    int rc = join_rest(files, error);
    for (int kind = 0; kind < N_REPORTS && rc == 0; kind++) {
        if (files->joints[kind])
            rc = ifl_joint_close(files->joints[kind], error);
        files->joints[kind] = NULL;
    }
    if (rc == 0)
        remove_unwanted(files);
    return rc;
}

void run_files_clear_lock(struct run_files *files)
{
    char path[IFL_PATH_BYTES];
    struct ifl_error error; /* a lock that is held or cannot be written stays */
    final_path(files, ".lock", path);
    if (access(path, F_OK) == 0)
        (void)dir_lock_take(&files->lock, files->dir, &error);
}

void run_files_finish(struct run_files *files)
{
    for (int kind = 0; kind < N_REPORTS; kind++)
        ifl_joint_destroy(files->joints[kind]);
    dir_lock_release(&files->lock);
    out_dir_tidy(&files->out);
    study_text_drop(&files->config);
    pthread_mutex_destroy(&files->joining);
}

IFL_FOR_ASSERTS static inline bool are_closed(const struct run_files *files)
{
    for (int kind = 0; kind < N_REPORTS; kind++)
        if (files->joints[kind])
            return false;
    return true;
}

int run_files_write_config(const struct run_files *files, struct ifl_error *error)
{
    ifl_assert(are_closed(files));
    char path[IFL_PATH_BYTES];
    struct stat status;
    final_path(files, config_name, path);
    /* Its time says when the run was whole. */
    if (has_config(files, &status) && utimensat(AT_FDCWD, path, NULL, 0) == 0)
        return 0;
    return study_text_save(&files->config, path, error);
}
