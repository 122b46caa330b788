#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/cost.h"
#include "cost/stages.h"
#include "inflight/random.h"
#include "loading.h"

static struct cost *roofline(const struct model *model, const struct platform *platform,
                             int32_t tensor_parallel)
{
    struct ifl_error error = {0};
    const struct parallel parallel = model_tensor_parallel(tensor_parallel);
    struct cost *cost = cost_create_roofline(model, platform, &parallel, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    return cost;
}

static int64_t step_ns(const struct model *model, const struct platform *platform,
                       int32_t tensor_parallel, struct ifl_step_totals totals)
{
    struct cost *cost = roofline(model, platform, tensor_parallel);
    const int64_t ns = cost_step_ns(cost, &totals);
    cost_destroy(cost);
    return ns;
}

static struct ifl_step_totals decoding(int32_t n_seqs, int64_t context)
{
    return (struct ifl_step_totals){.n_tokens = n_seqs,
                                    .n_decode_seqs = n_seqs,
                                    .n_sampled = n_seqs,
                                    .decode_context = n_seqs * context};
}

static struct ifl_step_totals prefilling(int32_t n_tokens, int32_t context)
{
    return (struct ifl_step_totals){.n_tokens = n_tokens,
                                    .n_prefill_tokens = n_tokens,
                                    .n_prefill_seqs = 1,
                                    .n_sampled = 1,
                                    .prefill_q_kv = (int64_t)n_tokens * context,
                                    .prefill_q_q = (int64_t)n_tokens * n_tokens,
                                    .max_prefill_kv = n_tokens + context};
}

/* ---- linear ---- */

Test(linear, is_its_closed_form)
{
    const struct linear_cost coefficients = {5e-3, 1e-4, 2e-5, 3e-7};
    struct ifl_error error = {0};
    struct cost *cost = cost_create_linear(&coefficients, &error);
    cr_assert_not_null(cost);
    const struct ifl_step_totals totals = {.n_tokens = 103,
                                           .n_prefill_tokens = 100,
                                           .n_prefill_seqs = 2,
                                           .n_decode_seqs = 3,
                                           .decode_context = 1000};
    /* 5 ms + 10 ms + 60 us + 300 us */
    cr_expect_eq(cost_step_ns(cost, &totals), 15360000);
    cr_expect_eq(cost_step_ns(cost, &(struct ifl_step_totals){0}), 5000000);
    cost_destroy(cost);
}

/* DistServe's lines: prompts with their squares; steps of decodes, below 95 requests and from there
 * on. */
Test(linear, has_lines_of_prompts_of_decodes_and_of_large_batches)
{
    const struct linear_cost coefficients = {.step_s = 10e-3,
                                             .prefill_token_s = 1e-4,
                                             .prefill_square_s = 1e-8,
                                             .decode_step_s = 4e-3,
                                             .decode_seq_s = 2e-5,
                                             .context_token_s = 3e-7,
                                             .large_batch_seqs = 95,
                                             .large_step_s = 1e-3,
                                             .large_seq_s = 5e-5,
                                             .large_context_token_s = 1e-7};
    struct ifl_error error = {0};
    struct cost *cost = cost_create_linear(&coefficients, &error);
    cr_assert_not_null(cost);
    struct ifl_step_totals totals = {
        .n_tokens = 400, .n_prefill_tokens = 400, .n_prefill_seqs = 2, .prefill_q_q = 100000};
    /* 10 ms + 40 ms + 1 ms */
    cr_expect_eq(cost_step_ns(cost, &totals), 51000000);
    totals = decoding(94, 100);
    /* 4 ms + 1.88 ms + 2.82 ms */
    cr_expect_eq(cost_step_ns(cost, &totals), 8700000);
    totals = decoding(95, 100);
    /* 1 ms + 4.75 ms + 0.95 ms */
    cr_expect_eq(cost_step_ns(cost, &totals), 6700000);
    cost_destroy(cost);
}

/* 3 x 0.5 ns = 1.5 ns rounds to 2; 0.2 ns is still a nanosecond. */
Test(linear, rounds_once_and_never_to_nothing)
{
    struct ifl_error error = {0};
    struct cost *cost = cost_create_linear(&(struct linear_cost){.decode_seq_s = 0.5e-9}, &error);
    cr_assert_not_null(cost);
    struct ifl_step_totals totals = decoding(3, 0);
    cr_expect_eq(cost_step_ns(cost, &totals), 2);
    cost_destroy(cost);
    cost = cost_create_linear(&(struct linear_cost){.decode_seq_s = 0.2e-9}, &error);
    cr_assert_not_null(cost);
    totals = decoding(1, 0);
    cr_expect_eq(cost_step_ns(cost, &totals), 1);
    cost_destroy(cost);
}

Test(linear, refuses_what_is_no_duration)
{
    struct ifl_error error = {0};
    cr_expect_null(cost_create_linear(&(struct linear_cost){.step_s = -1}, &error));
    cr_expect_not_null(strstr(error.text, "step_s is -1"));
    cr_expect_null(cost_create_linear(&(struct linear_cost){.context_token_s = NAN}, &error));
    cr_expect_null(cost_create_linear(&(struct linear_cost){.prefill_token_s = INFINITY}, &error));
}

/* ---- roofline: one term at a time, all others negligible ---- */

static struct platform weightless(void)
{
    return (struct platform){
        .hardware = {
            .name = "weightless",
            .gpu = {.peak_tflops = 1e12, .memory_gb_per_s = 1e15, .n_sms = 100, .memory_gib = 80},
            .gemm = {.compute_frac = 1, .memory_frac = 1, .exponent = 2},
            .prefill = {.compute_frac = 1, .causal_frac = 0.5},
            .decode = {.memory_frac = 1},
            .decode_mixed = {.memory_frac = 1},
            .elementwise = {.memory_frac = 1},
            .allreduce = {{.gb_per_s = 1e15}, {.gb_per_s = 1e15}, {.gb_per_s = 1e15}},
            .swap_out = {.gb_per_s = 1e15},
            .swap_in = {.gb_per_s = 1e15},
        }};
}

static struct model tiny(void)
{
    return (struct model){.layers = 10,
                          .d_model = 64,
                          .n_q_heads = 8,
                          .n_kv_heads = 2,
                          .d_head = 8,
                          .d_ffn = 128,
                          .vocab = 100,
                          .max_model_len = 64,
                          .weight_bytes = 2,
                          .kv_bytes = 2};
}

Test(roofline, counts_its_launches)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    hw.hardware.gemm.launch_us = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 41000); /* 4 a layer and the head */
    hw = weightless();
    hw.hardware.elementwise.launch_us = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 40000);
    hw = weightless();
    hw.hardware.prefill.launch_us = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 1);
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 10000);
    hw = weightless();
    hw.hardware.decode.launch_us = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 10000);
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 1);
}

