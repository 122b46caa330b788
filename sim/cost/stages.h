/* The stages of a pipeline: how many layers each has, and how long a step is in each. */
#ifndef SIM_COST_STAGES_H
#define SIM_COST_STAGES_H

#include "cost/cost.h"

enum { STAGES_MOST = 64 };

struct stages {
    int32_t n;
    int32_t layers[STAGES_MOST]; /* of each, or its share of the step's time */
};

/* Cuts the layers into n stages. `list`: the layers of each, as "10,11,11"; empty: equal parts, of
 * which those in front of the last one have one more where a rest is left, the last of them first
 * (vLLM v0.33, vllm/distributed/utils.py, get_pp_indices). IFL_E_INPUT: they cannot be cut so. */
int stages_cut(struct stages *stages, int32_t n, int32_t layers, const char *list,
               struct ifl_error *error);
/* Numbers above 0 with commas between them, n of them. False: the text is something else. */
bool stages_read(struct stages *stages, int32_t n, const char *list);
/* n equal parts, where no model is named. */
void stages_cut_evenly(struct stages *stages, int32_t n);
int32_t stages_layers(const struct stages *stages); /* of all */
int32_t stages_most_layers(const struct stages *stages);

/* Nanoseconds that the step is in each stage, ns[stages->n], at least 1 each, and on its way from
 * one to the next. A cost that knows no stages divides the time of the step by the layers.
 * Negative: as cost_step_ns. */
int64_t cost_stages_ns(struct cost *cost, const struct ifl_step_totals *totals,
                       const struct stages *stages, int64_t *ns, int64_t *hop_ns);

#endif
