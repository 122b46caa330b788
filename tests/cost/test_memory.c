#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/memory.h"
#include "loading.h"

static int32_t blocks(const char *model_name, const struct platform *hw, int32_t tensor_parallel,
                      double utilization)
{
    const struct model model = load_model(model_name);
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(memory_plan(&model, hw, &(struct memory_options){tensor_parallel, 16, utilization},
                             &plan, &error),
                 0, "%s", error.text);
    return plan.n_blocks;
}

static const struct model small = {.layers = 1,
                                   .d_model = 64,
                                   .n_q_heads = 4,
                                   .n_kv_heads = 4,
                                   .d_head = 16,
                                   .d_ffn = 128,
                                   .vocab = 1000,
                                   .max_model_len = 64,
                                   .weight_bytes = 2,
                                   .kv_bytes = 2};
static const struct platform one_gib = {
    .hardware.gpu = {.memory_gib = 1},
    .deployment.memory = {.workspace_gib = 0.125, .activation_tokens = 1000}};

/* 1 GiB, half of it usable, 128 MiB workspace; a model of one layer, all terms by hand. */
Test(memory, by_hand)
{
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(memory_plan(&small, &one_gib, &(struct memory_options){1, 16, 0.5}, &plan, &error),
                 0);
    /* embeddings 2 x 64000, attention 4 x 4096, MLP 3 x 8192, three norms */
    const int64_t weights = 2 * (128000 + 16384 + 24576 + 192);
    const int64_t activations = (3 * 128 + 4 * 64) * 2 * 1000;
    cr_expect_eq(plan.usable_bytes, 1 << 29);
    cr_expect_eq(plan.weight_bytes, weights);
    cr_expect_eq(plan.activation_bytes, activations);
    cr_expect_eq(plan.workspace_bytes, 1 << 27);
    cr_expect_eq(plan.block_bytes, 16 * 2 * 64 * 2);
    cr_expect_eq(plan.n_blocks, ((1 << 29) - (1 << 27) - weights - activations) / 4096);
}

/* 2^30 - 338,304 weights - 1,280,000 activations - 2^27 workspace = 937,905,792 bytes are free;
 * half of them hold 1,831,847 tokens of 256 bytes: 114,490 blocks and 7 tokens. */
Test(memory, free_share_by_hand)
{
    struct memory_plan plan;
    struct ifl_error error = {0};
    const struct memory_options options = {1, 16, 0.5};
    cr_assert_eq(memory_plan_free_share(&small, &one_gib, &options, &plan, &error), 0);
    cr_expect_eq(plan.kv_bytes, 468952896);
    cr_expect_eq(plan.n_blocks, 114491);
}

/* A log of TensorRT-LLM in its docs/source/reference/memory.md: an engine of 6,695 MiB and 256 KiB
 * of K/V a token, as Llama-2-7B has on each of two GPUs; 70.48 GiB available, share 0.9, blocks of
 * 64: "Number of blocks in KV cache primary pool: 4060". */
Test(memory, free_share_as_tensorrt_llm_logs)
{
    const struct model model = load_model("llama-2-7b");
    const double weights_gib = (double)model_weight_bytes(&model, 2) / (1 << 30);
    const struct platform hw = {.hardware.gpu = {.memory_gib = 70.48 + weights_gib}};
    struct memory_plan plan;
    struct ifl_error error = {0};
    const struct memory_options options = {2, 64, 0.9};
    cr_assert_eq(model_kv_bytes_per_token(&model, 2), 262144);
    cr_assert_eq(memory_plan_free_share(&model, &hw, &options, &plan, &error), 0, "%s", error.text);
    cr_expect_eq(plan.n_blocks, 4060, "%d", plan.n_blocks);
}

Test(memory, free_share_refuses_with_its_arithmetic)
{
    const struct model model = load_model("llama-2-70b");
    const struct platform hw = load_platform("h100-sxm");
    struct memory_plan plan;
    struct ifl_error error = {0};
    const struct memory_options options = {1, 64, 0.9};
    cr_expect_eq(memory_plan_free_share(&model, &hw, &options, &plan, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "less 128.48 weights"), "%s", error.text);
}

/* inference-sim/inference-sim at e7a4aa37: vLLM 0.11.0 on one H100 80GB, utilisation 0.9, blocks
 * of 16, token budgets 4096 and 64. */
Test(memory, vllm_on_h100_within_two_blocks)
{
    struct platform hw = load_platform("h100-sxm");
    cr_expect_leq(abs(blocks("llama-2-7b", &hw, 1, 0.9) - 7438), 2, "%d",
                  blocks("llama-2-7b", &hw, 1, 0.9));
    cr_expect_leq(abs(blocks("codellama-34b", &hw, 1, 0.9) - 2537), 2, "%d",
                  blocks("codellama-34b", &hw, 1, 0.9));
    hw.deployment.memory.activation_tokens = 64;
    cr_expect_leq(abs(blocks("codellama-34b", &hw, 1, 0.9) - 2790), 2, "%d",
                  blocks("codellama-34b", &hw, 1, 0.9));
}

