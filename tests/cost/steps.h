/* Steps of decodes, and what they take, for the tests of the cost model. */
#ifndef TESTS_COST_STEPS_H
#define TESTS_COST_STEPS_H

#include "cost/roofline.h"

#include "loading.h"

static inline struct ifl_step_totals decodes(int32_t n_seqs, int64_t context)
{
    return (struct ifl_step_totals){.n_tokens = n_seqs,
                                    .n_decode_seqs = n_seqs,
                                    .n_sampled = n_seqs,
                                    .decode_context = n_seqs * context};
}

/* On one GPU of that profile. */
static inline double step_on(const char *profile, const struct model *model,
                             const struct ifl_step_totals *totals)
{
    static struct platform platform; /* larger than a stack frame should be */
    const struct parallel parallel = model_tensor_parallel(1);
    struct roofline_rank rank;
    struct ifl_error error;
    cr_assert_eq(hardware_load(profile, &platform, &error), 0, "%s", error.text);
    roofline_rank_set(&rank, model, &platform, &parallel, 16);
    return roofline_step_s(&rank, totals);
}

#endif
