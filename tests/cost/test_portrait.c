/* Published figures of courses, papers and data sheets, each with its arithmetic. */
#include <math.h>
#include <string.h>

#include "cost/compute_optimal.h"
#include "cost/portrait.h"
#include "loading.h"

static const double gib = 1024.0 * 1024 * 1024;

static struct portrait portrait_of(const char *model, int32_t tensor_parallel, int32_t batch,
                                   int32_t length)
{
    const struct portrait_options options = {
        .model = model,
        .hardware = "a100-80gb-sxm",
        .tensor_parallel = tensor_parallel,
        .block_tokens = 16,
        .batch = batch,
        .length = length,
        .utilization = 0.9,
        .usd_per_gpu_hour = 3.6,
    };
    struct portrait portrait;
    struct ifl_error error = {0};
    cr_assert_eq(portrait_make(&options, &portrait, &error), 0, "%s", error.text);
    return portrait;
}

static double forward_flops(const char *name, double n_seqs, double n_tokens)
{
    const struct model model = load_model(name);
    const struct pass pass = {n_seqs, n_tokens, 0, true};
    struct pass_part parts[PASS_PARTS];
    pass_count(&model, 1, &pass, parts);
    return pass_sum(parts).flops;
}

/* 2 FLOPs for each of 6.607e9 weights in products and each of 4096 tokens, and 4 x 32 x 4096 for
 * each pair of tokens: 54.13e12 + 8.80e12. */
Test(portrait, llama_2_7b_takes_63_tflops_for_4096_tokens)
{
    const double products =
        2 * 4096.0 * (32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) + 32000.0 * 4096);
    const double attention = 4.0 * 32 * 4096 * 4096.0 * 4096;
    const double flops = forward_flops("llama-2-7b", 1, 4096);
    cr_expect_float_eq(flops, products + attention, 1e6);
    cr_expect_lt(fabs(flops / 63e12 - 1), 0.005, "%.4g", flops);
}

/* A second sequence doubles the work; ranks share it. */
Test(portrait, work_is_shared_by_ranks)
{
    const struct model model = load_model("llama-3-70b");
    const struct pass pass = {2, 100, 0, true};
    struct pass_part whole[PASS_PARTS], rank[PASS_PARTS];
    pass_count(&model, 1, &pass, whole);
    pass_count(&model, 8, &pass, rank);
    for (int i = 0; i < PASS_PARTS; i++)
        cr_expect_float_eq(rank[i].flops * 8, whole[i].flops, 1);
    cr_expect_float_eq(forward_flops("llama-3-70b", 2, 100),
                       2 * forward_flops("llama-3-70b", 1, 100), 1);
}

static int64_t kv_per_token(int32_t layers, int32_t n_kv_heads, int32_t tensor_parallel)
{
    const struct model model = {.layers = layers,
                                .d_model = n_kv_heads * 128,
                                .n_q_heads = n_kv_heads,
                                .n_kv_heads = n_kv_heads,
                                .d_head = 128,
                                .kv_bytes = 2};
    return model_kv_bytes_per_token(&model, tensor_parallel);
}

/* vLLM (SOSP 2023), section 3, has 800 KiB for OPT-13B. */
Test(portrait, kv_of_a_token)
{
    const struct model llama = load_model("llama-2-7b"), opt = load_model("opt-13b");
    cr_expect_eq(model_kv_bytes_per_token(&llama, 1), 524288);
    cr_expect_eq(model_kv_bytes_per_token(&opt, 1), 819200);
    cr_expect_eq(kv_per_token(32, 8, 1), 128 * 1024);
    cr_expect_eq(kv_per_token(80, 8, 1), 320 * 1024);
    cr_expect_eq(kv_per_token(96, 96, 1), 4.5 * 1024 * 1024);
}

/* 80 layers, 8 KV heads, 8192 tokens: 2.5 GiB, half of it on each of two ranks. With 4% lost in
 * tails a request takes 1.3 GiB, and six of them fit in 8 GiB. */
Test(portrait, six_requests_of_8k_in_8_gib_a_rank)
{
    cr_expect_eq((double)kv_per_token(80, 8, 1) * 8192, 2.5 * gib);
    const double request_bytes = (double)kv_per_token(80, 8, 2) * 8192 * 1.04;
    cr_expect_eq(floor(8 * gib / request_bytes), 6);
}