/* LLMServe/DistServe at 82831f16, max_num_tokens.csv: one pipeline stage on A100 80GB, utilisation
 * 0.95. Its runtime reserves otherwise than vLLM does. */
Test(memory, distserve_on_a100_within_four_percent)
{
    const struct platform hw = load_platform("a100-80gb-sxm");
    const struct {
        const char *model;
        int32_t tensor_parallel, tokens;
    } published[] = {
        {"opt-13b", 1, 66144}, {"opt-13b", 2, 163008}, {"opt-13b", 4, 356736},
        {"opt-66b", 4, 78496}, {"opt-66b", 8, 212304}, {"opt-175b", 8, 59520},
    };
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const double tokens =
            16.0 * blocks(published[i].model, &hw, published[i].tensor_parallel, 0.95);
        cr_expect_lt(fabs(tokens / published[i].tokens - 1), 0.04, "%s on %d: %g, published %d",
                     published[i].model, published[i].tensor_parallel, tokens, published[i].tokens);
    }
}

Test(memory, what_does_not_fit_is_said_with_its_arithmetic)
{
    const struct model model = load_model("llama-2-70b");
    const struct platform hw = load_platform("h100-sxm");
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_expect_eq(memory_plan(&model, &hw, &(struct memory_options){1, 16, 0.9}, &plan, &error),
                 IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "llama-2-70b does not fit on h100-sxm"), "%s",
                       error.text);
    cr_expect_not_null(strstr(error.text, "128.48 weights"), "%s", error.text);
    cr_expect_eq(memory_plan(&model, &hw, &(struct memory_options){4, 16, 0.9}, &plan, &error), 0);
}

Test(memory, options_out_of_range_are_refused)
{
    const struct model model = load_model("llama-2-7b");
    const struct platform hw = load_platform("h100-sxm");
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_expect_eq(memory_plan(&model, &hw, &(struct memory_options){1, 0, 0.9}, &plan, &error),
                 IFL_E_INPUT);
    cr_expect_eq(memory_plan(&model, &hw, &(struct memory_options){1, 16, 0}, &plan, &error),
                 IFL_E_INPUT);
    cr_expect_eq(memory_plan(&model, &hw, &(struct memory_options){1, 16, 1.5}, &plan, &error),
                 IFL_E_INPUT);
    cr_expect_eq(memory_plan(&model, &hw, &(struct memory_options){1, 16, NAN}, &plan, &error),
                 IFL_E_INPUT);
    cr_expect_eq(memory_plan(&model, &hw, &(struct memory_options){3, 16, 0.9}, &plan, &error),
                 IFL_E_INPUT);
}

Test(memory, prints_a_paragraph)
{
    const struct memory_plan plan = {.n_blocks = 100,
                                     .block_tokens = 16,
                                     .tensor_parallel = 2,
                                     .utilization = 0.5,
                                     .gpu_bytes = INT64_C(8) << 30,
                                     .usable_bytes = INT64_C(4) << 30,
                                     .weight_bytes = INT64_C(2) << 30,
                                     .activation_bytes = INT64_C(1) << 30,
                                     .workspace_bytes = INT64_C(1) << 29,
                                     .kv_bytes = INT64_C(1) << 29,
                                     .block_bytes = INT64_C(5) << 20};
    char text[512] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    cr_assert_not_null(out);
    memory_print(&plan, out);
    fclose(out);
    cr_expect_str_eq(text, "KV memory of each of 2 GPUs: 8.00 GiB x 0.5 = 4.00, less 2.00 weights, "
                           "1.00 activations, 0.50 workspace leaves 0.50 GiB for KV blocks of "
                           "5.000 MiB:\n100 blocks of 16 tokens, 1600 tokens.\n");
}

static int32_t whole_requests(const char *model_name, int32_t tensor_parallel)
{
    const struct model model = load_model(model_name);
    const struct platform hw = load_platform("a100-80gb-sxm");
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(memory_plan_whole_requests(&model, &hw,
                                            &(struct memory_options){tensor_parallel, 16, 0.9},
                                            4096, &plan, &error),
                 0, "%s", error.text);
    return plan.n_blocks;
}

/* What Vidur itself computes on A100-80GB: 29 requests of 4,096 tokens, and 13. */
Test(memory, whole_requests_as_vidur_counts)
{
    cr_expect_eq(whole_requests("llama-2-7b", 1), 7424);
    cr_expect_eq(whole_requests("llama-2-70b", 2), 3328);
}

/* Kwon et al., SOSP 2023, table 1: 12 GB of K/V hold 15.7K slots of OPT-13B, in GiB 15,728. The
 * rule leaves 9% less at a utilisation of 0.9; the paper does not say how its 12 GB came about. */
Test(memory, opt_13b_on_a100_40gb)
{
    const struct model model = load_model("opt-13b");
    const struct platform hw = load_platform("a100-40gb-sxm");
    cr_expect_eq(INT64_C(12) * (1 << 30) / model_kv_bytes_per_token(&model, 1), 15728);
    const int32_t n_slots = 16 * blocks("opt-13b", &hw, 1, 0.9);
    cr_expect_lt(fabs(n_slots / 15728.0 - 1), 0.10, "%d slots", n_slots);
}
