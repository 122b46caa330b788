/* The highest arrival rate that a deployment serves within its objectives.
 *
 * A trial simulates all replications at one rate. The margin of a trial is its relative distance to
 * the objectives: negative if it meets them, positive if it misses them. Rates are doubled until
 * one misses the objectives (or halved until one meets them), then Brent's method finds the root of
 * the margin in log(rate); all rates and all policies see the same random numbers. The interval of
 * the capacity has the same roots for the ends of the margin's 95% confidence interval.
 *
 * With cost.ensemble = M the search is repeated M times with costs drawn from what their fit leaves
 * open. Member m has the same costs in every replication, at every rate and in every deployment of
 * a study, and flies with the random numbers of the fitted costs, so that costs alone are between
 * its capacity and theirs. The quantiles 0.025 and 0.975 of the members' capacities
 * (ifl_ensemble_quantile) lie at distances d from the capacity, the ends of the margin's interval
 * at distances s. Both causes are independent, so the ends of the interval lie at sqrt(s^2 + d^2)
 * (JCGM 100:2008, 5.1.2), each side by itself; never below 0.
 *
 * With capacity.target_rps the rate is given, and the fewest replicas are searched that meet the
 * objectives at it (capacity_replicas.c).
 *
 * The criteria are those of the literature, or capacity.objectives, all of which have to hold:
 *   sarathi    P99 of the time between tokens within capacity.p99_tbt_s, and the median scheduling
 *              delay within capacity.delay_s (Agrawal et al., OSDI 2024, section 5)
 *   distserve  attainment of slo.* of at least capacity.attainment_frac (Zhong et al., OSDI 2024)
 *   goodput    the most requests a second that meet slo.*, at whatever rate (vLLM's goodput)
 *   delay      mean scheduling delay within capacity.delay_s (queueing theory)
 * If only latencies have limits (sarathi, delay), 99% of the requests have to finish, too. */
#ifndef SIM_RUN_CAPACITY_H
#define SIM_RUN_CAPACITY_H

#include <signal.h>
#include <stdatomic.h>

#include "inflight/report.h"

#include "config/config.h"
#include "run/objectives.h"
#include "run/profile_shelf.h"
#include "run/trace_shelf.h"

enum { CAPACITY_MAX_TRIALS = 64, CAPACITY_MAX_THREADS = 256 };

enum capacity_status {
    CAPACITY_FOUND,
    CAPACITY_NONE,     /* even the lowest rate misses the objectives */
    CAPACITY_UNBOUNDED /* even the highest rate meets the objectives: this trace is too short to
                          tell */
};

struct objective_trial {
    struct ifl_interval value;
    double margin;
};

struct capacity_trial {
    double rate_rps;
    int32_t replicas;                          /* 0: as configured */
    double margin, margin_low, margin_high;    /* the margin, and the ends of its interval */
    struct objective_trial of[MAX_OBJECTIVES]; /* [n_objectives] */
    struct ifl_interval goodput_rps, attainment_frac, output_throughput_tok_per_s;
    struct ifl_interval request_throughput_rps;
    struct ifl_interval p90_ttft_s, p99_ttft_s, p99_itl_s, p50_queue_s, mean_queue_s;
};

/* Result of the search with the costs of one member of the ensemble. */
struct capacity_member {
    enum capacity_status status;
    double rps;      /* 0 if the status is CAPACITY_NONE, INFINITY if it is CAPACITY_UNBOUNDED */
    double crossing; /* for a target: as in struct capacity; INFINITY if the status is
                        CAPACITY_NONE */
    size_t n_trials;
};

struct capacity {
    enum capacity_status status;
    /* low and high are NaN with one replication and no ensemble, or if out of reach */
    double rps, low_rps, high_rps;
    double members_low_rps, members_high_rps; /* quantiles 0.025 and 0.975; NaN without members */
    size_t n_members; /* members searched: cost.ensemble if the status is CAPACITY_FOUND */
    /* With a target: the fewest replicas that meet the objectives, and the ends of their interval;
     * 0 if none is found or it is out of reach. A search finds the crossing: the point between two
     * whole numbers at which the interpolated margin is 0. The number of replicas is the whole
     * number at or above it. */
    int32_t replicas, low_replicas, high_replicas, members_low_replicas, members_high_replicas;
    double crossing, low_crossing, high_crossing; /* NaN: no interval; INFINITY: out of reach */
    struct objective objectives[MAX_OBJECTIVES];
    size_t n_objectives;
    /* Bit i: objective i is missed in the trial next to that at the capacity (at a higher rate, or
     * with fewer replicas). 0: there is no such trial. */
    uint32_t binding;
    size_t at;                                         /* index of the trial at the capacity */
    struct capacity_trial trials[CAPACITY_MAX_TRIALS]; /* in the order of the search */
    size_t n_trials;
};

/* Counts for a progress line, of all searches that share this struct. */
struct capacity_trials {
    atomic_ullong n_flown;
    atomic_ullong n_closing; /* searches that have one rate that meets the objectives and one that
                                misses them */
    atomic_ullong n_left;    /* trials that these searches still need if each trial halves the
                                distance of the two */
};

struct capacity_options {
    const struct config *configs; /* [n_replications] */
    size_t n_replications;
    struct capacity_member *members; /* [cost.ensemble], to be filled; may be NULL if cost.ensemble
                                        is 0 */
    size_t n_threads;                /* threads that simulate the replications of a trial, at least
                                        1 */
    struct trace_shelf *traces;
    struct profile_shelf *profiles;
    const volatile sig_atomic_t *stop;
    atomic_ullong *n_ended;         /* for a progress line */
    struct capacity_trials *trials; /* for the progress line, too, or NULL */
};

/* Searches the capacity. GSL's error handler must be off. Returns 0 or the code of `error`. */
int capacity_find(const struct capacity_options *options, struct capacity *capacity,
                  struct ifl_error *error);
/* Simulates one trial at that rate: fills capacity->trials[0] and the objectives. */
int capacity_fly_at(const struct capacity_options *options, double rate_rps,
                    struct capacity *capacity, struct ifl_error *error);

#endif
