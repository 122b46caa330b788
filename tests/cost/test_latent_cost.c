/* What latent attention computes and moves, and how long a step with it takes, by hand. */
#include <math.h>

#include "cost/cost.h"
#include "cost/pass.h"
#include "cost/roofline.h"

#include "loading.h"

static void expect_close(double is, double wanted)
{
    cr_expect_lt(fabs(is / wanted - 1), 1e-12, "%.17g, expected %.17g", is, wanted);
}

/* ---- FLOPs and bytes ---- */

/* DeepSeek-V2-Lite, one rank: 4 sequences with 1000 tokens and a new one each.
 * qkv: 2048 -> 16 x 192 + 576 = 3648, and for each of 64 rows of heads 128 -> 512 and 512 -> 128.
 * attention: 16 heads, keys of 576 and values of 512; the latent once, queries and outputs.
 * MLP: 6 of 64 picked, 2 x 1408 shared in 26 layers; 10944 in one. */
Test(latent_cost, a_decode_step)
{
    const struct model model = load_model("deepseek-v2-lite");
    const struct pass pass = {4, 1, 1000, false};
    struct pass_part of[PASS_PARTS];
    pass_count(&model, 1, &pass, of);
    const double up = 64.0 * 128 * 512, kv = 4 * 1001.0;
    expect_close(of[PASS_QKV].flops, 27 * 2 * (4.0 * 3648 * 2048 + 2 * up));
    expect_close(of[PASS_QKV].bytes, 27 * 2 *
                                         (4 * (2048 + 3648) + 2048.0 * 3648 +
                                          2 * 64.0 * (128 + 512) + 2 * 16 * 128.0 * 512));
    expect_close(of[PASS_ATTENTION].flops, 27 * 2 * 16 * (576 + 512) * kv);
    expect_close(of[PASS_ATTENTION].bytes, 27 * 2 * (576 * kv + 4 * 16 * (576.0 + 512)));
    expect_close(of[PASS_OUT].flops, 27 * 2 * 4 * 2048 * 2048.0);
    const double experts = 64 * (1 - pow(1 - 6.0 / 64, 4)), mlp = 3 * 2048.0;
    expect_close(of[PASS_MLP].flops, 2 * 4 * mlp * (26 * (6 * 1408.0 + 2816) + 10944));
    expect_close(of[PASS_MLP].bytes,
                 2 * (26 * (experts * 1408 + 2816) * mlp + 10944 * mlp +
                      4 * (26 * (6 * (2 * 2048 + 3 * 1408.0) + 2 * 2048 + 3 * 2816) + 2 * 2048 +
                           3 * 10944)));
}

/* 2 sequences of 500 new tokens: keys of 192 and values of 128 for each head, made of the latents
 * by 512 -> 16 x 256, and read for each head. */
Test(latent_cost, a_prompt)
{
    const struct model model = load_model("deepseek-v2-lite");
    const struct pass pass = {2, 500, 0, false};
    struct pass_part of[PASS_PARTS];
    pass_count(&model, 1, &pass, of);
    expect_close(of[PASS_QKV].flops, 27 * 2 * 1000 * (3648 * 2048.0 + 512 * 4096.0));
    expect_close(of[PASS_ATTENTION].flops, 27 * 2 * 16 * (192 + 128) * 2 * 500.0 * 500);
    expect_close(of[PASS_ATTENTION].bytes, 27 * 2 * 2 * 1000 * 16 * (192.0 + 128));
}

/* Absorbed or not, the products behind the latent of one token are the same FLOPs; attention takes
 * 1088 / 320 times as many. */
Test(latent_cost, absorption_trades_flops_for_bytes)
{
    const struct model model = load_model("deepseek-v3");
    const struct pass decode = {1, 1, 4095, false}, chunk = {1, 2, 4094, false};
    struct pass_part absorbed[PASS_PARTS], made[PASS_PARTS];
    pass_count(&model, 1, &decode, absorbed);
    pass_count(&model, 1, &chunk, made);
    expect_close(2 * absorbed[PASS_ATTENTION].flops / made[PASS_ATTENTION].flops, 1088.0 / 320);
    cr_expect_lt(50 * absorbed[PASS_ATTENTION].bytes, made[PASS_ATTENTION].bytes);
}

/* A token of DeepSeek-V3 behind no context takes 2 FLOPs for each active parameter that is in a
 * product: all but norms and routers, which are left out. */
Test(latent_cost, a_token_takes_two_flops_for_each_active_parameter)
{
    const struct model model = load_model("deepseek-v3");
    const struct pass pass = {1, 1, 0, true};
    struct pass_part of[PASS_PARTS];
    pass_count(&model, 1, &pass, of);
    const double norms = 61.0 * (1536 + 512 + 2 * 7168) + 7168, routers = 58.0 * 256 * 7168;
    const double products = (double)model_active_parameters(&model) - norms - routers;
    expect_close(pass_sum(of).flops - of[PASS_ATTENTION].flops, 2 * products);
}

