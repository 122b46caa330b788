#include "cli/run_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char report_names[N_REPORTS][16] = {"requests.csv", "steps.csv", "quantiles.csv",
                                                 "timeline.json"};

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

static char *part_path(const char *dir, enum report_kind kind, size_t point)
{
    const size_t n_bytes = strlen(dir) + 64;
    char *path = malloc(n_bytes);
    if (path)
        snprintf(path, n_bytes, "%s/.%s-%06zu.part", dir, report_names[kind], point);
    return path;
}

static int name_parts(struct run_files *files, enum report_kind kind)
{
    files->parts[kind] = calloc(files->n_points, sizeof *files->parts[kind]);
    for (size_t i = 0; files->parts[kind] && i < files->n_points; i++)
        if (!(files->parts[kind][i] = part_path(files->dir, kind, i)))
            return -1;
    return files->parts[kind] ? 0 : -1;
}

int run_files_open(struct run_files *files, const char *dir, size_t n_points,
                   const struct output_config *output, struct ifl_error *error)
{
    *files = (struct run_files){
        .n_points = n_points,
        .wanted = {output->requests, output->steps, true, output->timeline},
    };
    if (strlen(dir) >= sizeof files->dir)
        return ifl_fail(error, IFL_E_INPUT,
                        "the output directory has a name of %zu bytes, expected at most %zu",
                        strlen(dir), sizeof files->dir - 1);
    snprintf(files->dir, sizeof files->dir, "%s", dir);
    snprintf(files->summary, sizeof files->summary, "%s/summary.csv", dir);
    snprintf(files->config, sizeof files->config, "%s/config.yaml", dir);
    int rc = make_dir(dir, error);
    if (rc == 0)
        rc = check_dir(dir, error);
    if (rc < 0)
        return rc;
    for (int kind = 0; kind < N_REPORTS; kind++)
        if (files->wanted[kind] && name_parts(files, kind) < 0)
            return ifl_fail_nomem(error);
    return 0;
}

/* The points share what a timeline holds. */
static uint64_t timeline_events(size_t n_points)
{
    const size_t share = TIMELINE_EVENTS / n_points;
    return share < TIMELINE_POINT_EVENTS ? share : TIMELINE_POINT_EVENTS;
}

struct ifl_recorder_options run_files_of_point(const struct run_files *files, size_t point)
{
    const char *paths[N_REPORTS];
    for (int kind = 0; kind < N_REPORTS; kind++)
        paths[kind] = files->wanted[kind] ? files->parts[kind][point] : NULL;
    return (struct ifl_recorder_options){
        .requests_path = paths[REPORT_REQUESTS],
        .steps_path = paths[REPORT_STEPS],
        .quantiles_path = paths[REPORT_QUANTILES],
        .timeline_path = paths[REPORT_TIMELINE],
        .timeline_events = timeline_events(files->n_points),
    };
}

int run_files_join(struct run_files *files, struct ifl_error *error)
{
    int rc = 0;
    for (int kind = 0; kind < N_REPORTS && rc == 0; kind++) {
        const char *const *parts = (const char *const *)files->parts[kind];
        char path[600];
        snprintf(path, sizeof path, "%s/%s", files->dir, report_names[kind]);
        if (!files->wanted[kind]) {
            remove(path); /* of an earlier run: it would not belong to the others */
            continue;
        }
        rc = kind == REPORT_TIMELINE ? ifl_join_timeline(path, files->n_points, parts, error)
                                     : ifl_join_csv(path, files->n_points, parts, error);
    }
    return rc;
}

int run_files_write_config(const struct run_files *files, const struct study *study,
                           struct ifl_error *error)
{
    char temporary[640];
    snprintf(temporary, sizeof temporary, "%s.tmp", files->config);
    FILE *out = fopen(temporary, "w");
    if (!out)
        return ifl_fail(error, IFL_E_IO, "%s: %s", temporary, strerror(errno));
    int rc = study_write(study, out, error);
    const bool broken = ferror(out) != 0;
    if ((fclose(out) != 0 || broken) && rc == 0)
        rc = ifl_fail(error, IFL_E_IO, "%s: %s", temporary, strerror(errno));
    if (rc == 0 && rename(temporary, files->config) < 0)
        rc = ifl_fail(error, IFL_E_IO, "%s: %s", files->config, strerror(errno));
    if (rc < 0)
        remove(temporary);
    return rc;
}

void run_files_close(struct run_files *files)
{
    for (int kind = 0; kind < N_REPORTS; kind++) {
        for (size_t i = 0; files->parts[kind] && i < files->n_points; i++) {
            if (files->parts[kind][i])
                remove(files->parts[kind][i]);
            free(files->parts[kind][i]);
        }
        free(files->parts[kind]);
    }
    *files = (struct run_files){0};
}
