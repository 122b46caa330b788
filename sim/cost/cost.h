/* The cost of a step: the time that a GPU of a given kind takes to run it.
 *
 *   linear     four coefficients, for checks of the simulator with a pencil or queueing theory
 *   roofline   derives FLOPs and bytes from the model's architecture and maps them to time with the
 *              fitted numbers of a hardware profile
 *   table      looks operations up, as other simulators do, so that schedulers can be compared at
 *              equal cost
 *
 * Durations depend only on the integer totals of the step. A cost caches its results, so each cost
 * is used by one thread. */
#ifndef SIM_COST_COST_H
#define SIM_COST_COST_H

#include "inflight/error.h"
#include "inflight/executor.h"

#include "cost/hardware.h"
#include "cost/model.h"

struct cost;

struct linear_cost { /* seconds */
    double step_s, prefill_token_s, decode_seq_s, context_token_s;
    double prefill_square_s;
    double decode_step_s;     /* 0: step_s */
    int32_t large_batch_seqs; /* 0: no batch is large */
    double large_step_s, large_seq_s, large_context_token_s;
};

/* duration = step_s + prefill_token_s x prefill tokens + decode_seq_s x decoding sequences
 *          + context_token_s x tokens of K/V that decoding sequences read, the new ones included
 *          + prefill_square_s x sum of squares of the prefill tokens of each sequence.
 * A step without prefill begins with decode_step_s; from large_batch_seqs sequences on it has the
 * three coefficients of large batches. DistServe's simulator has this form (arXiv 2401.09670,
 * section 4.1; simdistserve/estimators/time_estimator.py at 82831f1). */
struct cost *cost_create_linear(const struct linear_cost *linear, struct ifl_error *error);

/* The model and the platform are copied. A step runs through the stages of the pipeline one after
 * the other; stages.h has its time in each. */
struct cost *cost_create_roofline(const struct model *model, const struct platform *platform,
                                  const struct parallel *parallel, int32_t block_tokens,
                                  struct ifl_error *error);

/* `dir` holds one file each ending in linear_ms_per_layer.csv, attn_decode_ms_per_layer.csv and
 * attn_prefill_ms_per_layer.csv, gzipped or not: milliseconds a layer on one GPU, the columns in
 * op_table.c. The model is copied. */
struct cost *cost_create_table(const struct model *model, const char *dir, struct ifl_error *error);

void cost_destroy(struct cost *cost);
/* From now on each step also takes the time of its adapters, whatever the kind of cost. */
struct adapter_cost;
void cost_adapt(struct cost *cost, const struct adapter_cost *adapters);

/* A warning about the roofline's durations for this model, or NULL. */
const char *cost_roofline_warning(const struct model *model, const struct hardware *hardware);

/* Returns the duration of a step in nanoseconds, rounded once, at least 1. Returns a negative value
 * if the cost has no duration for the step; cost_why_not then fills the error, such as the row that
 * a table lacks. */
int64_t cost_step_ns(struct cost *cost, const struct ifl_step_totals *totals);
/* Returns the duration of the step of a group of data-parallel ranks, of which n have work. Each of
 * their totals must have a duration. */
int64_t cost_group_step_ns(struct cost *cost, const struct ifl_step_totals *const *of, size_t n);
enum { COST_MAX_RANKS = 256 }; /* n may not be larger */
/* Fills ns[0 .. k) with the durations of up to n consecutive steps, each with one more token for
 * the same sequences, and returns k:
 *   - it stops before a step without a duration;
 *   - durations after the first are below 2^31 ns, and it stops before a longer one. */
size_t cost_run_ns(struct cost *cost, const struct ifl_step_totals *first, size_t n, int64_t *ns);
enum { COST_MAX_RUN = 64 }; /* n may not be larger */
int cost_why_not(const struct cost *cost, const struct ifl_step_totals *totals,
                 struct ifl_error *error);

#endif
