/* Attention to the tokens that an indexer picks: DeepSeek-V3.2. */
#include <math.h>

#include "cost/cost.h"
#include "cost/roofline.h"
#include "cost/roofline_sparse.h"

#include "steps.h"

enum { N_SEQS = 16, TOPK = 2048 };

static struct ifl_step_totals decodes_at(int64_t context)
{
    return decodes(N_SEQS, context);
}

static double step_of(const struct model *model, const struct ifl_step_totals *totals,
                      double *memory_bytes_per_s)
{
    static struct platform platform; /* larger than a stack frame should be */
    const struct parallel parallel = model_tensor_parallel(8);
    struct roofline_rank rank;
    struct ifl_error error;
    cr_assert_eq(hardware_load("h200-sxm", &platform, &error), 0, "%s", error.text);
    roofline_rank_set(&rank, model, &platform, &parallel, 16);
    *memory_bytes_per_s =
        platform.hardware.sparse.memory_frac * platform.hardware.gpu.memory_gb_per_s * 1e9;
    return roofline_step_s(&rank, totals);
}

/* Beyond index_topk a step grows by the index keys alone, 132 bytes a token in each of 61 layers;
 * up to it also by the latents that are attended to. */
Test(sparse, decodes_attend_to_the_picked_tokens)
{
    const struct model model = load_model("deepseek-v3.2");
    const struct ifl_step_totals below = decodes_at(TOPK / 2), at = decodes_at(TOPK),
                                 beyond = decodes_at(8 * TOPK);
    double bytes_per_s;
    const double at_s = step_of(&model, &at, &bytes_per_s);
    const double index_s = 61.0 * 132 * N_SEQS * 7 * TOPK / bytes_per_s;
    cr_assert(model.index_topk == TOPK && model.layers == 61);
    cr_expect_lt(fabs(step_of(&model, &beyond, &bytes_per_s) - at_s - index_s), 1e-12);
    cr_expect_gt(at_s - step_of(&model, &below, &bytes_per_s), index_s / 14);
}

/* If 21 layers have an indexer and the others take what it picks, those 21 keys are read, and the
 * products for the others fall away. */
Test(sparse, layers_share_an_indexer)
{
    struct model model = load_model("deepseek-v3.2");
    const struct ifl_step_totals at = decodes_at(TOPK), beyond = decodes_at(8 * TOPK);
    double bytes_per_s;
    const double each_s = step_of(&model, &at, &bytes_per_s);
    model.index_layers = 21;
    const double at_s = step_of(&model, &at, &bytes_per_s);
    const double index_s = 21.0 * 132 * N_SEQS * 7 * TOPK / bytes_per_s;
    cr_expect_lt(fabs(step_of(&model, &beyond, &bytes_per_s) - at_s - index_s), 1e-12);
    cr_expect_gt(each_s - at_s, 40.0 * 132 * N_SEQS * TOPK / bytes_per_s);
    model.index_layers = 61;
    cr_expect_eq(memcmp(&(double){step_of(&model, &at, &bytes_per_s)}, &each_s, sizeof each_s), 0);
}

/* A prompt of 2,048 tokens attends to all before each, 8 heads as 64: 2 x 64 x (576 + 512) FLOPs a
 * pair, and more pairs beyond a window of 2,048 than are attended to. */
Test(sparse, prompts_by_hand)
{
    struct hardware hardware = {.gpu = {.peak_tflops = 1, .memory_gb_per_s = 1000},
                                .sparse = {.layer_us = 10,
                                           .decode_us = 0.5,
                                           .token_us = 0.25,
                                           .prompt_us = 1000,
                                           .memory_frac = 0.5,
                                           .compute_frac = 0.5,
                                           .index_frac = 0.25}};
    struct sparse_shape shape = {.n_decodes = 4, .index_bytes = 1e6};
    cr_expect_float_eq(sparse_s(&hardware, &shape), 10e-6 + 2e-6 + 2e-6, 1e-15);
    shape = (struct sparse_shape){.n_prompt_tokens = 8, .prompt_flops = 1e6, .index_flops = 1e6};
    cr_expect_float_eq(sparse_s(&hardware, &shape), 10e-6 + 1000e-6, 1e-15);
    shape.prompt_flops = 1e9; /* 2 ms at half of the peak; 2 ms at a quarter of twice the peak */
    shape.index_flops = 1e9;
    cr_expect_float_eq(sparse_s(&hardware, &shape), 10e-6 + 2e-6 + 2e-3 + 2e-3, 1e-12);
}

/* 576 elements of two bytes and an index key of 132; in 8 bits 512 bytes, 4 scales of 4 and 64
 * elements of two. */
Test(sparse, bytes_of_a_token)
{
    struct model model = load_model("deepseek-v3.2");
    cr_expect_eq(model_kv_bytes_per_token(&model, 8), 61 * (1152 + 132));
    model.kv_bytes = 1;
    cr_expect_eq(model_kv_bytes_per_token(&model, 8), 61 * (512 + 16 + 128 + 132));
}

/* Across index_topk. */
Test(sparse, a_run_is_its_steps)
{
    enum { N = COST_MAX_RUN };
    static struct platform platform;
    const struct model model = load_model("deepseek-v3.2");
    const struct parallel parallel = model_tensor_parallel(8);
    struct ifl_error error;
    cr_assert_eq(hardware_load("h200-sxm", &platform, &error), 0, "%s", error.text);
    struct cost *cost = cost_create_roofline(&model, &platform, &parallel, 64, &error);
    cr_assert_not_null(cost, "%s", error.text);
    struct ifl_step_totals totals = decodes_at(TOPK - N / 2);
    int64_t ns[N];
    cr_assert_eq(cost_run_ns(cost, &totals, N, ns), N);
    for (int i = 0; i < N; i++, totals.decode_context += N_SEQS)
        cr_expect_eq(ns[i], cost_step_ns(cost, &totals), "step %d", i);
    cost_destroy(cost);
}
