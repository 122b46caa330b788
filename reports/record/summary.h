/* The numbers of one point, from its requests and steps. */
#ifndef INFLIGHT_REPORTS_SUMMARY_H
#define INFLIGHT_REPORTS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/report.h"
#include "record/exact_sum.h"
#include "record/life_log.h"
#include "record/pressure.h"
#include "record/quantile.h"
#include "record/tally.h"

/* Over all steps; slots and sequences are weighted by the step's duration. */
struct step_sums {
    uint64_t n_steps;
    int64_t last_end_ns;
    struct exact_sum time_ns, seqs_ns;
    struct exact_sum token_slots_ns, reserved_slots_ns, internal_slots_ns, pool_slots_ns;
    struct exact_sum used_blocks_ns, shared_blocks_ns;
    struct exact_sum adapters_ns; /* different adapters per step */
    uint64_t adapter_loads;
    struct pressure pressure;
};

/* step_sums.c: adds a step, or the steps of a stretch, which repeat one another. */
void step_sums_add(struct step_sums *sums, const struct ifl_step_record *step);
int64_t step_sums_lasted_ns(const struct ifl_stretch_record *of);
void step_sums_add_stretch(struct step_sums *sums, const struct ifl_stretch_record *of);

/* Lives of a log. */
struct summary_lives {
    const struct life_log *log;
    size_t from;             /* index of the first life, by arrival */
    const uint32_t *pool_of; /* [replicas]: only those of `pool`; NULL: all */
    uint32_t pool;
};

struct summary_input {
    struct summary_lives lives;
    struct tally *tally;     /* tally of these lives */
    const struct tally *run; /* tally of the lives of all pools; rates use its time */
    const struct step_sums *steps;
    const struct distribution *itl;
};

/* Fills the summary's numbers about steps. */
void summary_average_steps(const struct step_sums *steps, struct ifl_summary *summary);
int summarize(const struct summary_input *input, struct distribution latencies[N_LATENCIES],
              struct ifl_summary *summary, struct ifl_error *error);

#endif