/* Three quarters of the layers' 40 launches, and the head's. All-reduces, the host and decodes are
 * as they were, also in a step with prompts. */
Test(roofline, prompts_have_kernels_of_their_own)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    struct ifl_step_totals mixed = decoding(3, 10);
    hw.deployment.kernels.prompt_frac = 0.75;
    hw.hardware.gemm.launch_us = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 41000);
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 31000);
    hw.hardware.gemm.launch_us = 0;
    hw.hardware.elementwise.launch_us = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 30000);
    hw.hardware.elementwise.launch_us = 0;
    hw.hardware.prefill.launch_us = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 7500);
    hw.hardware.prefill.launch_us = 0;
    hw.hardware.allreduce[0].latency_us = 2;
    cr_expect_eq(step_ns(&model, &hw, 2, prefilling(3, 10)), 40000);
    hw.deployment.host = (struct host_times){.layer_s = 2e-6, .step_s = 50e-6, .seq_s = 1e-6};
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 20000 + 50000 + 1000);
    hw = weightless();
    hw.deployment.kernels.prompt_frac = 0.75;
    hw.hardware.decode.memory_frac = hw.hardware.decode_mixed.memory_frac = 1e-15;
    mixed.n_tokens += 1;
    mixed.n_prefill_tokens = mixed.n_prefill_seqs = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, mixed), 4 * 19200);
}

/* A step of as many tokens, with prompts and without, of one cost. */
Test(roofline, prompts_and_decodes_are_remembered_apart)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    hw.deployment.kernels.prompt_frac = 0.75;
    hw.hardware.gemm.launch_us = 1;
    struct cost *cost = roofline(&model, &hw, 1);
    for (int i = 0; i < 2; i++) {
        const struct ifl_step_totals decodes = decoding(3, 10), prompts = prefilling(3, 10);
        cr_expect_eq(cost_step_ns(cost, &decodes), 41000);
        cr_expect_eq(cost_step_ns(cost, &prompts), 31000);
    }
    cost_destroy(cost);
}