/* ---- times ---- */

static struct roofline_rank rank_of(const struct model *model, const struct platform *platform,
                                    int32_t tensor_parallel)
{
    struct roofline_rank rank;
    const struct parallel parallel = model_tensor_parallel(tensor_parallel);
    roofline_rank_set(&rank, model, platform, &parallel, 16);
    return rank;
}

static double batched_s(const struct hardware *hw, double rows, double n, double k, double heads)
{
    const struct gemm_group group = {rows, n, k, heads, 2, 2, false};
    return gemm_group_s(hw, &group);
}

static double mlp_s(const struct hardware *hw, double m, double columns)
{
    return gemm_s(hw, m, 2 * columns, 2048, 2) + gemm_s(hw, m, 2048, columns, 2);
}

/* m rows of DeepSeek-V2-Lite on one rank without attention: two norms of 2 x 4 x 2048 elements, one
 * of the latent, rotary parts of 16 queries and a key, and activations; five kernels. Those of the
 * picked experts are part of their operation. */
static double layers_s(const struct hardware *hw, double m)
{
    const double common = 8 * 2048 + 2 * 17 * 64 + 2 * 512;
    const double picked = 64 * (1 - pow(1 - 6.0 / 64, m)), rows = 6 * m;
    const double both = gemm_s(hw, m, 3648, 2048, 2) + gemm_s(hw, m, 2048, 2048, 2);
    const struct expert_group group = {rows, picked, 3, 2048, 1408, 2, 2, false};
    const double experts =
        gemm_s(hw, m, 64, 2048, 2) + experts_s(hw, &group) + mlp_s(hw, m, 2 * 1408);
    const double first = elementwise_s(hw, 5, m * 2 * (common + 3 * 10944)) + mlp_s(hw, m, 10944);
    const double other = elementwise_s(hw, 5, m * 2 * (common + 3 * 2816)) + experts;
    return 27 * both + first + 26 * other + gemm_s(hw, 32, 102400, 2048, 2);
}

static double host_s(const struct platform *platform, double n_seqs)
{
    const struct host_times *host = &platform->deployment.host;
    return host->step_s + 27 * host->layer_s + n_seqs * host->seq_s;
}

/* 32 decodes over 64000 tokens: each reads 576 elements of K/V a token. */
Test(latent_cost, a_decode_step_takes_the_sum_of_its_kernels)
{
    const struct model model = load_model("deepseek-v2-lite");
    struct platform platform = load_platform("h100-sxm");
    const struct hardware *hw = &platform.hardware;
    platform.deployment.host.floor_s = 0;
    const struct roofline_rank rank = rank_of(&model, &platform, 1);
    const struct ifl_step_totals totals = {
        .n_tokens = 32, .n_sampled = 32, .n_decode_seqs = 32, .decode_context = 64000};
    const struct decode_shape shape = {32, 64000};
    const struct attention_heads heads = {16, 1, 288, 2, 2 * (576 + 512)};
    const double latent = batched_s(hw, 32 * 16, 512, 128, 16) +
                          batched_s(hw, 32 * 16, 128, 512, 16) + latent_s(hw, 0, 32);
    const double wanted = layers_s(hw, 32) + 27 * (latent + decode_attention_s(hw, &heads, &shape));
    expect_close(roofline_step_s(&rank, &totals), host_s(&platform, 32) + wanted);
}

/* Of 32 sequences one has 512 new tokens behind 1000. The latents of the latter, rounded up to
 * 1024, are made keys and values anew; the decodes have a launch of their own. */
Test(latent_cost, a_chunk_makes_keys_and_values_of_its_context)
{
    const struct model model = load_model("deepseek-v2-lite");
    struct platform platform = load_platform("h100-sxm");
    const struct hardware *hw = &platform.hardware;
    platform.deployment.host.floor_s = platform.deployment.host.prompt_layer_s = 0;
    platform.deployment.kernels.prompt_frac = 1;
    const struct roofline_rank rank = rank_of(&model, &platform, 1);
    const struct ifl_step_totals totals = {.n_tokens = 31 + 512,
                                           .n_sampled = 32,
                                           .n_decode_seqs = 31,
                                           .decode_context = 62000,
                                           .n_prefill_seqs = 1,
                                           .n_prefill_tokens = 512,
                                           .prefill_q_kv = 512 * 1000,
                                           .prefill_q_q = 512 * 512,
                                           .prefill_kv_64 = 1024,
                                           .max_prefill_kv = 1512};
    const struct decode_shape decodes = {31, 62000};
    const struct prefill_shape prompt = {512, 512 * 1000, 512 * 512, 1512, 1};
    const struct attention_heads one = {16, 1, 288, 2, 2 * (576 + 512)}, many = {16, 16, 160, 2};
    const double latent = gemm_s(hw, 512 + 1024, 16 * 256, 512, 2) +
                          batched_s(hw, 31 * 16, 512, 128, 16) +
                          batched_s(hw, 31 * 16, 128, 512, 16) + latent_s(hw, 512, 31);
    const double attention =
        prefill_attention_s(hw, &many, &prompt) + decode_attention_s(hw, &one, &decodes);
    const double wanted = layers_s(hw, 31 + 512) + 27 * (latent + attention);
    expect_close(roofline_step_s(&rank, &totals), host_s(&platform, 32) + wanted);
}

