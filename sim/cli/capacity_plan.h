/* The answer of `inflight capacity` with capacity.target_rps: plan.csv, a table and a figure.
 *
 * Of each deployment: the fewest replicas, what they cost an hour and a million output tokens, and
 * the energy of their GPUs. Tokens are those that the target brings, so that a trace that ends has
 * no say. Energy is power x GPUs x time, at the power that the configuration gives, or else at the
 * GPUs' thermal design power: more than they take over a long time, without hosts, switches and
 * cooling. The intervals of costs are those of the number of replicas. */
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
    int32_t replicas, low, high, members_low, members_high; /* 0: none, or no end */
    struct replica_cost cost;
    double tokens_per_request; /* of the answers */
    size_t n_trials, n_objectives;
    struct objective objectives[MAX_OBJECTIVES];
    struct capacity_trial at; /* with that many replicas, or with the most that were tried */
    char binding[256];        /* the objectives that one replica less misses */
    bool cheapest;            /* by price; without prices, by GPUs */
};

void plan_fill(const struct capacity *found, const struct replica_cost *cost, double target_rps,
               struct plan_row *row);
void plan_mark(struct plan_row *rows, size_t n);
int plan_write(const char *path, const struct study *study, const struct plan_row *rows, size_t n,
               struct ifl_error *error);
void plan_print(FILE *out, const struct study *study, const struct plan_row *rows, size_t n);
/* IFL_E_STALLED, with the deployment that comes nearest, if none meets the objectives. */
int plan_judge(const struct study *study, const struct plan_row *rows, size_t n,
               struct ifl_error *error);

/* plan_figure.csv, and from it the figure `plan`, in the folder. */
int plan_draw(const char *dir, const struct study *study, const struct plan_row *rows, size_t n,
              struct ifl_error *error);

#endif
