#include "cli/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/ranks.h"

static void say(const struct ifl_notes *notes, const char *text)
{
    if (notes->say)
        notes->say(notes->context, text);
}

static void say_of_point(const struct run_files *files, const struct ifl_notes *notes,
                         const char *name, size_t point)
{
    char path[IFL_PATH_BYTES], text[IFL_PATH_BYTES + 64];
    parts_path(&files->parts, name, point, path);
    snprintf(text, sizeof text, "%s has changed since it was written, its point is run again",
             path);
    say(notes, text);
}

/* The note names no point, so that it is the same text for all points with this input. */
static void say_of_input(const struct run_files *files, const struct ifl_notes *notes,
                         const struct config *config, enum input_kind kind)
{
    char what[640], text[IFL_PATH_BYTES + 800];
    inputs_describe(files->inputs, config, kind, what);
    snprintf(text, sizeof text, "%s: %s has changed since, its points are run again",
             files->parts.dir, what);
    say(notes, text);
}

/* The first input with another checksum; N_INPUTS: none. */
static enum input_kind changed_input(const struct input_sums *was, const struct input_sums *is)
{
    enum input_kind kind = 0;
    while (kind < N_INPUTS && checksum_same(&was->of[kind], &is->of[kind]))
        kind++;
    return kind;
}

static int check_inputs(const struct run_files *files, size_t point, const struct input_sums *was,
                        const struct ifl_notes *notes, bool *good, struct ifl_error *error)
{
    struct config config;
    struct input_sums is;
    if (study_read(files->study, point * files->points_a_record, &config, error) < 0)
        return error->code;
    const int rc = inputs_sum(files->inputs, &config, &is, error);
    const enum input_kind kind = rc == 0 ? changed_input(was, &is) : N_INPUTS;
    *good = kind == N_INPUTS;
    if (!*good)
        say_of_input(files, notes, &config, kind);
    config_finish(&config);
    return rc;
}

/* `record` is of the parts' size. */
static int check_point(const struct run_files *files, size_t point, void *record,
                       const struct ifl_notes *notes, struct ifl_error *error)
{
    struct input_sums was;
    char text[IFL_PATH_BYTES + 128];
    bool good = false;
    int rc = 0;
    switch (parts_look(&files->parts, point, &was, record)) {
    case PARTS_NONE:
        return 0;
    case PARTS_FOREIGN:
        snprintf(text, sizeof text,
                 "%s: its points are of another configuration or version, they are run again",
                 files->parts.dir);
        say(notes, text);
        break;
    case PARTS_DAMAGED:
        say_of_point(files, notes, "record", point);
        break;
    case PARTS_OURS: {
        const char *damaged = run_files_damaged(files, point, record);
        if (damaged)
            say_of_point(files, notes, damaged, point);
        else
            rc = check_inputs(files, point, &was, notes, &good, error);
        break;
    }
    }
    if (rc == 0 && !good)
        parts_drop(&files->parts, point);
    return rc;
}

int resume_check(const struct run_files *files, const struct ifl_notes *notes,
                 struct ifl_error *error)
{
    ifl_assert(ranks_own() == 0);
    ifl_assert(files->n_joined == 0);
    const size_t n = run_files_n_records(files);
    void *record = malloc(files->parts.record_bytes);
    int rc = record ? 0 : ifl_fail_nomem(error);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = check_point(files, i, record, notes, error);
    free(record);
    return rc;
}

/* True if an input is newer than the reports, the rule of build tools. True, too, if the inputs
 * cannot be determined. */
static bool is_outdated(const struct run_files *files, const struct timespec *written,
                        const struct ifl_notes *notes)
{
    struct config config;
    struct input_sums sums;
    struct ifl_error error;
    char text[1800];
    for (size_t p = 0; p < study_n_points(files->study); p += files->points_a_record) {
        if (study_read(files->study, p, &config, &error) < 0)
            return true;
        const int rc = inputs_sum(files->inputs, &config, &sums, &error);
        config_finish(&config);
        if (rc < 0)
            return true;
    }
    if (!inputs_newer_than(files->inputs, written))
        return false;
    snprintf(text, sizeof text, "%s is newer than the reports in %s, all points are run again",
             files->inputs->newest_path, files->dir);
    say(notes, text);
    return true;
}

bool resume_is_whole(const struct run_files *files, const struct ifl_notes *notes)
{
    struct timespec written;
    return run_files_whole(files, &written) && !is_outdated(files, &written, notes);
}