/* 312 TFLOP/s over 2.039 TB/s; with the 2.0 TB/s that some print, 156. */
Test(portrait, ridge_of_an_a100)
{
    const struct portrait portrait = portrait_of("llama-2-7b", 1, 1, 2048);
    cr_expect_geq(portrait.ridge_flops_per_byte, 153);
    cr_expect_leq(portrait.ridge_flops_per_byte, 156);
}

/* Two FLOPs for each weight of two bytes. */
Test(portrait, decode_of_one_sequence_is_memory_bound)
{
    const struct portrait portrait = portrait_of("llama-2-7b", 1, 1, 2048);
    cr_expect(portrait.decode.memory_bound);
    cr_expect_lt(fabs(portrait.decode.intensity - 1), 0.01, "%g", portrait.decode.intensity);
    cr_expect_not(portrait.prefill.memory_bound);
    cr_expect_gt(portrait.decode.step_s, portrait.decode.bound_s);
}

/* A course has 45 ms for this prompt. 2 x 6.48e9 x 2048 FLOPs and the unmasked half of attention
 * are 27.6e12; at 312 TFLOP/s no A100 computes them in less than 88 ms. */
Test(portrait, prefill_of_2048_tokens_takes_twice_what_a_course_says)
{
    const struct portrait portrait = portrait_of("llama-2-7b", 1, 1, 2048);
    const double masked_half = portrait.prefill.parts[PASS_ATTENTION].flops / 2;
    const double at_least_s = (portrait.prefill.sum.flops - masked_half) / 312e12;
    cr_expect_gt(at_least_s, 0.088);
    cr_expect_gt(portrait.prefill.step_s, at_least_s);
}

/* Sequences of 1000 tokens take 63 blocks of 16; 3.6 dollars an hour are 1e-3 a second. */
Test(portrait, batches_memory_and_prices)
{
    const struct portrait portrait = portrait_of("llama-2-7b", 1, 8, 1000);
    cr_expect_eq(portrait.largest_batch, portrait.memory.n_blocks / 63);
    cr_expect_eq(portrait.longest_context, 4096);
    const struct portrait_batch *last = &portrait.batches[portrait.n_batches - 1];
    cr_expect_eq(last->batch, portrait.largest_batch);
    cr_expect_eq(portrait.batches[3].batch, 8);
    cr_expect_float_eq(portrait.batches[3].decode.step_s, portrait.decode.step_s, 1e-12);
    cr_expect_float_eq(last->decode.tok_per_s, last->batch / last->decode.step_s, 1e-6);
    cr_expect_float_eq(last->decode.usd_per_million_tokens, 1e3 / last->decode.tok_per_s, 1e-9);
}

Test(portrait, a_model_too_large_says_so)
{
    const struct portrait portrait = portrait_of("llama-3-70b", 1, 1, 1000);
    cr_expect_not(portrait.fits);
    cr_expect_eq(portrait.largest_batch, 0);
    cr_expect_not_null(strstr(portrait.misfit, "does not fit"), "%s", portrait.misfit);
}

/* Hoffmann et al. 2022, equation 4: N = G (C/6)^(b/(a+b)), G = (a A / (b B))^(1/(a+b)). */
Test(compute_optimal, the_closed_form)
{
    const double a = 0.34, b = 0.29;
    const double g = pow(a * 406.4 / (b * 410.7), 1 / (a + b));
    for (double flops = 1e13; flops < 1e35; flops *= 100) {
        struct compute_optimal optimal;
        struct ifl_error error = {0};
        cr_assert_eq(compute_optimal_find(flops, &optimal, &error), 0, "%s", error.text);
        const double parameters = g * pow(flops / 6, b / (a + b));
        cr_expect_lt(fabs(optimal.parameters / parameters - 1), 1e-4, "%g: %g, not %g", flops,
                     optimal.parameters, parameters);
        cr_expect_float_eq(6 * optimal.parameters * optimal.tokens / flops, 1, 1e-12);
    }
}

Test(compute_optimal, budgets_out_of_range)
{
    struct compute_optimal optimal;
    struct ifl_error error = {0};
    cr_expect_eq(compute_optimal_find(0, &optimal, &error), IFL_E_INPUT);
    cr_expect_eq(compute_optimal_find(NAN, &optimal, &error), IFL_E_INPUT);
    cr_expect_eq(compute_optimal_find(1e40, &optimal, &error), IFL_E_INPUT);
}
