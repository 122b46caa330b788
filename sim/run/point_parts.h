/* What the files of a point share: point.c assembles and flies it, point_words.c reports on it. */
#ifndef SIM_RUN_POINT_PARTS_H
#define SIM_RUN_POINT_PARTS_H

#include "run/adapter_table.h"
#include "run/client_shares.h"
#include "run/executor_paced.h"
#include "run/executor_sim.h"
#include "run/flight.h"
#include "run/machine.h"
#include "run/point.h"
#include "run/speculation.h"

/* What one flight of a point is made of. */
struct point_pool {
    struct machine machine;
    struct ifl_limits limits;
    struct speculation speculation;
    struct adapter_table adapters; /* none where the trace has none */
    struct cost *cost;             /* NULL: no step's duration is computed */
};

/* Of a replica; the store is in the first one of a pool. */
struct point_tiers {
    struct kv_tier of[N_TIERS];
};

struct point {
    struct point_pool *pools;       /* [n_pools] */
    struct fleet_pool *fleet_pools; /* [n_pools] */
    struct ifl_pool *named;         /* [n_pools] for the reports */
    size_t n_pools;
    struct ifl_trace trace;
    struct workload workload;
    struct replica *replicas; /* [n_replicas] */
    uint32_t n_replicas;
    struct tier_links *tier_links; /* [n_pools]; NULL: there are no tiers below the devices */
    struct point_tiers *tiers;     /* [n_replicas], or NULL */
    struct swap_link *swap_links;  /* [n_pools]; NULL: swaps are part of steps */
    struct module router;
    struct executor_sim simulator;
    struct executor_paced paced;    /* of the simulator, where requests come from a source */
    struct executor_engine *engine; /* NULL: simulated */
    struct recorded *recorded;      /* NULL: no steps are replayed */
    struct ifl_recorder *recorder;
    struct adapter_names adapter_names; /* of the trace, which is freed before the recorder ends */
    struct client_shares clients;       /* heard where they are asked for */
    int64_t warmup_end_ns;              /* by MSER-5, once flown */
};

/* With a source its rows stand for those of a trace. */
static inline const struct ifl_trace *point_trace(const struct point_options *options,
                                                  const struct point *point)
{
    return options->source ? options->source->trace : &point->trace;
}

/* ---- point_pools.c ---- */

/* Fills fleet_pools and named, and counts the replicas. */
void point_describe_pools(const struct point_options *options, struct point *point);
/* Fills the limits of each pool. */
int point_size_pools(const struct point_options *options, struct point *point,
                     struct ifl_error *error);
/* Names the pool in an input error. Returns the error's code. */
int point_blame_pool(const struct config *config, size_t pool, struct ifl_error *error);

/* ---- point_tiers.c ---- */

int point_create_tiers(const struct config *config, struct point *point, struct ifl_error *error);
/* Those of a replica, NULL where it has none. */
void point_tiers_of(const struct point *point, const struct fleet_pool *pool, uint32_t number,
                    struct kv_tier *of[N_TIERS]);
/* Blocks for which an engine has room in the tier of the replica; 0: it has none. */
size_t point_tier_places(const struct point *point, uint32_t replica);
void point_destroy_tiers(struct point *point);

/* ---- point_swap.c ---- */

int point_create_swaps(const struct config *config, struct point *point, struct ifl_error *error);

/* ---- point_words.c ---- */

/* ---- point.c ---- */

/* One flight, or two: the end of the warm-up is known only after a flight. The second one costs
 * time, but no memory, and every metric can leave the warm-up out. */
int point_fly_member(const struct point_options *options, struct point_result *result,
                     struct ifl_error *error);

/* ---- point_again.c ---- */

/* The point again, with costs drawn from what their fit leaves open: writes intervals.csv. */
int point_fly_ensemble(const struct point_options *options, const struct point_result *nominal,
                       struct ifl_error *error);
/* True where the checking mode compares with a flight of its own. */
bool point_is_compared(const struct point_options *options);
/* Flies it: IFL_E_POLICY where its summary is not that of the checked one. */
int point_compare(const struct point_options *options, const struct ifl_summary *checked,
                  struct ifl_error *error);

/* ---- point_words.c ---- */

/* A note, if there is a text and a listener. */
void point_say(const struct point_options *options, const char *text);
/* The same of a pool, with its name if it has one. */
void point_say_of(const struct point_options *options, size_t pool, const char *text);
/* What of the cluster's keys has no effect. */
void point_say_unused(const struct point_options *options, const struct point *point);

/* Why requests were rejected, shed or failed: a row of summary.csv only counts them. */
/* The same point flown with each promised step planned, and as runs of steps: both summaries must
 * be the same. IFL_E_POLICY with the first number that is not, and with the modules that hear of
 * steps. */
int point_compare_runs(const struct point_options *options, const struct ifl_summary *checked,
                       const struct ifl_summary *as_runs, struct ifl_error *error);
void point_explain_refusals(const struct point_options *options, const struct point *point,
                            const struct flight *flight, const struct ifl_limits *limits);
/* How far the plans were those of the recording: to the terminal, and in `summary`. */
void point_explain_differences(const struct point_options *options, const struct point *point,
                               struct ifl_summary *summary);
/* How many steps data-parallel ranks without work ran. */
void point_tell_dummies(const struct point_options *options, const struct flight *flight);
/* Of how many adapters a step was, where that is more than serving.adapters.max_loras. */
void point_tell_adapters(const struct point_options *options, const struct point *point);
/* That a host needs time for so many sequences, where the deployment has none. */
void point_tell_host(const struct point_options *options, const struct point *point,
                     const struct ifl_summary *summary);
/* Adds to summary->assumed which durations rest on no measurement, by pools. */
void point_disclose(const struct config *config, const struct point *point,
                    struct ifl_summary *summary);

#endif