Test(roofline, two_all_reduces_a_layer_among_ranks)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    hw.hardware.allreduce[0].latency_us = 2;
    hw.hardware.allreduce[1].latency_us = 3;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 1);
    cr_expect_eq(step_ns(&model, &hw, 2, decoding(3, 10)), 40000);
    cr_expect_eq(step_ns(&model, &hw, 4, decoding(3, 10)), 60000);
    hw.hardware.allreduce[0] = (struct lines_profile){.gb_per_s = 1};
    /* 20 x 3 tokens x 64 x 2 bytes at 1 byte/ns */
    cr_expect_eq(step_ns(&model, &hw, 2, decoding(3, 10)), 7680);
}

/* K and V: 10 layers x 2 x 2 heads x 8 x 2 bytes x 30 tokens = 19200 bytes at 1 byte/ns; on two
 * ranks a head each. In a mixed step they are read for each of the 4 query heads of a KV head. */
Test(roofline, decoding_reads_the_kv)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    hw.hardware.decode.memory_frac = hw.hardware.decode_mixed.memory_frac = 1e-15;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 19200);
    cr_expect_eq(step_ns(&model, &hw, 2, decoding(3, 10)), 9600);
    struct ifl_step_totals mixed = decoding(3, 10);
    mixed.n_tokens += 1;
    mixed.n_prefill_tokens = mixed.n_prefill_seqs = 1;
    cr_expect_eq(step_ns(&model, &hw, 1, mixed), 4 * 19200);
}

/* A chunk of 6 after 4: 24 + 18 pairs x 4 x 8 x 8 heads x 10 layers FLOP at 1 FLOP/ns. */
Test(roofline, prefill_computes_its_pairs)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    hw.hardware.prefill.compute_frac = 1e-15;
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(6, 4)), 42 * 4 * 8 * 8 * 10);
    cr_expect_eq(step_ns(&model, &hw, 4, prefilling(6, 4)), 42 * 4 * 8 * 2 * 10);
}

Test(roofline, host_and_floor)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    hw.deployment.host = (struct host_times){.layer_s = 2e-6, .step_s = 50e-6, .seq_s = 1e-6};
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 20000 + 50000 + 3000);
    hw.deployment.host.floor_s = 4e-3;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 73000 + 4000000);
    hw.hardware.gemm.launch_us = 1000;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 73000 + 41000000);
}

/* Ten layers of which the host launches the prompts' kernels: 0.6 ms each at least. */
Test(roofline, steps_with_prompts_have_a_floor_of_their_own)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    hw.deployment.host = (struct host_times){.floor_s = 4e-3, .prompt_floor_layer_s = 0.6e-3};
    struct ifl_step_totals mixed = decoding(3, 10);
    mixed.n_tokens += 5;
    mixed.n_prefill_seqs = 1;
    mixed.n_prefill_tokens = 5;
    cr_expect_eq(step_ns(&model, &hw, 1, decoding(3, 10)), 4000000);
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 6000000);
    cr_expect_eq(step_ns(&model, &hw, 1, mixed), 6000000);
    hw.hardware.gemm.launch_us = 1000;
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 41000000);
    hw.hardware.gemm.launch_us = 0;
    hw.deployment.host.floor_s = 7e-3;
    cr_expect_eq(step_ns(&model, &hw, 1, prefilling(3, 10)), 7000000);
}

/* Each stage has the floor of its own layers. */
Test(roofline, stages_share_the_floor_of_prompts)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    struct ifl_error error = {0};
    struct stages stages;
    int64_t ns[2], hop_ns;
    const struct ifl_step_totals totals = prefilling(3, 10);
    hw.hardware.send_recv = (struct send_recv_profile){.latency_us = 9, .gb_per_s = 1};
    hw.deployment.host.prompt_floor_layer_s = 0.6e-3;
    cr_assert_eq(stages_cut(&stages, 2, 10, "3,7", &error), 0, "%s", error.text);
    struct cost *cost =
        cost_create_roofline(&model, &hw, &(struct parallel){1, 2, 1, 1, 1, false}, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    cr_assert_eq(cost_stages_ns(cost, &totals, &stages, ns, &hop_ns), 0);
    cr_expect_eq(ns[0], 1800000);
    cr_expect_eq(ns[1], 4200000);
    cost_destroy(cost);
}

