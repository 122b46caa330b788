/* Functions that the files of a point share, one section per file: point.c assembles and runs it,
 * point_words.c reports on it. */
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

/* A pool of a point: what its replicas have in common. */
struct point_pool {
    struct machine machine;
    struct ifl_limits limits;
    struct speculation speculation;
    struct adapter_table adapters; /* empty if the trace has no adapters */
    struct cost *cost;             /* NULL: no step's duration is computed */
};

/* The tiers of a replica. The store of a pool belongs to the pool's first replica. */
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
    struct executor_paced paced;    /* paces the simulator if requests come from a source */
    struct executor_engine *engine; /* NULL: simulated */
    struct recorded *recorded;      /* NULL: no steps are replayed */
    struct ifl_recorder *recorder;
    struct adapter_names adapter_names; /* names of the trace's adapters; the trace is freed before
                                           the recorder ends */
    struct client_shares clients;       /* filled if options->by_client */
    int64_t warmup_end_ns;              /* end of the warm-up by MSER-5, known after the flight */
};

/* Returns the trace of the point; with a source, the source's trace, which has a row per place. */
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
/* Adds the name of the pool to an input error. Returns the error's code. */
int point_blame_pool(const struct config *config, size_t pool, struct ifl_error *error);

/* ---- point_tiers.c ---- */

int point_create_tiers(const struct config *config, struct point *point, struct ifl_error *error);
/* Fills the tiers of a replica; NULL if it has none of that kind. */
void point_tiers_of(const struct point *point, const struct fleet_pool *pool, uint32_t number,
                    struct kv_tier *of[N_TIERS]);
/* Returns the number of blocks for which an engine has room in the tier of the replica; 0: it has
 * no tier. */
size_t point_tier_places(const struct point *point, uint32_t replica);
void point_destroy_tiers(struct point *point);

/* ---- point_swap.c ---- */

int point_create_swaps(const struct config *config, struct point *point, struct ifl_error *error);

/* ---- point.c ---- */

/* Runs one flight, or two: the end of the warm-up is known only after a flight. The second one
 * costs time, but no memory, and every metric can then leave out the warm-up. */
int point_fly_member(const struct point_options *options, struct point_result *result,
                     struct ifl_error *error);

/* ---- point_again.c ---- */

/* Runs the point again with costs drawn from the uncertainty of their fit, and writes
 * intervals.csv. */
int point_fly_ensemble(const struct point_options *options, const struct point_result *nominal,
                       struct ifl_error *error);
/* True if the checking mode compares with a second flight. */
bool point_is_compared(const struct point_options *options);
/* Runs the second flight. Returns IFL_E_POLICY if its summary differs from that of the checked
 * flight. */
int point_compare(const struct point_options *options, const struct ifl_summary *checked,
                  struct ifl_error *error);

/* ---- point_words.c ---- */

/* Gives the text as a note, if the text is not empty and notes are wanted. */
void point_say(const struct point_options *options, const char *text);
/* As point_say, with the name of the pool in front if it has one. */
void point_say_of(const struct point_options *options, size_t pool, const char *text);
/* Names the keys of the cluster that have no effect. */
void point_say_unused(const struct point_options *options, const struct point *point);

/* Compares the summaries of the same point, run with each promised step planned and run with steady
 * runs. Returns IFL_E_POLICY if they differ; the error names the first different number and the
 * modules with hooks for steps. */
int point_compare_runs(const struct point_options *options, const struct ifl_summary *checked,
                       const struct ifl_summary *as_runs, struct ifl_error *error);
/* In the checking mode: says which promises were made and not tested, and why. */
void point_tell_untested(const struct point_options *options, const struct point *point);
/* Says why requests were rejected, shed or failed: a row of summary.csv only counts them. */
void point_explain_refusals(const struct point_options *options, const struct point *point,
                            const struct flight *flight, const struct ifl_limits *limits);
/* Says how far the plans agreed with the recording: in a note and in `summary`. */
void point_explain_differences(const struct point_options *options, const struct point *point,
                               struct ifl_summary *summary);
/* Says how many dummy steps data-parallel ranks without work ran. */
void point_tell_dummies(const struct point_options *options, const struct flight *flight);
/* Says how many adapters a step used at most, if that is more than serving.adapters.max_loras. */
void point_tell_adapters(const struct point_options *options, const struct point *point);
/* Says that a host needs time for so many sequences, if the deployment has no such cost. */
void point_tell_host(const struct point_options *options, const struct point *point,
                     const struct ifl_summary *summary);
/* Adds to summary->assumed, for each pool, which durations rest on no measurement. */
void point_disclose(const struct config *config, const struct point *point,
                    struct ifl_summary *summary);

#endif
