/* One point of a study, from its configuration to its reports: reads the trace, sizes the KV pool,
 * connects policies, cost and recorder, and runs the simulation (the flight). */
#ifndef SIM_RUN_POINT_H
#define SIM_RUN_POINT_H

#include <signal.h>
#include <stdatomic.h>

#include "inflight/report.h"

#include "config/config.h"
#include "run/executor_sim.h"
#include "run/machine.h"
#include "run/profile_shelf.h"
#include "run/source.h"
#include "run/trace_shelf.h"

/* A member of an ensemble: a run with costs drawn from the uncertainty of their fit. */
struct point_member {
    uint64_t number; /* 0: no member; the fitted costs */
    uint64_t seed;   /* seed of the draws: the same number and seed draw the same costs */
};

/* Changes of a flight that the configuration does not have: requests in memory, or a changed
 * machine. Zeroed: no change. */
struct point_trial {
    const struct ifl_trace *trace; /* used whole, in place of workload.trace; borrowed */
    /* changes the machine before the flight */
    void (*change)(void *context, struct machine *machine);
    void *context;
    struct step_noise noise;
};

struct point_options {
    const struct config *config;
    int32_t point;
    struct point_member member;
    struct point_trial trial;
    struct ifl_recorder_options reports; /* only the paths are read; point_fly fills in the rest */
    const char *intervals_path;          /* written if cost.ensemble is above 0 */
    const char *speculation_path;        /* written if tokens are guessed, or NULL */
    struct trace_shelf *traces;          /* shared by the points of a study */
    struct profile_shelf *profiles;      /* also shared by the points of a study */
    const struct source *source;         /* source of requests in place of workload.trace; NULL:
                                            none */
    bool by_client;                      /* fill client_attainment_frac; then nothing else receives
                                            the records of requests */
    bool is_last;                        /* no other point will need a trace */
    struct ifl_notes notes;              /* notes about the size of the KV pool and about the
                                            trace */
    const volatile sig_atomic_t *stop;
    atomic_ullong *n_ended, *n_requests; /* for a progress line, or NULL */
};

struct point_result {
    struct ifl_summary summary;
    struct ifl_limits limits;
    double read_s, simulate_s, write_s; /* wall time */
    uint64_t n_plans, n_repeats;
};

int point_fly(const struct point_options *options, struct point_result *result,
              struct ifl_error *error);

#endif
