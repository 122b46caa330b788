#include "cli/run_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "new_file.h"

static const char report_names[N_REPORTS][16] = {"requests.csv",  "steps.csv",     "work.csv",
                                                 "quantiles.csv", "timeline.json", "intervals.csv"};
static const char config_name[] = "config.yaml";

/* A million events are some 150 MB, which a viewer has to hold in memory. */
enum { TIMELINE_EVENTS = 1000000, TIMELINE_POINT_EVENTS = 200000 };

static int make_dir(const char *dir, struct ifl_error *error)
{
    char path[512];
    snprintf(path, sizeof path, "%s", dir);
    for (char *c = path + 1;; c++) {
        const char was = *c;
        if (was != '/' && was != '\0')
            continue;
        *c = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return ifl_fail_at(error, dir, 0, 0, "cannot make the output directory: %s",
                               strerror(errno));
        *c = was;
        if (was == '\0')
            break;
    }
    return 0;
}

static int check_dir(const char *dir, struct ifl_error *error)
{
    struct stat status;
    if (stat(dir, &status) < 0)
        return ifl_fail_at(error, dir, 0, 0, "cannot use the output directory: %s",
                           strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return ifl_fail_at(error, dir, 0, 0, "is a file, expected an output directory");
    if (access(dir, W_OK | X_OK) < 0)
        return ifl_fail_at(error, dir, 0, 0, "cannot write to the output directory: %s",
                           strerror(errno));
    return 0;
}

int run_files_init(struct run_files *files, const struct study *study, const char *dir,
                   struct ifl_error *error)
{
    const struct output_config *output = &study_first(study)->output;
    uint64_t hash;
    *files = (struct run_files){
        .study = study,
        .wanted = {output->requests, output->steps, output->work, true, output->timeline,
                   study_first(study)->cost.ensemble > 0},
    };
    dir = dir ? dir : output->dir;
    if (strlen(dir) >= sizeof files->dir)
        return ifl_fail(error, IFL_E_INPUT,
                        "the output directory has a name of %zu bytes, expected at most %zu",
                        strlen(dir), sizeof files->dir - 1);
    snprintf(files->dir, sizeof files->dir, "%s", dir);
    if (study_hash(study, &hash, error) < 0)
        return error->code;
    parts_init(&files->parts, dir, hash, sizeof(struct point_record));
    return 0;
}

int run_files_open(const struct run_files *files, bool resume, struct ifl_error *error)
{
    int rc = make_dir(files->dir, error);
    if (rc == 0)
        rc = check_dir(files->dir, error);
    if (rc == 0 && !resume)
        parts_remove(&files->parts);
    return rc == 0 ? parts_make(&files->parts, error) : rc;
}

static void final_path(const struct run_files *files, const char *name, char path[IFL_PATH_BYTES])
{
    snprintf(path, IFL_PATH_BYTES, "%s/%s", files->dir, name);
}

/* config.yaml comes last: where it says what we would write, the others are there too. */
bool run_files_whole(const struct run_files *files)
{
    char path[IFL_PATH_BYTES], *text = NULL;
    size_t n_bytes = 0, at = 0;
    struct ifl_error error;
    if (parts_exist(&files->parts))
        return false;
    final_path(files, config_name, path);
    FILE *there = fopen(path, "r"), *out = open_memstream(&text, &n_bytes);
    bool same = there && out && study_write(files->study, out, &error) == 0;
    if (out)
        fclose(out);
    for (int c; same && (c = getc(there)) != EOF; at++)
        same = at < n_bytes && text[at] == (char)c;
    if (there)
        fclose(there);
    free(text);
    return same && at == n_bytes;
}

/* ---- the files of a point ---- */

/* The points share what a timeline holds. */
static uint64_t timeline_events(size_t n_points)
{
    const size_t share = TIMELINE_EVENTS / n_points;
    return share < TIMELINE_POINT_EVENTS ? share : TIMELINE_POINT_EVENTS;
}

struct ifl_recorder_options run_files_of_point(const struct run_files *files, size_t point,
                                               char paths[N_REPORTS][IFL_PATH_BYTES])
{
    for (int kind = 0; kind < N_REPORTS; kind++)
        parts_path(&files->parts, report_names[kind], point, paths[kind]);
    return (struct ifl_recorder_options){
        .requests_path = files->wanted[REPORT_REQUESTS] ? paths[REPORT_REQUESTS] : NULL,
        .steps_path = files->wanted[REPORT_STEPS] ? paths[REPORT_STEPS] : NULL,
        .work_path = files->wanted[REPORT_WORK] ? paths[REPORT_WORK] : NULL,
        .quantiles_path = files->wanted[REPORT_QUANTILES] ? paths[REPORT_QUANTILES] : NULL,
        .timeline_path = files->wanted[REPORT_TIMELINE] ? paths[REPORT_TIMELINE] : NULL,
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

int run_files_put(const struct run_files *files, size_t point, struct point_record *record,
                  struct ifl_error *error)
{
    for (int kind = 0; kind < N_REPORTS; kind++)
        record->part_bytes[kind] = record->error.code ? 0 : part_bytes(files, kind, point);
    return parts_put(&files->parts, point, record, error);
}

bool run_files_get(const struct run_files *files, size_t point, struct point_record *record)
{
    bool same = parts_get(&files->parts, point, record);
    for (int kind = 0; same && !record->error.code && kind < N_REPORTS; kind++)
        same = record->part_bytes[kind] == part_bytes(files, kind, point);
    return same;
}

/* ---- reports ---- */

struct joint {
    const struct run_files *files;
    enum report_kind kind;
};

static bool find_part(void *context, size_t point, char path[IFL_PATH_BYTES])
{
    const struct joint *joint = context;
    struct point_record record;
    parts_path(&joint->files->parts, report_names[joint->kind], point, path);
    return !parts_get(&joint->files->parts, point, &record) || !record.error.code;
}

int run_files_join(const struct run_files *files, struct ifl_error *error)
{
    int rc = 0;
    for (int kind = 0; kind < N_REPORTS && rc == 0; kind++) {
        struct joint joint = {files, (enum report_kind)kind};
        const struct ifl_parts parts = {study_n_points(files->study), &joint, find_part};
        char path[IFL_PATH_BYTES];
        final_path(files, report_names[kind], path);
        if (!files->wanted[kind])
            remove(path); /* of an earlier run: it would not belong to the others */
        else
            rc = kind == REPORT_TIMELINE ? ifl_join_timeline(path, &parts, error)
                                         : ifl_join_csv(path, &parts, error);
    }
    return rc;
}

int run_files_write_config(const struct run_files *files, struct ifl_error *error)
{
    char path[IFL_PATH_BYTES];
    struct new_file file;
    final_path(files, config_name, path);
    if (new_file_open(&file, path, error) < 0)
        return error->code;
    return new_file_close(&file, study_write(files->study, file.out, error), error);
}
