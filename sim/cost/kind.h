/* What every kind of cost begins with; cost_step_ns and cost_destroy know no more. One allocation
 * holds it all. */
#ifndef SIM_COST_KIND_H
#define SIM_COST_KIND_H

#include "cost/cost.h"

struct cost {
    /* NAN where there is no answer; then why_not, which is NULL where there always is one. */
    double (*step_s)(struct cost *, const struct ifl_step_totals *);
    int (*why_not)(const struct cost *, const struct ifl_step_totals *, struct ifl_error *);
    /* step_s of n steps that follow one another, of decodes and nothing else, each of which reads
     * that many tokens more than the one before: s[n], to the last bit. Optional. */
    void (*run_s)(struct cost *, const struct ifl_step_totals *first, int32_t growth_tokens,
                  size_t n, double *s);
    /* In place of step_s where the totals do not tell; negative where there is no answer. */
    int64_t (*recorded_start_ns)(const struct cost *, uint32_t replica, int64_t start_ns);
    int64_t (*recorded_ns)(struct cost *, uint32_t replica, int64_t start_ns,
                           const struct ifl_step_totals *);
};

#endif
