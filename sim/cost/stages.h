/* The stages of a pipeline: how many layers each has, and how long a step is in each. */
#ifndef SIM_COST_STAGES_H
#define SIM_COST_STAGES_H

#include "cost/cost.h"

enum { STAGES_MOST = 64 };

struct stages {
    int32_t n;
    int32_t layers[STAGES_MOST]; /* layers of each stage, or its share of the step's time */
};

/* Cuts the layers into n stages. `list`: the layers of each, as "10,11,11"; empty: equal parts, of
 * which those in front of the last one have one more where a rest is left, the last of them first
 * (vLLM v0.33, vllm/distributed/utils.py, get_pp_indices). Returns IFL_E_INPUT if the layers cannot
 * be divided so. */
int stages_cut(struct stages *stages, int32_t n, int32_t layers, const char *list,
               struct ifl_error *error);
/* Reads n numbers above 0, separated by commas. Returns false if the text is anything else. */
bool stages_read(struct stages *stages, int32_t n, const char *list);
/* Divides a step into n equal parts, if no model is named. */
void stages_cut_evenly(struct stages *stages, int32_t n);
int32_t stages_layers(const struct stages *stages); /* of all */
int32_t stages_most_layers(const struct stages *stages);

/* Fills ns[stages->n] with the time of the step in each stage, at least 1 ns each, and *hop_ns with
 * its time from one stage to the next. A cost that knows no stages divides the time of the step by
 * the layers. Returns a negative value as cost_step_ns does. */
int64_t cost_stages_ns(struct cost *cost, const struct ifl_step_totals *totals,
                       const struct stages *stages, int64_t *ns, int64_t *hop_ns);

#endif
