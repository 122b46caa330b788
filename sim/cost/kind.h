/* The first member of every kind of cost; cost_step_ns and cost_destroy need no more. A cost is one
 * allocation, unless it has `finish`. */
#ifndef SIM_COST_KIND_H
#define SIM_COST_KIND_H

#include "cost/adapter_cost.h"
#include "cost/cost.h"
#include "cost/stages.h"

struct cost {
    /* Seconds of a step; NAN if the cost has no duration for it, and why_not then fills the error.
     * why_not is NULL if every step has a duration. */
    double (*step_s)(struct cost *, const struct ifl_step_totals *);
    int (*why_not)(const struct cost *, const struct ifl_step_totals *, struct ifl_error *);
    /* Optional: s[n] of n consecutive steps of decodes alone, equal to step_s to the last bit. Each
     * step reads growth_tokens more tokens than the one before. */
    void (*run_s)(struct cost *, const struct ifl_step_totals *first, int32_t growth_tokens,
                  size_t n, double *s);
    /* Optional: seconds of the step of data-parallel ranks, of which n have work; otherwise the
     * longest of their own. */
    double (*group_s)(struct cost *, const struct ifl_step_totals *const *of, size_t n);
    /* Optional: seconds in each stage of a pipeline, s[stages->n], and from one to the next; then
     * step_s is the sum of all. */
    void (*stages_s)(struct cost *, const struct ifl_step_totals *, const struct stages *stages,
                     double *s, double *hop_s);
    /* Optional: frees what the cost owns besides its own allocation. */
    void (*finish)(struct cost *);
    bool adapts; /* set by cost_adapt */
    struct adapter_cost adapters;
};

#endif
