/* The answer of `inflight capacity` with capacity.target_rps: plan.csv, a table and a figure.
 *
 * For each deployment: the fewest replicas, their cost in dollars an hour and for a million output
 * tokens, and the energy of their GPUs. Output tokens are those of target_rps requests a second, so
 * that the end of a short trace does not change the costs. Energy is power x GPUs x time, at the
 * power that the configuration gives, or else at the GPUs' thermal design power. The thermal design
 * power is more than GPUs take in the long run; hosts, switches and cooling are not counted. The
 * intervals of costs follow from the interval of the number of replicas. */
#ifndef SIM_CLI_CAPACITY_PLAN_H
#define SIM_CLI_CAPACITY_PLAN_H

#include <stdio.h>

#include "run/capacity.h"

/* What a replica is made of and costs. */
struct replica_cost {
    int32_t n_gpus;
    double usd_per_gpu_hour, watts_per_gpu; /* NaN: unknown */
    bool is_tdp;                            /* the watts are the thermal design power */
};

struct plan_row {
    struct ifl_error error; /* code 0: searched */
    enum capacity_status status;
    double target_rps;
    int32_t replicas, low, high, members_low, members_high; /* 0: none found, or no end of the
                                                               interval */
    struct replica_cost cost;
    double tokens_per_request; /* output tokens per request */
    size_t n_trials, n_objectives;
    struct objective objectives[MAX_OBJECTIVES];
    struct capacity_trial at; /* the trial with so many replicas, or with the largest number
                                 tried */
    char binding[256];        /* objectives that are missed with one replica fewer */
    bool cheapest;            /* by price; without prices, by GPUs */
};

void plan_fill(const struct capacity *found, const struct replica_cost *cost, double target_rps,
               struct plan_row *row);
void plan_mark(struct plan_row *rows, size_t n);
int plan_write(const char *path, const struct study *study, const struct plan_row *rows, size_t n,
               struct ifl_error *error);
void plan_print(FILE *out, const struct study *study, const struct plan_row *rows, size_t n);
/* Returns IFL_E_STALLED, naming the deployment that comes nearest, if none meets the objectives;
 * otherwise 0. */
int plan_judge(const struct study *study, const struct plan_row *rows, size_t n,
               struct ifl_error *error);

/* plan_figure.csv, and from it the figure `plan`, in the folder. */
int plan_draw(const char *dir, const struct study *study, const struct plan_row *rows, size_t n,
              struct ifl_error *error);

#endif
