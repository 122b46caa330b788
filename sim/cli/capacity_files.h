/* The reports of `inflight capacity`:
 *   capacity.csv   a row for each deployment
 *   trials.csv     a row for each rate that was tried
 *   members.csv    a row for each member of an ensemble
 *   and a table. With capacity.target_rps: plan.csv in place of capacity.csv (capacity_plan.h). */
#ifndef SIM_CLI_CAPACITY_FILES_H
#define SIM_CLI_CAPACITY_FILES_H

#include <stdio.h>

#include "run/capacity.h"

struct capacity_row {
    struct ifl_error error; /* code 0: searched */
    enum capacity_status status;
    double rps, low_rps, high_rps;
    double members_low_rps, members_high_rps; /* written where the study has an ensemble */
    struct capacity_trial at; /* the trial at the capacity; its latencies are NaN if there is
                                 none */
    struct objective objectives[MAX_OBJECTIVES];
    size_t n_objectives;
    char binding[256]; /* the objectives that a higher rate misses */
    size_t n_trials;
    int32_t n_gpus;
    double usd_per_hour; /* NaN where no price is known */
    double usd_per_mtok; /* dollars per million output tokens */
    /* pareto: no other row is at least as good in cost and latency and better in one of them;
     * cheapest: no other row costs less per token */
    bool pareto_ttft, pareto_tbt, cheapest;
};

/* Marks the Pareto front of cost against P90 TTFT and against P99 TBT. Without prices, cost is GPU
 * time. */
void capacity_mark(struct capacity_row *rows, size_t n);

int capacity_write(const char *path, const struct study *study, const struct capacity_row *rows,
                   size_t n, struct ifl_error *error);
/* capacity_figure.csv, and from it the figure of the rates, in the folder. */
int capacity_draw(const char *dir, const struct study *study, const struct capacity_row *rows,
                  size_t n, struct ifl_error *error);
void capacity_write_trial_head(FILE *out, const struct study *study);
void capacity_write_trials(FILE *out, const struct study *study, size_t row,
                           const struct capacity *capacity);
void capacity_write_member_head(FILE *out, const struct study *study);
void capacity_write_members(FILE *out, const struct study *study, size_t row,
                            const struct capacity_member *members, size_t n);
void capacity_print(FILE *out, const struct study *study, const struct capacity_row *rows,
                    size_t n);

#endif
