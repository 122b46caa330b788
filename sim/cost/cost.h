/* The cost of a step: what a GPU of a given kind takes to run it.
 *
 * `linear` has four coefficients and exists so that anyone can check the simulator with a pencil or
 * with queueing theory. `roofline` derives FLOPs and bytes from the model's architecture and maps
 * them to time with the fitted numbers of a hardware profile. `table` looks operations up, as other
 * simulators do, so that schedulers can be compared at equal cost. Their durations depend only on
 * the integer totals of the step. `recorded` replays the measured steps of a run one by one. A cost
 * caches what it has computed and is used by one thread. */
#ifndef SIM_COST_COST_H
#define SIM_COST_COST_H

#include "inflight/error.h"
#include "inflight/executor.h"

#include "cost/hardware.h"
#include "cost/model.h"

struct cost;

struct linear_cost { /* seconds */
    double step_s, prefill_token_s, decode_seq_s, context_token_s;
};

/* duration = step_s + prefill_token_s x prefill tokens + decode_seq_s x decoding sequences
 *          + context_token_s x tokens whose K/V decoding sequences read, the new ones included */
struct cost *cost_create_linear(const struct linear_cost *linear, struct ifl_error *error);

/* The model and the profile are copied. tensor_parallel ranks share every layer; pipeline_parallel
 * stages have each their share of them, and a step goes through all, one after the other. */
struct cost *cost_create_roofline(const struct model *model, const struct hardware *hardware,
                                  int32_t tensor_parallel, int32_t pipeline_parallel,
                                  int32_t block_tokens, struct ifl_error *error);

/* `dir` holds one file each ending in linear_ms_per_layer.csv, attn_decode_ms_per_layer.csv and
 * attn_prefill_ms_per_layer.csv, gzipped or not: milliseconds a layer on one GPU, the columns in
 * op_table.c. The model is copied. */
struct cost *cost_create_table(const struct model *model, const char *dir, struct ifl_error *error);

/* The measured steps of a run: of its steps.csv in `dir`, gzipped or not, which is of one point. */
struct cost *cost_create_recorded(const char *dir, struct ifl_error *error);
void cost_destroy(struct cost *cost);

/* What a reader of the roofline's durations must know of this model, or NULL. */
const char *cost_roofline_warning(const struct model *model);

/* Nanoseconds, rounded once. Never less than 1 for a step that does anything; negative for one that
 * the tables do not reach, and then cost_why_not says which row they lack. */
int64_t cost_step_ns(struct cost *cost, const struct ifl_step_totals *totals);
/* The same of n steps that follow one another, each with one more token for the same sequences: of
 * the first, ns[0] and so on; of how many, 0 of a recorded cost: it stops before one that has no
 * answer, or takes two seconds and is not the first. */
size_t cost_run_ns(struct cost *cost, const struct ifl_step_totals *first, size_t n, int64_t *ns);
enum { COST_MAX_RUN = 64 }; /* n may not be larger */
/* When the next step of a replica begins that could at start_ns: a recorded one when it did. */
int64_t cost_start_ns(const struct cost *cost, uint32_t replica, int64_t start_ns);
/* The same of the next step of a replica, which begins at start_ns: for any kind, of which a
 * recorded one answers nothing else. */
int64_t cost_step_from_ns(struct cost *cost, uint32_t replica, int64_t start_ns,
                          const struct ifl_step_totals *totals);
int cost_why_not(const struct cost *cost, const struct ifl_step_totals *totals,
                 struct ifl_error *error);

#endif
