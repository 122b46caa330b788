/* The files of a run: their names, the parts that points write, and how parts become reports. */
#ifndef SIM_CLI_RUN_FILES_H
#define SIM_CLI_RUN_FILES_H

#include "inflight/report.h"

#include "config/config.h"

enum report_kind { REPORT_REQUESTS, REPORT_STEPS, REPORT_QUANTILES, REPORT_TIMELINE, N_REPORTS };

struct run_files {
    char dir[512];
    char summary[600], config[600];
    size_t n_points;
    bool wanted[N_REPORTS];
    char **parts[N_REPORTS]; /* [n_points] paths, owned */
};

/* Makes the directory, parents included. An unwritable one is the user's error. */
int run_files_open(struct run_files *files, const char *dir, size_t n_points,
                   const struct output_config *output, struct ifl_error *error);
struct ifl_recorder_options run_files_of_point(const struct run_files *files, size_t point);
/* Joins the points' parts into requests.csv, steps.csv, quantiles.csv and timeline.json. */
int run_files_join(struct run_files *files, struct ifl_error *error);
int run_files_write_config(const struct run_files *files, const struct study *study,
                           struct ifl_error *error);
/* Removes the parts that are left. Zeroed memory is fine. */
void run_files_close(struct run_files *files);

#endif