/* A block: 16 tokens x 10 layers x 2 x 2 x 8 x 2 bytes = 10240. Swaps alone launch no layers. */
Test(roofline, swaps_alone)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    hw.deployment.host = (struct host_times){.layer_s = 2e-6, .step_s = 50e-6, .floor_s = 4e-3};
    hw.hardware.swap_out = (struct lines_profile){.latency_us = 3, .gb_per_s = 1};
    hw.hardware.swap_in = (struct lines_profile){.latency_us = 5, .gb_per_s = 2};
    hw.hardware.block_copy = (struct block_copy_profile){.launch_us = 7, .memory_frac = 1};
    struct ifl_step_totals totals = {.n_blocks_out = 2, .n_blocks_in = 1};
    const int64_t swaps_ns = 50000 + 2 * (3000 + 10240) + 5000 + 5120;
    cr_expect_eq(step_ns(&model, &hw, 1, totals), swaps_ns);
    totals.n_blocks_copied = 3;
    const double copies_ns = 7000 + 2 * 3 * 10240 / hw.hardware.gpu.memory_gb_per_s;
    cr_expect_eq(step_ns(&model, &hw, 1, totals), swaps_ns + (int64_t)(copies_ns + 0.5));
    cr_expect_eq(step_ns(&model, &hw, 1, (struct ifl_step_totals){0}), 50000);
}

/* Ten layers in two stages: the same layers, and one message of 4 tokens x 64 x 2 bytes; a block of
 * a rank is half as large. */
Test(roofline, stages_send_hidden_states)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    struct ifl_error error = {0};
    cr_expect_null(
        cost_create_roofline(&model, &hw, &(struct parallel){1, 2, 1, 1, 1, false}, 16, &error));
    cr_expect_not_null(strstr(error.text, "send_recv"), "%s", error.text);
    hw.hardware.send_recv = (struct send_recv_profile){.latency_us = 9, .gb_per_s = 1};
    hw.hardware.swap_out = (struct lines_profile){.latency_us = 3, .gb_per_s = 1};
    hw.deployment.host.layer_s = 2e-6;
    struct cost *cost =
        cost_create_roofline(&model, &hw, &(struct parallel){1, 2, 1, 1, 1, false}, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    struct ifl_step_totals totals = decoding(4, 10);
    cr_expect_eq(cost_step_ns(cost, &totals), step_ns(&model, &hw, 1, totals) + 9000 + 4 * 64 * 2);
    totals = (struct ifl_step_totals){.n_blocks_out = 2};
    cr_expect_eq(cost_step_ns(cost, &totals), 2 * (3000 + 10240 / 2));
    cost_destroy(cost);
}

/* Stages of 3 and 7 of ten layers: together with the hop the time of the step, to the rounding of
 * each; the host's time of the step in the first, 2 us a layer in each. */
