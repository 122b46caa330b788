/* Models in which some layers have a window or a state: the cost of their steps, and their K/V. */
#include <math.h>

#include "cost/cost.h"
#include "cost/memory_engine.h"
#include "cost/pass.h"
#include "cost/roofline.h"
#include "cost/roofline_window.h"

#include "steps.h"

enum { LAYERS = 36, WITH_WINDOW = 18, WINDOW = 128, N_SEQS = 24 };

static double step_of(const struct model *model, const struct ifl_step_totals *totals)
{
    return step_on("h100-sxm", model, totals);
}

static struct model without_windows(struct model model)
{
    model.window_tokens = model.window_layers = 0;
    return model;
}

static struct ifl_step_totals decodes_at(int64_t context)
{
    return decodes(N_SEQS, context);
}

static void expect_close(double a, double b)
{
    cr_expect_lt(fabs(a - b), 1e-12, "%.15g, expected %.15g", a, b);
}

/* All but attention is as without windows. Half of the layers read the context, the others as much
 * as if it were the window. */
Test(windows, decodes_read_the_window_in_some_layers)
{
    const struct model model = load_model("gpt-oss-120b"), plain = without_windows(model);
    const struct ifl_step_totals at_end = decodes_at(4000), at_window = decodes_at(WINDOW);
    cr_assert(model.layers == LAYERS && model.window_layers == WITH_WINDOW &&
              model.window_tokens == WINDOW);
    expect_close(step_of(&model, &at_window), step_of(&plain, &at_window));
    expect_close(step_of(&model, &at_end),
                 (step_of(&plain, &at_end) + step_of(&plain, &at_window)) / 2);
}

/* With a window in all layers a step costs the same at any context beyond the window. */
Test(windows, a_window_in_all_layers_bounds_a_step)
{
    const struct model model = load_model("mistral-7b");
    const struct ifl_step_totals before = decodes_at(4095), at = decodes_at(4096),
                                 beyond = decodes_at(9000);
    cr_expect_eq(model.window_layers, model.layers);
    cr_expect_lt(step_of(&model, &before), step_of(&model, &at));
    expect_close(step_of(&model, &at), step_of(&model, &beyond));
}

/* In chunks of 8192 the tokens behind the first of a chunk see half of it in the mean. */
Test(windows, a_chunk_is_half_read_in_the_mean)
{
    const struct model model = load_model("llama-4-scout"), plain = without_windows(model);
    const struct ifl_step_totals beyond = decodes_at(9000), at_half = decodes_at(4096),
                                 within = decodes_at(8000);
    expect_close(step_of(&model, &within), step_of(&plain, &within));
    expect_close(step_of(&model, &beyond),
                 (3 * step_of(&plain, &at_half) + step_of(&plain, &beyond)) / 4);
}

/* Steps in a run are steps, to the last nanosecond, also where the context passes the window on the
 * way. */
Test(windows, a_run_is_its_steps)
{
    enum { N = COST_MAX_RUN };
    static const char *const models[] = {"gpt-oss-20b", "qwen3-next-80b-a3b"};
    static struct platform platform;
    const struct parallel parallel = model_tensor_parallel(1);
    struct ifl_error error;
    cr_assert_eq(hardware_load("h200-sxm", &platform, &error), 0, "%s", error.text);
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        const struct model model = load_model(models[k]);
        struct cost *cost = cost_create_roofline(&model, &platform, &parallel, 16, &error);
        cr_assert(cost, "%s", error.text);
        struct ifl_step_totals totals = decodes_at(WINDOW - N / 2);
        int64_t run_ns[N];
        cr_assert_eq(cost_run_ns(cost, &totals, N, run_ns), N);
        for (int i = 0; i < N; i++, totals.decode_context += N_SEQS)
            cr_expect_eq(run_ns[i], cost_step_ns(cost, &totals), "%s, step %d", models[k], i);
        cost_destroy(cost);
    }
}

/* Of 4096 tokens behind each other the first 1024 + 128, a tile more than the window, see all
 * before them, the others as many: 1152^2 / 2 + 2944 x 1152 of 4096^2 / 2 pairs. */
Test(windows, prompts_see_the_window)
{
    const struct model model = load_model("gemma-3-27b");
    const struct roofline_rank rank = {.model = &model, .window_tokens = 1024};
    const struct ifl_step_totals prompt = {.n_tokens = 4096,
                                           .n_prefill_tokens = 4096,
                                           .n_prefill_seqs = 1,
                                           .prefill_q_q = 4096 * 4096,
                                           .max_prefill_kv = 4096};
    const struct ifl_step_totals seen = window_totals(&rank, &prompt);
    cr_expect_eq(seen.prefill_q_q, 2 * (1152 * 1152 / 2 + 2944 * 1152));
    cr_expect_eq(seen.max_prefill_kv, 1152);
}

