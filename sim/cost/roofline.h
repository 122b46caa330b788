/* The roofline of one rank without cached results, for callers that change the profile between
 * calls, as a fit does. */
#ifndef SIM_COST_ROOFLINE_H
#define SIM_COST_ROOFLINE_H

#include "inflight/executor.h"

#include "cost/hardware.h"
#include "cost/kernels.h"
#include "cost/model.h"

struct roofline_rank {
    const struct model *model; /* all three borrowed */
    const struct hardware *hardware;
    const struct host_times *host;
    struct model_linear linears[MODEL_LINEARS], head;
    const struct lines_profile *allreduce; /* mostly in `hardware`; NULL on one GPU */
    struct attention_heads heads;          /* of a rank */
    double ffn_columns;                    /* of a rank */
    double block_bytes;                    /* of a rank, all its layers */
    int32_t n_stages;                      /* of the pipeline */
};

/* Requires that the ranks can share the model (model_check_parallel). Where the profile has no
 * lines of their all-reduce, `allreduce` is NULL, and the caller sets others before
 * roofline_step_s. */
void roofline_rank_set(struct roofline_rank *rank, const struct model *model,
                       const struct platform *platform, int32_t tensor_parallel, int32_t n_stages,
                       int32_t block_tokens);
double roofline_step_s(const struct roofline_rank *rank, const struct ifl_step_totals *totals);

#endif