Test(roofline, stages_add_up_to_the_step)
{
    const struct model model = tiny();
    struct platform hw = weightless();
    struct ifl_error error = {0};
    struct stages stages;
    int64_t ns[2], hop_ns;
    hw.hardware.send_recv = (struct send_recv_profile){.latency_us = 9, .gb_per_s = 1};
    hw.deployment.host.layer_s = 2e-6;
    cr_assert_eq(stages_cut(&stages, 2, 10, "3,7", &error), 0, "%s", error.text);
    struct cost *cost =
        cost_create_roofline(&model, &hw, &(struct parallel){1, 2, 1, 1, 1, false}, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    const struct ifl_step_totals totals = decoding(4, 10);
    cr_assert_eq(cost_stages_ns(cost, &totals, &stages, ns, &hop_ns), 0);
    cr_expect_eq(hop_ns, 9000 + 4 * 64 * 2);
    cr_expect_leq(llabs(ns[0] + ns[1] + hop_ns - cost_step_ns(cost, &totals)), 1);
    cost_destroy(cost);
}

Test(roofline, memory_of_durations_changes_none)
{
    const struct model model = load_model("llama-3-8b");
    const struct platform hw = load_platform("h100-sxm");
    struct cost *cost = roofline(&model, &hw, 1);
    const int32_t sizes[] = {1, 7, 4096, 16384, 16385, 40000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct ifl_step_totals totals = decoding(sizes[i], 500);
        const int64_t first_ns = cost_step_ns(cost, &totals);
        cr_expect_eq(cost_step_ns(cost, &totals), first_ns);
        cr_expect_eq(step_ns(&model, &hw, 1, totals), first_ns);
    }
    cost_destroy(cost);
}

Test(roofline, more_work_never_takes_less)
{
    const struct model model = load_model("llama-3-70b");
    const struct platform hw = load_platform("a100-80gb-sxm");
    struct cost *cost = roofline(&model, &hw, 4);
    int64_t last_prefill_ns = 0, last_decode_ns = 0, last_context_ns = 0;
    for (int32_t n = 1; n < 20000; n += 37) {
        const struct ifl_step_totals prefill = prefilling(n, 0), decode = decoding(n, 100);
        const struct ifl_step_totals context = decoding(8, n);
        cr_assert_geq(cost_step_ns(cost, &prefill), last_prefill_ns, "%d", n);
        cr_assert_geq(cost_step_ns(cost, &decode), last_decode_ns, "%d", n);
        cr_assert_geq(cost_step_ns(cost, &context), last_context_ns, "%d", n);
        last_prefill_ns = cost_step_ns(cost, &prefill);
        last_decode_ns = cost_step_ns(cost, &decode);
        last_context_ns = cost_step_ns(cost, &context);
    }
    cost_destroy(cost);
}

Test(roofline, refuses_ranks_without_a_line)
{
    const struct model model = load_model("llama-2-7b");
    const struct parallel sixteen = model_tensor_parallel(16), three = model_tensor_parallel(3);
    struct platform hw = load_platform("h100-sxm");
    struct ifl_error error = {0};
    cr_expect_null(cost_create_roofline(&model, &hw, &three, 16, &error));
    cr_expect_not_null(strstr(error.text, "shares the 32 query heads"), "%s", error.text);
    struct cost *cost = cost_create_roofline(&model, &hw, &sixteen, 16, &error);
    cr_expect_not_null(cost);
    cost_destroy(cost);
    for (int i = 0; i < HARDWARE_ALLREDUCES; i++)
        hw.hardware.allreduce[i] = (struct lines_profile){0};
    cr_expect_null(cost_create_roofline(&model, &hw, &sixteen, 16, &error));
    cr_expect_not_null(strstr(error.text, "parallel.tensor is 16"), "%s", error.text);
    cr_expect_not_null(strstr(error.text, "h100-sxm"));
}

/* ---- against whole runs: requests alone on one H100 80GB, vLLM 0.11.0 ---- */

/* Time of the decode steps of a lone request: all tokens but the first. */
static double decode_s(const char *model_name, int32_t prompt, int32_t output)
{
    const struct model model = load_model(model_name);
    const struct platform hw = load_platform("h100-sxm");
    struct cost *cost = roofline(&model, &hw, 1);
    int64_t ns = 0;
    for (int32_t i = 1; i < output; i++) {
        const struct ifl_step_totals totals = decoding(1, prompt + i);
        ns += cost_step_ns(cost, &totals);
    }
    cost_destroy(cost);
    return (double)ns * 1e-9;
}

/* inference-sim/inference-sim at e7a4aa37 (Apache-2.0), eval/ground_truth: second requests of
 * jan21-llama7b-train-1 and of the CodeLlama run of jan20 (column "decode"). */
Test(roofline, decode_of_lone_requests_against_measurements)
{
    cr_expect_lt(fabs(decode_s("llama-2-7b", 1493, 500) / 3.32403 - 1), 0.03, "%g",
                 decode_s("llama-2-7b", 1493, 500));
    cr_expect_lt(fabs(decode_s("codellama-34b", 2984, 38) / 0.961324 - 1), 0.03, "%g",
                 decode_s("codellama-34b", 2984, 38));
}

/* The same runs, column "prefill". The CodeLlama prompts share their first 1024 tokens, which the
 * second request finds cached. All predictions are on the fast side. */
static double prefill_error(const char *model_name, int32_t prompt, int32_t cached,
                            double measured_s)
{
    const struct model model = load_model(model_name);
    const struct platform hw = load_platform("h100-sxm");
    const struct ifl_step_totals totals = prefilling(prompt - cached, cached);
    return (double)step_ns(&model, &hw, 1, totals) * 1e-9 / measured_s - 1;
}

static void expect_between(double low, double error, double high)
{
    cr_expect(error > low && error < high, "error %.3f", error);
}

Test(roofline, prefill_of_lone_requests_against_measurements)
{
    expect_between(-0.10, prefill_error("llama-2-7b", 1493, 0, 0.0336919), 0);
    expect_between(-0.13, prefill_error("llama-2-7b", 3096, 0, 0.0723875), 0);
    expect_between(-0.10, prefill_error("codellama-34b", 2984, 1024, 0.201374), 0);
}

/* ---- consecutive steps ---- */

/* The duration of a run of steps is the sum of its steps' durations, to the nanosecond. */
static void expect_same_one_by_one(struct cost *cost, struct ifl_step_totals totals, size_t n)
{
    int64_t run_ns[COST_MAX_RUN];
    cr_assert_eq(cost_run_ns(cost, &totals, n, run_ns), n);
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(run_ns[i], cost_step_ns(cost, &totals), "step %zu of %zu, %d sequences", i, n,
                     totals.n_decode_seqs);
        totals.decode_context += totals.n_decode_seqs;
    }
}