/* A prompt that ends within the window costs as much as without one; the longer a prompt, the more
 * is saved. */
Test(windows, longer_prompts_save_more)
{
    const struct model model = load_model("gemma-3-27b"), plain = without_windows(model);
    double last = 1;
    for (int64_t n = 512; n <= 65536; n *= 2) {
        const struct ifl_step_totals totals = {.n_tokens = (int32_t)n,
                                               .n_prefill_tokens = (int32_t)n,
                                               .n_prefill_seqs = 1,
                                               .n_sampled = 1,
                                               .prefill_q_q = n * n,
                                               .max_prefill_kv = (int32_t)n};
        const double frac = step_of(&model, &totals) / step_of(&plain, &totals);
        if (n <= 1024)
            expect_close(frac, 1);
        else
            cr_expect_lt(frac, last, "%lld: %.3f", (long long)n, frac);
        last = frac;
    }
}

/* A pass by hand: 4 h d_head FLOP for each query and key, 36 layers of 64 heads of 64. */
Test(windows, pairs_of_a_pass)
{
    const struct model model = load_model("gpt-oss-120b");
    const struct pass pass = {.n_seqs = 2, .new_tokens = 1, .context_tokens = 999};
    struct pass_part parts[PASS_PARTS];
    pass_count(&model, 1, &pass, parts);
    expect_close(parts[PASS_ATTENTION].flops / (4.0 * 64 * 64 * 2 * 18 * (1000 + 128)), 1);
}

/* vLLM's block pool: of 12 layers in gpt-oss-20b, each block 16 tokens x 8 heads x 64 x 2 x 2 bytes
 * = 32 KiB a layer, 384 KiB; twice as many as of all layers, but for the odd one. */
Test(windows, a_block_holds_a_group)
{
    const struct model model = load_model("gpt-oss-20b");
    static struct platform platform;
    const struct memory_profile_run run = {8192, 256, 1, false};
    struct memory_options options = {1, 16, 0.9, 1, true};
    struct memory_plan groups, all;
    struct ifl_error error;
    cr_assert_eq(hardware_load("h100-sxm", &platform, &error), 0, "%s", error.text);
    cr_assert_eq(
        memory_plan_engine(&model, &platform, &options, MEMORY_VLLM_0_14, &run, &groups, &error), 0,
        "%s", error.text);
    options.groups = false;
    cr_assert_eq(
        memory_plan_engine(&model, &platform, &options, MEMORY_VLLM_0_14, &run, &all, &error), 0,
        "%s", error.text);
    cr_expect_eq(groups.block_bytes, 384 << 10);
    cr_expect_eq(groups.n_groups, 2);
    cr_expect_leq(abs(groups.n_blocks - 2 * all.n_blocks), 2);
}

static double weights_gib(const char *hardware, enum memory_rule rule)
{
    const struct model model = load_model("gpt-oss-120b");
    static struct platform platform;
    const struct memory_profile_run run = {2048, 6, 1, false};
    const struct memory_options options = {1, 16, 0.96, 1, true};
    struct memory_plan plan;
    struct ifl_error error;
    cr_assert_eq(hardware_load(hardware, &platform, &error), 0, "%s", error.text);
    cr_assert_eq(memory_plan_engine(&model, &platform, &options, rule, &run, &plan, &error), 0,
                 "%s", error.text);
    return (double)plan.weight_bytes / (1 << 30);
}

/* On H100 vLLM 0.10.1 and 0.11.2 log "Model loading took 65.9651 GiB" (issue 23278: Marlin, whose
 * columns are padded), 0.14.1 logs 64.38 (issue 33155: "Using Triton backend"). */
Test(windows, experts_are_padded_for_marlin)
{
    const double marlin = weights_gib("h100-sxm", MEMORY_VLLM_0_9_1),
                 triton = weights_gib("h100-sxm", MEMORY_VLLM_0_12);
    cr_expect_float_eq(marlin, 65.9651, 0.1, "%g", marlin);
    cr_expect_float_eq(triton, 64.38, 0.2, "%g", triton);
    cr_expect_eq(weights_gib("h100-sxm", MEMORY_VLLM_0_20), triton);
    cr_expect_eq(weights_gib("a100-80gb-sxm", MEMORY_VLLM_0_12), marlin);
}

/* ---- states ---- */

/* 48 layers of 512 experts of 512 and a shared one, of which 12 attend: 16 heads of 256 with gates,
 * 2 of keys and of values; 36 with 16 and 32 heads of 128. Qwen's card: 80B, 3B of them active. */