/* A profile without experts of its own has the two products of a group, and their activation. */
Test(latent_cost, experts_are_two_products_of_a_profile_without_them)
{
    const struct model model = load_model("deepseek-v2-lite");
    struct platform platform = load_platform("h100-sxm");
    const struct hardware *hw = &platform.hardware;
    const struct ifl_step_totals totals = {
        .n_tokens = 8, .n_sampled = 8, .n_decode_seqs = 8, .decode_context = 8000};
    const struct roofline_rank fused = rank_of(&model, &platform, 1);
    const double fused_s = roofline_step_s(&fused, &totals);
    const double picked = 64 * (1 - pow(1 - 6.0 / 64, 8)), rows = 6 * 8;
    const struct expert_group group = {rows, picked, 3, 2048, 1408, 2, 2, false};
    const double one_s = experts_s(hw, &group);
    const double two_s =
        batched_s(hw, rows, 2 * 1408, 2048, picked) + batched_s(hw, rows, 2048, 1408, picked) +
        8 * 2 * 3 * 1408 * 6 / (hw->elementwise.memory_frac * hw->gpu.memory_gb_per_s * 1e9);
    platform.hardware.experts = (struct experts_profile){0};
    const struct roofline_rank apart = rank_of(&model, &platform, 1);
    cr_expect_lt(fabs(roofline_step_s(&apart, &totals) - fused_s - 26 * (two_s - one_s)), 1e-12);
}

/* With all 128 heads of DeepSeek-V3 on a rank a token of context takes 128 x 2176 FLOPs, longer on
 * an A100 than its 1152 bytes; with 16 of them the bytes take longer. */
Test(latent_cost, many_heads_are_bound_by_their_products)
{
    const struct hardware hw = load_hardware("a100-80gb-sxm");
    struct attention_heads heads = {128, 1, 288, 2, 2176};
    const double compute_s = 128 * 2176 / (hw.prefill.compute_frac * hw.gpu.peak_tflops * 1e12);
    const double read_s = 1152 / (hw.decode.memory_frac * hw.gpu.memory_gb_per_s * 1e9);
    cr_expect_gt(compute_s, read_s);
    expect_close(decode_line(&hw, &heads, 8).token_s, compute_s);
    heads.q_heads = 16;
    expect_close(decode_line(&hw, &heads, 8).token_s, read_s);
}

/* Steps in a row are those one by one, to the last bit. */
Test(latent_cost, a_run_is_its_steps)
{
    const struct model model = load_model("deepseek-v2-lite");
    const struct platform platform = load_platform("a100-80gb-sxm");
    const struct parallel parallel = model_tensor_parallel(2);
    struct ifl_error error = {0};
    struct cost *cost = cost_create_roofline(&model, &platform, &parallel, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    struct ifl_step_totals totals = {
        .n_tokens = 8, .n_sampled = 8, .n_decode_seqs = 8, .decode_context = 8000};
    int64_t ns[50];
    const size_t n = cost_run_ns(cost, &totals, 50, ns);
    cr_assert_eq(n, 50);
    for (size_t i = 0; i < n; i++, totals.decode_context += 8)
        cr_expect_eq(ns[i], cost_step_ns(cost, &totals), "step %zu", i);
    cost_destroy(cost);
}

/* Eight ranks read as much K/V as one, so a step over much context is less than eight times as
 * fast. */
Test(latent_cost, ranks_read_the_whole_latent)
{
    const struct model model = load_model("deepseek-v2-lite");
    const struct platform platform = load_platform("h100-sxm");
    const struct roofline_rank one = rank_of(&model, &platform, 1),
                               eight = rank_of(&model, &platform, 8);
    const struct decode_line of_one = decode_line(&platform.hardware, &one.decode_heads, 64);
    const struct decode_line of_eight = decode_line(&platform.hardware, &eight.decode_heads, 64);
    expect_close(of_eight.token_s, of_one.token_s);
    cr_expect_eq(one.token_bytes, eight.token_bytes);
}