/* Contexts on both sides of the size from which they are split. */
static void expect_runs_as_steps(struct cost *cost)
{
    for (uint64_t i = 0; i < 2000; i++) {
        const uint64_t random = ifl_mix(i);
        const int32_t n_seqs = 1 + (int32_t)(random % 300);
        const int64_t context = (int64_t)(random >> 20) % (i % 2 ? 4000 : 200);
        expect_same_one_by_one(cost, decoding(n_seqs, context), (random >> 50) % COST_MAX_RUN);
    }
    struct ifl_step_totals padded = decoding(4, 100);
    padded.padding = (struct ifl_padding){.n_decode_seqs = 3, .decode_context = 900};
    expect_same_one_by_one(cost, padded, 40);
    struct ifl_step_totals mixed = prefilling(512, 100);
    mixed.n_decode_seqs = 7;
    mixed.decode_context = 7000;
    expect_same_one_by_one(cost, mixed, 40);
    cost_destroy(cost);
}

Test(run, of_a_roofline_is_its_steps)
{
    static const char *const models[] = {"llama-2-7b", "llama-3-70b"}; /* MHA, GQA */
    static const char *const profiles[] = {"a100-80gb-sxm", "h100-sxm", "rtx-4090"};
    for (size_t m = 0; m < 2; m++)
        for (size_t p = 0; p < 3; p++) {
            const struct model model = load_model(models[m]);
            struct platform platform = load_platform(profiles[p]);
            expect_runs_as_steps(roofline(&model, &platform, 1));
            platform.deployment.host.floor_s = 0.03;
            platform.hardware.corrections = (struct corrections){
                .of = {{CORRECT_DECODE, 0, 0, 1000, 1.3}, {CORRECT_DECODE, 0, 0, 200000, 0.9}},
                .n_of = 2};
            expect_runs_as_steps(roofline(&model, &platform, 1));
        }
}

Test(run, of_a_linear_cost_is_its_steps)
{
    struct ifl_error error = {0};
    expect_runs_as_steps(cost_create_linear(&(struct linear_cost){5e-3, 1e-4, 2e-5, 3e-7}, &error));
}

Test(run, ends_before_a_step_too_long_to_be_added_up)
{
    struct ifl_error error = {0};
    int64_t ns[COST_MAX_RUN];
    const struct ifl_step_totals one = decoding(1, 100);
    struct cost *slow = cost_create_linear(&(struct linear_cost){3, 0, 0, 0}, &error);
    cr_expect_eq(cost_run_ns(slow, &one, 40, ns), 1);
    cr_expect_eq(ns[0], 3000000000);
    cost_destroy(slow);
    struct cost *slower = cost_create_linear(&(struct linear_cost){0, 0, 0, 0.02}, &error);
    cr_expect_eq(cost_run_ns(slower, &one, 40, ns), 8, "2.00 s to 2.14 s, below 2^31 ns");
    cost_destroy(slower);
}