Test(states, qwen3_next_has_80_billion_parameters)
{
    const struct model model = load_model("qwen3-next-80b-a3b");
    const int64_t d = 2048, expert = 3 * d * 512, keys = 16 * 128, values = 32 * 128;
    const int64_t attention = d * (2 * 16 + 2 * 2) * 256 + 16 * 256 * d + 2 * 256;
    const int64_t state =
        d * (2 * keys + 2 * values + 2 * 32) + values * d + 4 * (2 * keys + values) + 2 * 32 + 128;
    const int64_t all =
        2 * 151936 * d + d + 12 * attention + 36 * state + 48 * (2 * d + 512 * d + 513 * expert);
    cr_expect_eq(model_parameters(&model), all, "%lld, expected %lld",
                 (long long)model_parameters(&model), (long long)all);
    cr_expect_lt(fabs((double)all / 80e9 - 1), 0.01);
    cr_expect_eq(model_active_parameters(&model), all - 48 * 502 * expert - 151936 * d);
}

/* vLLM rounds blocks up to whole 16 tokens that hold a state, and logs what that adds. */
static void expect_block(const struct model *model, int32_t tokens, double padding)
{
    const double layers = model->layers - model->state_layers;
    const double token_bytes = (double)model_kv_bytes_per_token(model, 1) / layers;
    const double state = (double)model_state_bytes(model, 1);
    cr_expect_eq(16 * (int32_t)ceil(state / token_bytes / 16), tokens);
    cr_expect_lt(fabs(tokens * token_bytes / state - 1 - padding), 5e-5);
}

/* Blocks of 544 tokens of Qwen3-Next-80B-A3B, padded by 1.49%, and of Qwen3.5-0.8B (states of 32
 * bits), by 2.64%, and of 784 of Qwen3.6-27B, are what public logs of vLLM 0.11 to 0.24 say. */
Test(states, blocks_that_logs_name)
{
    struct model model = load_model("qwen3-next-80b-a3b");
    expect_block(&model, 544, 0.0149);
    model.state_v_heads = 16;
    model.state_bytes = 4;
    expect_block(&model, 544, 0.0264);
    model.state_v_heads = 48;
    model.n_kv_heads = 4;
    expect_block(&model, 784, 0.0013);
}

/* K/V of 12 layers alone. A layer's state: 32 x 128 x 128 elements and three tokens of 8192
 * channels, 1,097,728 bytes. */
Test(states, a_state_is_as_large_as_a_block)
{
    const struct model model = load_model("qwen3-next-80b-a3b");
    cr_expect_eq(model_kv_bytes_per_token(&model, 1), 12 * 2 * 2 * 256 * 2);
    cr_expect_eq(model_state_bytes(&model, 1), 1097728);
    cr_expect_eq(model_state_bytes(&model, 4), 1097728 / 4);
    cr_expect_eq(model_kv_groups(&model).layers, 12);
    cr_expect_eq(model_kv_groups(&model).n_window, 3);
}

/* Decodes read no more of a longer context in three of four layers. */
Test(states, a_context_is_read_in_the_other_layers)
{
    const struct model model = load_model("qwen3-next-80b-a3b");
    struct model all = model;
    all.state_layers = 0;
    const struct ifl_step_totals near = decodes_at(1000), far = decodes_at(9000);
    expect_close(4 * (step_of(&model, &far) - step_of(&model, &near)),
                 step_of(&all, &far) - step_of(&all, &near));
}

static void expect_refused(const struct model *model, const char *key)
{
    struct model copy = *model;
    struct ifl_error error;
    const char *guilty = model_complete(&copy, &error);
    cr_assert(guilty, "expected an error of %s", key);
    cr_expect_str_eq(guilty, key);
}

Test(states, contradictions_are_refused)
{
    struct model model = load_model("qwen3-next-80b-a3b"), windows = load_model("gpt-oss-20b"),
                 plain = load_model("llama-2-7b");
    model.state_k_dim = 0;
    expect_refused(&model, "state_layers");
    model.state_k_dim = 128;
    model.state_k_heads = 3;
    expect_refused(&model, "state_v_heads");
    model.state_k_heads = 16;
    model.state_layers = 48;
    expect_refused(&model, "state_layers");
    plain.state_v_heads = 1;
    expect_refused(&plain, "state_v_heads");
    plain.state_v_heads = 0;
    plain.window_layers = 3;
    expect_refused(&plain, "window_layers");
    plain.window_layers = 0;
    plain.quantization = MODEL_MXFP4;
    expect_refused(&plain, "quantization");
    windows.window_layers = 25;
    expect_refused(&windows, "window_layers");
    windows.window_layers = windows.window_tokens = 0;
    windows.chunked = true;
    expect_refused(&windows, "chunked");
}
