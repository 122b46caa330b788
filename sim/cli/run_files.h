/* The files of a run: those that each point writes, and how they are joined into reports. */
#ifndef SIM_CLI_RUN_FILES_H
#define SIM_CLI_RUN_FILES_H

#include <pthread.h>

#include "inflight/report.h"

#include "cli/dir_lock.h"
#include "cli/inputs.h"
#include "cli/out_dir.h"
#include "cli/parts.h"
#include "config/config.h"
#include "run/point.h"

enum report_kind {
    REPORT_REQUESTS,
    REPORT_STEPS,
    REPORT_WORK,
    REPORT_QUANTILES,
    REPORT_TIMELINE,
    REPORT_INTERVALS,
    REPORT_DIFFERENCES,
    REPORT_POOLS,
    REPORT_MOVES,
    REPORT_SPECULATION,
    N_REPORTS
};

struct run_files {
    const struct study *study;
    struct inputs *inputs;    /* borrowed */
    size_t points_a_record;   /* 1; in a search for the capacity, the number of replications */
    struct study_text config; /* text of config.yaml */
    char dir[OUT_DIR_BYTES];
    struct out_dir out;   /* only on rank 0 */
    struct dir_lock lock; /* only on rank 0 */
    struct parts parts;
    bool wanted[N_REPORTS];
    const char *const *tables; /* written or removed beside the reports; ends with NULL */
    /* The reports of all points; the first n_joined points have been joined. Only on rank 0. */
    pthread_mutex_t joining;
    struct ifl_joint *joints[N_REPORTS]; /* NULL: not begun */
    size_t n_joined;                     /* number of leading points that have been joined */
};

/* A finished point: simulated, or failed for a reason that does not concern the other points. */
struct point_record {
    struct ifl_error error; /* code 0: simulated */
    struct point_result result;
    struct checksum parts[N_REPORTS];
};

/* dir NULL: the directory that the configuration names. Changes no file. */
int run_files_init(struct run_files *files, const struct study *study, struct inputs *inputs,
                   const char *dir, struct ifl_error *error);
/* For a search for the capacity: one record of record_bytes for all replications of a combination,
 * and no reports of points. The study hash differs from that of a run of the same configuration. */
void run_files_of_searches(struct run_files *files, size_t record_bytes);
/* Makes the directory, parents included, and locks it; removes the points of earlier runs unless
 * `resume`. IFL_E_INPUT if it cannot be written to, if another run writes to it, or if a file that
 * the study is flown from would be replaced there; then nothing has been touched. Once it is locked
 * SIGINT and SIGTERM stop the study (interrupt.h), so that no lock stays behind. */
int run_files_open(struct run_files *files, bool resume, const struct ifl_notes *notes,
                   struct ifl_error *error);
/* True if this configuration has been finished here; *when tells the time. */
bool run_files_whole(const struct run_files *files, struct timespec *when);
size_t run_files_n_records(const struct run_files *files);
/* True if the study has more than one record, so that a run of it can be resumed. */
bool run_files_resumable(const struct run_files *files);

/* Returns options with the paths of a point's files; the paths are stored in `paths`. */
struct ifl_recorder_options run_files_of_point(const struct run_files *files, size_t point,
                                               char paths[N_REPORTS][IFL_PATH_BYTES]);
/* Writes the record of a finished point; its files must exist. */
int run_files_put(const struct run_files *files, size_t point, const struct input_sums *inputs,
                  struct point_record *record, struct ifl_error *error);
/* Reads the point's record. False if there is none, or if one of its files has changed its size. */
bool run_files_get(const struct run_files *files, size_t point, struct point_record *record);
/* The name of a file of the point with another checksum than in the record; NULL: none. */
const char *run_files_damaged(const struct run_files *files, size_t point,
                              const struct point_record *record);

/* Appends the points that are recorded and not yet joined, up to the first that is missing, to
 * requests.csv, steps.csv, work.csv, quantiles.csv, timeline.json and the others, so that little is
 * left to do when the last point has ended. Any thread may call it; if another thread is at it,
 * it returns at once. */
int run_files_join(struct run_files *files, struct ifl_error *error);
/* Joins the rest and gives the reports their names. To be called before run_files_write_config. */
int run_files_close(struct run_files *files, struct ifl_error *error);
/* For a finished directory: takes over the lock file that a killed run has left, if there is one,
 * so that run_files_finish removes it. */
void run_files_clear_lock(struct run_files *files);
/* Removes what was not closed, unlocks the directory, and removes it if the run made it and left
 * nothing there. */
void run_files_finish(struct run_files *files);
/* A configuration that is read from its place and has the text already stays as it is. */
int run_files_write_config(const struct run_files *files, struct ifl_error *error);

#endif
