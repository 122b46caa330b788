/* The files of a run: what points leave behind, and how that becomes reports. */
#ifndef SIM_CLI_RUN_FILES_H
#define SIM_CLI_RUN_FILES_H

#include <pthread.h>

#include "inflight/report.h"

#include "cli/parts.h"
#include "config/config.h"
#include "point.h"

enum report_kind {
    REPORT_REQUESTS,
    REPORT_STEPS,
    REPORT_WORK,
    REPORT_QUANTILES,
    REPORT_TIMELINE,
    REPORT_INTERVALS,
    N_REPORTS
};

struct run_files {
    const struct study *study;
    char dir[512];
    struct parts parts;
    bool wanted[N_REPORTS];
    /* The reports of all points, as far as they have grown; on rank 0. */
    pthread_mutex_t joining;
    struct ifl_joint *joints[N_REPORTS]; /* NULL: not begun */
    size_t n_joined;                     /* points, the first ones */
};

/* A point that is done with: flown, or failed for a reason that does not concern the others. */
struct point_record {
    struct ifl_error error; /* code 0: flown */
    struct point_result result;
    uint64_t part_bytes[N_REPORTS];
};

/* dir NULL: what the configuration says. Touches no file. */
int run_files_init(struct run_files *files, const struct study *study, const char *dir,
                   struct ifl_error *error);
/* Makes the directory, parents included; forgets the points of earlier runs unless `resume`. An
 * unwritable one is the user's error. */
int run_files_open(const struct run_files *files, bool resume, struct ifl_error *error);
/* Has this very study been finished here? */
bool run_files_whole(const struct run_files *files);

/* Options with the paths of a point's files, which are in `paths`. */
struct ifl_recorder_options run_files_of_point(const struct run_files *files, size_t point,
                                               char paths[N_REPORTS][IFL_PATH_BYTES]);
/* Records that the point is done with; its files are there. */
int run_files_put(const struct run_files *files, size_t point, struct point_record *record,
                  struct ifl_error *error);
/* False if it is not, or its files are not those of then. */
bool run_files_get(const struct run_files *files, size_t point, struct point_record *record);

/* Appends the points that are recorded and not yet joined, up to the first that is missing, to
 * requests.csv, steps.csv, work.csv, quantiles.csv, timeline.json and intervals.csv, so that little
 * is left to do when the last one has ended. Any thread may; one at a time does. */
int run_files_join(struct run_files *files, struct ifl_error *error);
/* Joins the rest and gives the reports their names; comes before the configuration. */
int run_files_close(struct run_files *files, struct ifl_error *error);
/* Removes what was not closed. */
void run_files_finish(struct run_files *files);
int run_files_write_config(const struct run_files *files, struct ifl_error *error);

#endif
