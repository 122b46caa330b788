/* What adapters cost, against the equations in adapter_cost.h and the paper's sizes. */
#include <criterion/criterion.h>

#include "cost/adapter_cost.h"
#include "cost/cost.h"

/* Llama-2-7B. */
static const struct model llama = {.layers = 32,
                                   .d_model = 4096,
                                   .n_q_heads = 32,
                                   .n_kv_heads = 32,
                                   .d_head = 128,
                                   .d_ffn = 11008,
                                   .vocab = 32000,
                                   .mlp = MODEL_MLP_GATED,
                                   .weight_bytes = 2,
                                   .kv_bytes = 2};
/* 100 TFLOP/s at 0.5, 1000 GB/s at 0.8, 3 us a launch, 20 GB/s to the host. */
static const struct hardware card = {.gpu = {.peak_tflops = 100, .memory_gb_per_s = 1000},
                                     .gemm = {.compute_frac = 0.5},
                                     .elementwise = {.launch_us = 3, .memory_frac = 0.8},
                                     .swap_in = {.gb_per_s = 20}};

/* S-LoRA, section 5.1: an adapter of rank r takes 4 r of the pool's slots, each of 2 x 4096 numbers
 * a layer, where it is on query, key, value and output. */
Test(adapter_cost, an_adapter_of_attention_is_4_r_slots)
{
    const int64_t slot_bytes = (int64_t)2 * 32 * 4096 * 2;
    cr_expect_eq(adapter_bytes(&llama, ADAPTER_QKVO, 16), 4 * 16 * slot_bytes);
    cr_expect_eq(adapter_bytes(&llama, ADAPTER_QV, 16), 2 * 16 * slot_bytes);
    /* and gate, up and down: 3 (4096 + 11008) numbers a rank and layer */
    cr_expect_eq(adapter_bytes(&llama, ADAPTER_ALL, 8) - adapter_bytes(&llama, ADAPTER_QKVO, 8),
                 (int64_t)8 * 32 * 3 * (4096 + 11008) * 2);
}

static void expect_near(double found, double expected)
{
    cr_expect_float_eq(found, expected, 1e-12 + 1e-9 * expected, "%.12g is not %.12g", found,
                       expected);
}

static struct adapter_cost cost_with(struct adapter_cost_options options)
{
    options.matrices = ADAPTER_QKVO;
    options.tensor_parallel = 1;
    options.load_copies = options.load_copies ? options.load_copies : 1;
    return adapter_cost_of(&llama, &card, &options);
}

/* 20 rows of ranks 8 and 16, three different adapters: bound by reading. S = 4 x 8192 a layer. */
Test(adapter_cost, few_rows_are_bound_by_reading)
{
    const struct adapter_cost cost = cost_with((struct adapter_cost_options){0});
    const struct ifl_adapter_totals totals = {
        .n = 3, .n_tokens = 20, .n_runs = 20, .most_rank = 16, .ranks = 40, .rank_tokens = 240};
    const double launches_s = 2 * 4 * 32 * 3e-6, numbers = 4.0 * 8192 * 32;
    expect_near(adapter_step_s(&cost, &totals), launches_s + numbers * 2 * (40 + 20) / 0.8e12);
}

/* 4000 rows of rank 64 of one adapter: 2 S rank rows FLOPs at 50 TFLOP/s take longer. */
Test(adapter_cost, many_rows_are_bound_by_computing)
{
    const struct adapter_cost cost = cost_with((struct adapter_cost_options){0});
    const struct ifl_adapter_totals totals = {
        .n = 1, .n_tokens = 4000, .n_runs = 1, .most_rank = 64, .ranks = 64, .rank_tokens = 256000};
    const double launches_s = 2 * 4 * 32 * 3e-6, numbers = 4.0 * 8192 * 32;
    expect_near(adapter_step_s(&cost, &totals), launches_s + 2 * numbers * 256000 / 50e12);
}

Test(adapter_cost, kernels_of_one_rank_compute_all_as_if_they_had_it)
{
    const struct adapter_cost cost = cost_with((struct adapter_cost_options){.padded_rank = 64});
    const struct ifl_adapter_totals small = {
        .n = 1, .n_tokens = 4000, .n_runs = 1, .most_rank = 8, .ranks = 8, .rank_tokens = 32000};
    const struct ifl_adapter_totals large = {
        .n = 1, .n_tokens = 4000, .n_runs = 1, .most_rank = 64, .ranks = 64, .rank_tokens = 256000};
    expect_near(adapter_step_s(&cost, &small), adapter_step_s(&cost, &large));
}

/* Two loads of 100 MB, twice over 20 GB/s, one of them from a disk of 2 GB/s. */
Test(adapter_cost, loads_cross_the_link)
{
    const struct adapter_cost cost = cost_with(
        (struct adapter_cost_options){.load_copies = 2, .load_s = 0.001, .disk_gb_per_s = 2});
    const struct ifl_adapter_totals totals = {
        .n_loads = 2, .n_disk_loads = 1, .load_bytes = 200000000, .disk_bytes = 100000000};
    expect_near(adapter_step_s(&cost, &totals), 2 * 0.001 + 2 * 0.2 / 20 + 0.1 / 2);
}

/* A merged adapter costs nothing but its load: four passes over the matrices. */
Test(adapter_cost, merged_ones_cost_as_they_are_loaded)
{
    const struct adapter_cost cost =
        cost_with((struct adapter_cost_options){.compute = ADAPTER_MERGED});
    const struct ifl_adapter_totals rows = {.n = 1, .n_tokens = 100, .ranks = 8};
    const struct ifl_adapter_totals load = {.n_loads = 1};
    cr_expect_eq(adapter_step_s(&cost, &rows), 0);
    expect_near(adapter_step_s(&cost, &load), 4 * 4.0 * 4096 * 4096 * 32 * 2 / 0.8e12);
}

/* Steps that are foretold together last as each alone, to the nanosecond. */
Test(adapter_cost, a_run_of_steps_is_its_steps)
{
    struct platform platform;
    struct model model;
    struct ifl_error error;
    const struct parallel one = model_tensor_parallel(1);
    cr_assert_eq(hardware_load("a10g", &platform, &error), 0, "%s", error.text);
    cr_assert_eq(model_load("llama-2-7b", &model, &error), 0, "%s", error.text);
    struct cost *cost = cost_create_roofline(&model, &platform, &one, 16, &error);
    cr_assert_not_null(cost);
    const int64_t without_ns = cost_step_ns(
        cost, &(struct ifl_step_totals){
                  .n_tokens = 7, .n_decode_seqs = 7, .n_sampled = 7, .decode_context = 3000});
    const struct adapter_cost adapters = cost_with((struct adapter_cost_options){0});
    struct ifl_step_totals totals = {
        .n_tokens = 7,
        .n_decode_seqs = 7,
        .n_sampled = 7,
        .decode_context = 3000,
        .adapters = {
            .n = 2, .n_tokens = 7, .n_runs = 7, .most_rank = 8, .ranks = 16, .rank_tokens = 56}};
    int64_t ns[40];
    cost_adapt(cost, &adapters);
    cr_assert_eq(cost_run_ns(cost, &totals, 40, ns), 40);
    cr_expect_eq(ns[0] - without_ns,
                 (int64_t)(adapter_step_s(&adapters, &totals.adapters) * 1e9 + 0.5));
    for (int i = 0; i < 40; i++, totals.decode_context += 7)
        cr_expect_eq(ns[i], cost_step_ns(cost, &totals), "step %d", i);
    cost_destroy(cost);
}
