/* One point of a study, from its configuration to its reports: reads the trace, sizes the KV pool,
 * wires policies, cost and recorder together and flies. */
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

/* A member of an ensemble, flown with costs drawn from what their fit leaves open. */
struct point_member {
    uint64_t number; /* 0: none, the fitted costs themselves */
    uint64_t seed;   /* of the draws: the same number and seed draw the same costs */
};

/* A flight that stands for another than the configuration says: of requests in memory, on a
 * machine that is changed. Zeroed: it changes nothing. */
struct point_trial {
    const struct ifl_trace *trace; /* flown in place of workload.trace, whole; borrowed */
    /* changes the machine before it is flown on */
    void (*change)(void *context, struct machine *machine);
    void *context;
    struct step_noise noise;
};

struct point_options {
    const struct config *config;
    int32_t point;
    struct point_member member;
    struct point_trial trial;
    struct ifl_recorder_options reports; /* the paths; the rest is filled in */
    const char *intervals_path;          /* written where cost.ensemble asks for members */
    const char *speculation_path;        /* written where tokens are guessed, or NULL */
    struct trace_shelf *traces;          /* shared by the points of a study */
    struct profile_shelf *profiles;      /* shared, too */
    const struct source *source;         /* of requests, in place of workload.trace; NULL: none */
    bool by_client;                      /* fill client_attainment_frac; no other then hears of
                                            requests */
    bool is_last;                        /* no other point will need a trace */
    struct ifl_notes notes;              /* how large the KV pool is, and about the trace */
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
