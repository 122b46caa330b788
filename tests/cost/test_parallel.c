/* Models spread over ranks, and what the ranks tell one another, against a pencil. */
#include <stdlib.h>
#include <string.h>

#include "cost/collective.h"
#include "cost/cost.h"
#include "cost/draft.h"
#include "cost/memory.h"
#include "cost/memory_engine.h"
#include "loading.h"

static void expect_near(double a, double b)
{
    cr_expect(a <= b * (1 + 1e-12) && a >= b * (1 - 1e-12), "%.17g, expected %.17g", a, b);
}

/* ---- what a rank holds ---- */

/* 48 layers of 128 experts of 3 x 768 x 2048 in bf16: 57,982,058,496 bytes. Two ranks hold half of
 * them each, whole experts or half of the columns, and everything else. */
Test(parallel, experts_are_dealt_out)
{
    const struct model model = load_model("qwen3-30b-a3b");
    const int64_t alone = model_weight_bytes(&model, 1);
    struct model_linear of[MODEL_LINEARS];
    struct model spread;
    struct ifl_error error = {0};
    cr_assert_eq(model_spread(&model, &(struct parallel){1, 1, 2, 2, 1, false}, &spread, &error),
                 0);
    cr_expect_eq(alone - model_weight_bytes(&spread, 1), INT64_C(28991029248));
    cr_expect_eq(spread.n_rank_experts, 64);
    model_layer_linears(&spread, 1, of);
    cr_expect_eq(of[MODEL_MLP_UP].n, 2 * 768);
    cr_assert_eq(model_spread(&model, &(struct parallel){1, 1, 2, 1, 1, false}, &spread, &error),
                 0);
    cr_expect_eq(alone - model_weight_bytes(&spread, 1), INT64_C(28991029248));
    model_layer_linears(&spread, 1, of);
    cr_expect_eq(of[MODEL_MLP_UP].n, 768);
    /* four ranks, two of them of one tensor-parallel group, experts over two: half of 64 experts */
    cr_assert_eq(model_spread(&model, &(struct parallel){2, 1, 2, 2, 1, false}, &spread, &error),
                 0);
    model_layer_linears(&spread, 2, of);
    cr_expect_eq(of[MODEL_MLP_UP].n, 768);
    cr_expect_eq(of[0].n, (16 + 2 * 2) * 128);
    cr_expect_eq(model_weight_bytes(&model, 2) - model_weight_bytes(&spread, 2),
                 INT64_C(57982058496) / 4);
    cr_assert_eq(model_spread(&model, &(struct parallel){1, 1, 1, 1, 1, false}, &spread, &error),
                 0);
    cr_expect_eq(memcmp(&spread, &model, sizeof model), 0);
}

static void expect_refused(const char *name, struct parallel parallel, const char *words)
{
    const struct model model = load_model(name);
    struct model spread;
    struct ifl_error error = {0};
    cr_expect_eq(model_spread(&model, &parallel, &spread, &error), IFL_E_INPUT, "%s", words);
    cr_expect_not_null(strstr(error.text, words), "%s", error.text);
}

Test(parallel, uneven_shares_are_refused)
{
    expect_refused("llama-3-8b", (struct parallel){1, 1, 2, 1, 1, false},
                   "parallel.data is 2, expected 1 for llama-3-8b, which has no experts");
    expect_refused("llama-3-8b", (struct parallel){2, 1, 1, 2, 1, false}, "parallel.expert is 2");
    expect_refused("qwen3-30b-a3b", (struct parallel){1, 1, 3, 3, 1, false},
                   "the 128 experts of qwen3-30b-a3b");
    expect_refused("qwen3-30b-a3b", (struct parallel){1, 1, 2, 4, 1, false},
                   "a divisor of the 2 ranks");
    expect_refused("qwen3-30b-a3b", (struct parallel){4, 1, 1, 1, 2, false},
                   "a divisor of the 1 ranks that hold the same of the 4 KV heads");
    expect_refused("qwen3-30b-a3b", (struct parallel){8, 1, 1, 1, 4, false},
                   "a divisor of the 2 ranks");
}

/* A KV head is copied to 8 / 4 ranks, and two ranks that share its context hold half of it each: a
 * block of 32 tokens takes the bytes that one of 16 took. */
Test(parallel, shared_context_doubles_the_tokens)
{
    const struct model model = load_model("qwen3-30b-a3b");
    const struct platform hw = load_platform("h100-sxm");
    struct memory_plan alone, shared;
    struct ifl_error error = {0};
    cr_assert_eq(memory_plan(&model, &hw, &(struct memory_options){8, 16, 0.9, 1}, &alone, &error),
                 0);
    cr_assert_eq(memory_plan(&model, &hw, &(struct memory_options){8, 16, 0.9, 2}, &shared, &error),
                 0);
    cr_expect_eq(shared.block_tokens, 32);
    cr_expect_eq(shared.n_blocks, alone.n_blocks);
    cr_expect_eq(shared.block_bytes, alone.block_bytes);
}

/* The picks of 2048 tokens more, 8 each, in and out of an expert: rows of 2048 + 2048 elements of
 * two bytes. Two ranks without NVLink have communicators of 0.2 GiB. */
Test(parallel, experts_compute_the_tokens_of_all_ranks)
{
    const struct model model = load_model("qwen3-30b-a3b");
    const struct platform hw = load_platform("rtx-pro-6000");
    const struct memory_options options = {1, 16, 0.9, 1};
    struct memory_plan alone, both;
    struct model spread;
    struct ifl_error error = {0};
    cr_assert_eq(model_spread(&model, &(struct parallel){1, 1, 2, 2, 1, false}, &spread, &error),
                 0);
    cr_assert_eq(memory_plan_engine(&model, &hw, &options, MEMORY_VLLM_0_17,
                                    &(struct memory_profile_run){2048, 128, 1}, &alone, &error),
                 0);
    cr_assert_eq(memory_plan_engine(&spread, &hw, &options, MEMORY_VLLM_0_17,
                                    &(struct memory_profile_run){2048, 128, 2}, &both, &error),
                 0);
    cr_expect_eq(both.activation_bytes - alone.activation_bytes, 2048 * 8 * (2048 + 2048) * 2);
    cr_expect_eq(alone.collective_bytes, 0);
    cr_expect_eq(both.collective_bytes, (int64_t)(0.2 * 1024 * 1024 * 1024));
    cr_expect_eq(alone.weight_bytes - both.weight_bytes, INT64_C(28991029248));
}

/* ---- all-reduces and exchanges ---- */

/* From two ranks to four: 6 hops' time in place of 4, and 3/2 of the message in place of 1. */
Test(parallel, lines_for_other_numbers_of_ranks)
{
    struct platform hw = {.hardware.allreduce = {{4, 300, 60, 600, 0}}};
    struct lines_profile lines;
    cr_assert(allreduce_lines(&hw, 2, &lines));
    cr_expect_eq(memcmp(&lines, &hw.hardware.allreduce[0], sizeof lines), 0);
    cr_assert(allreduce_lines(&hw, 4, &lines));
    expect_near(lines.latency_us, 6);
    expect_near(lines.bulk_latency_us, 60);
    expect_near(lines.gb_per_s, 200);
    expect_near(lines.bulk_gb_per_s, 400);
    cr_assert(allreduce_lines(&hw, 8, &lines));
    expect_near(lines.latency_us, 10);
    expect_near(lines.gb_per_s, 300 / 1.75);
    hw.hardware.allreduce[2] = (struct lines_profile){10, 100, 0, 0, 0};
    cr_assert(allreduce_lines(&hw, 16, &lines)); /* from eight: 18 / 10, and 30/16 to 14/8 */
    expect_near(lines.latency_us, 18);
    expect_near(lines.gb_per_s, 100 * 1.75 / 1.875);
    hw.hardware.allreduce[0] = (struct lines_profile){0};
    cr_assert(allreduce_lines(&hw, 4, &lines));
    expect_near(lines.latency_us, 6);
    hw.hardware.allreduce[2] = (struct lines_profile){0};
    cr_expect_not(allreduce_lines(&hw, 4, &lines));
    /* the deployment's own, whatever the profile has */
    hw.deployment.all_reduce = (struct deployment_all_reduce){7e-6, 20, 8e-6, 25, 1e6};
    cr_assert(allreduce_lines(&hw, 4, &lines));
    expect_near(lines.latency_us, 7);
    expect_near(lines.gb_per_s, 20);
    expect_near(lines.bulk_latency_us, 8);
    expect_near(lines.bulk_gb_per_s, 25);
    expect_near(lines.bulk_from_bytes, 1e6);
}

/* Two ranks with 64 and 32 tokens of 2048 elements. */
Test(parallel, bytes_of_an_exchange)
{
    struct deployment_exchange exchange = {.latency_s = 10e-6, .gb_per_s = 12};
    const struct exchange_shape shape = {64, 96, 2048, 8, 2, 2};
    expect_near(exchange_bytes(&exchange, &shape), 96 / 2 * 2048 * (2 + 2));
    expect_near(exchange_s(&exchange, &shape), 2 * 10e-6 + 393216 / 12e9);
    exchange = (struct deployment_exchange){
        .method = EXCHANGE_ALL_TO_ALL, .dispatch_bytes = 1, .combine_bytes = 2};
    expect_near(exchange_bytes(&exchange, &shape), 64 * 2 * 2048 * (1 + 2));
}

/* ---- steps of several ranks ---- */

/* Nothing takes time but what a test sets. */
static struct platform weightless(void)
{
    return (struct platform){
        .hardware = {.name = "weightless",
                     .gpu = {.peak_tflops = 1e12, .memory_gb_per_s = 1e15, .n_sms = 100},
                     .gemm = {.compute_frac = 1, .memory_frac = 1, .exponent = 100},
                     .prefill = {.compute_frac = 1, .causal_frac = 0.5},
                     .decode = {.memory_frac = 1},
                     .decode_mixed = {.memory_frac = 1},
                     .elementwise = {.memory_frac = 1},
                     .allreduce = {{.gb_per_s = 1e15}, {.gb_per_s = 1e15}, {.gb_per_s = 1e15}}},
        .deployment.exchange = {.gb_per_s = 1e15},
    };
}

static struct model experts(void)
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
                          .kv_bytes = 2,
                          .n_experts = 8,
                          .experts_per_token = 2};
}

static struct ifl_step_totals decoding(int32_t n_seqs, int64_t context)
{
    return (struct ifl_step_totals){.n_tokens = n_seqs,
                                    .n_decode_seqs = n_seqs,
                                    .n_sampled = n_seqs,
                                    .decode_context = n_seqs * context};
}

/* Of up to two ranks; second.n_tokens 0: the second has no work. */
static int64_t group_ns(const struct platform *hw, struct parallel parallel,
                        struct ifl_step_totals first, struct ifl_step_totals second)
{
    const struct model model = experts();
    const struct ifl_step_totals *const of[] = {&first, &second};
    struct ifl_error error = {0};
    struct cost *cost = cost_create_roofline(&model, hw, &parallel, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    const int64_t ns = cost_group_step_ns(cost, of, second.n_tokens > 0 ? 2 : 1);
    cost_destroy(cost);
    return ns;
}

static const struct parallel two_ranks = {1, 1, 2, 2, 1, false};

/* Ten layers, (2 - 1) / 2 of the tokens x 64 x (2 + 2) bytes at 1 byte/ns: 1280 ns a token. */
Test(group, exchanges_the_tokens_of_all_ranks)
{
    struct platform hw = weightless();
    hw.deployment.exchange = (struct deployment_exchange){.gb_per_s = 1};
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(3, 10), decoding(5, 10)), 8 * 1280);
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(5, 10), decoding(3, 10)), 8 * 1280);
    hw.deployment.exchange.latency_s = 2e-6; /* on each of 20 ways */
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(3, 10), decoding(5, 10)), 8 * 1280 + 40000);
}

/* A rank without work has one token. With graphs of one size both have as many as the larger. */
Test(group, a_dummy_step_has_a_token)
{
    struct platform hw = weightless();
    hw.deployment.exchange = (struct deployment_exchange){.gb_per_s = 1};
    const struct ifl_step_totals none = {0};
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(3, 10), none), (3 + 1) * 1280);
    hw.deployment.exchange.padded_tokens = 4;
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(3, 10), none), (3 + 3) * 1280);
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(3, 10), decoding(5, 10)), 8 * 1280);
    hw.deployment.exchange.padded_tokens = 5;
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(3, 10), decoding(5, 10)), 10 * 1280);
}

/* Without a rate of its own the exchange is an all-gather and a reduce-scatter: half of an
 * all-reduce each. */
Test(group, exchange_by_the_all_reduce)
{
    struct platform hw = weightless();
    hw.deployment.exchange.gb_per_s = 0;
    hw.hardware.allreduce[0] = (struct lines_profile){.latency_us = 1, .gb_per_s = 1};
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(3, 10), decoding(5, 10)),
                 10 * (2 * 1000 + 8 * 64 * 2));
}

/* K and V: 10 layers x 2 x 2 heads x 8 x 2 bytes = 640 bytes a token of context, at 1 byte/ns. */
Test(group, lasts_as_the_longest_rank)
{
    struct platform hw = weightless();
    hw.hardware.decode.memory_frac = 1e-15;
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(3, 10), decoding(2, 50)), 100 * 640);
    cr_expect_eq(group_ns(&hw, two_ranks, decoding(2, 50), decoding(3, 10)), 100 * 640);
}

/* One expert's products: 2 x 2 x 64 x 256 + 2 x 2 x 128 x 64 FLOPs a pick would be those of a gated
 * MLP of 128: 6 x 64 x 128 = 49,152 a pick. 8 tokens pick 16, of which each of two ranks gets half.
 * At 1 TFLOP/s and 10 layers: 8 x 49,152 x 10 = 3,932 ns, beside the ranks' own products. */
Test(group, each_rank_has_its_part_of_the_picks)
{
    struct platform hw = weightless();
    hw.hardware.gpu.peak_tflops = 1;
    const int64_t both_ns = group_ns(&hw, two_ranks, decoding(4, 10), decoding(4, 10));
    hw.deployment.exchange.imbalance = 2;
    const int64_t uneven_ns = group_ns(&hw, two_ranks, decoding(4, 10), decoding(4, 10));
    cr_expect_leq(llabs(uneven_ns - both_ns - 3932), 1, "%lld", (long long)(uneven_ns - both_ns));
}

/* ---- steps of one rank ---- */

static int64_t step_ns(const struct platform *hw, struct parallel parallel,
                       struct ifl_step_totals totals)
{
    const struct model model = experts();
    struct ifl_error error = {0};
    struct cost *cost = cost_create_roofline(&model, hw, &parallel, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    const int64_t ns = cost_step_ns(cost, &totals);
    cost_destroy(cost);
    return ns;
}

/* Four ranks have a KV head each, 320 bytes a token; two of them share its context. The same in a
 * run of steps. */
Test(rank, reads_its_part_of_the_context)
{
    const struct parallel four = {4, 1, 1, 1, 1, false}, shared = {4, 1, 1, 1, 2, false};
    const struct model model = experts();
    struct platform hw = weightless();
    struct ifl_error error = {0};
    int64_t ns[2];
    hw.hardware.decode.memory_frac = 1e-15;
    cr_expect_eq(step_ns(&hw, four, decoding(3, 10)), 30 * 320);
    cr_expect_eq(step_ns(&hw, shared, decoding(3, 10)), 30 * 320 / 2);
    struct cost *cost = cost_create_roofline(&model, &hw, &shared, 16, &error);
    const struct ifl_step_totals first = decoding(3, 10);
    cr_assert_eq(cost_run_ns(cost, &first, 2, ns), 2);
    cr_expect_eq(ns[0], 30 * 320 / 2);
    cr_expect_eq(ns[1], 33 * 320 / 2);
    cost_destroy(cost);
    /* 2 ways of 3 tokens x 4 heads of the two ranks x (2 x 8 x 2 + 4) bytes / 2, in 10 layers */
    hw = weightless();
    hw.hardware.allreduce[0] = (struct lines_profile){.latency_us = 1, .gb_per_s = 1};
    cr_expect_eq(step_ns(&hw, shared, decoding(3, 10)), 10 * (2 * 1000 + 3 * 4 * 36));
}

/* Two all-reduces of 1 us and 3 x 64 x 2 bytes at 1 byte/ns become four halves. The 8 x 64 elements
 * of norms, 2 bytes each and 1 byte/ns, are divided by two. */
Test(rank, sequence_parallelism_halves_norms_and_messages)
{
    struct platform hw = weightless();
    hw.hardware.allreduce[0] = (struct lines_profile){.latency_us = 1, .gb_per_s = 1};
    const int64_t plain_ns = step_ns(&hw, (struct parallel){2, 1, 1, 1, 1, false}, decoding(3, 10));
    const int64_t halves_ns = step_ns(&hw, (struct parallel){2, 1, 1, 1, 1, true}, decoding(3, 10));
    cr_expect_eq(plain_ns, 10 * 2 * (1000 + 384));
    cr_expect_eq(halves_ns, 10 * 4 * (1000 + 192));
    hw = weightless();
    hw.hardware.elementwise.memory_frac = 1e-15;
    const int64_t all_ns = step_ns(&hw, (struct parallel){2, 1, 1, 1, 1, false}, decoding(3, 10));
    const int64_t part_ns = step_ns(&hw, (struct parallel){2, 1, 1, 1, 1, true}, decoding(3, 10));
    cr_expect_eq(all_ns - part_ns, 10 * 3 * 8 * 64 * 2 / 2);
}

/* ---- guesses ---- */

/* What a head of one layer like those of `of` adds to a step of each rank's totals. */
static int64_t head_of_ns(struct model model, struct model of_head, const struct platform *hw,
                          struct parallel parallel, const struct ifl_step_totals totals[2])
{
    const struct draft_cost head = {.proposer = PROPOSER_HEAD,
                                    .model = &of_head,
                                    .platform = hw,
                                    .parallel = &parallel,
                                    .layers = 1,
                                    .lm_head_frac = 1,
                                    .width = 1,
                                    .block_tokens = 16};
    const struct ifl_step_totals *const of[] = {&totals[0], &totals[1]};
    struct ifl_error error = {0};
    struct cost *cost = cost_create_roofline(&model, hw, &parallel, 16, &error);
    cr_assert_not_null(cost, "%s", error.text);
    const int64_t target_ns = cost_group_step_ns(cost, of, (size_t)parallel.data);
    cost = cost_create_drafting(cost, &head, &error);
    cr_assert_not_null(cost, "%s", error.text);
    const int64_t both_ns = cost_group_step_ns(cost, of, (size_t)parallel.data);
    cost_destroy(cost);
    return both_ns - target_ns;
}

static int64_t head_ns(const struct platform *hw, struct parallel parallel,
                       struct ifl_step_totals first, struct ifl_step_totals second)
{
    const struct ifl_step_totals totals[] = {first, second};
    return head_of_ns(experts(), experts(), hw, parallel, totals);
}

/* A guess for each of n sequences. */
static struct ifl_step_totals guessing(int32_t n)
{
    struct ifl_step_totals totals = decoding(n, 10);
    totals.n_tokens += n;
    totals.n_sampled += n;
    totals.n_draft_tokens = totals.n_draft_seqs = n;
    totals.max_drafts = 1;
    return totals;
}

/* The head has no experts: however the target's are dealt out, it is shared by the four ranks of a
 * group, with two all-reduces of n x 64 x 2 bytes, 1 us and 1 byte/ns each. The group with the most
 * guesses takes longest. */
Test(head, is_shared_by_the_ranks_of_a_group)
{
    struct platform hw = weightless();
    hw.hardware.allreduce[1] = (struct lines_profile){.latency_us = 1, .gb_per_s = 1};
    const struct ifl_step_totals none = {0};
    cr_expect_eq(head_ns(&hw, (struct parallel){4, 1, 1, 1, 1, false}, guessing(3), none),
                 2 * (1000 + 3 * 128));
    cr_expect_eq(head_ns(&hw, (struct parallel){4, 1, 1, 4, 1, false}, guessing(3), none),
                 2 * (1000 + 3 * 128));
    cr_expect_eq(head_ns(&hw, (struct parallel){4, 1, 2, 8, 1, false}, guessing(3), guessing(5)),
                 2 * (1000 + 5 * 128));
    cr_expect_eq(head_ns(&hw, (struct parallel){4, 1, 2, 1, 1, false}, guessing(5), guessing(3)),
                 2 * (1000 + 5 * 128));
}

/* One layer of a model in which only some have a window or a state is one that sees everything;
 * where all have a window, it has it, too. */
Test(head, has_a_window_or_a_state_where_all_layers_have_one)
{
    static const char *const names[] = {"qwen3-next-80b-a3b", "gpt-oss-20b", "mistral-7b"};
    const struct platform hw = load_platform("h100-sxm");
    const struct ifl_step_totals totals[2] = {guessing(3)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct model target = load_model(names[i]);
        struct model one = target;
        const bool has_windows = target.window_layers == target.layers;
        cr_assert_gt(target.window_layers + target.state_layers, 0, "%s", names[i]);
        one.layers = 1;
        one.window_layers = has_windows;
        one.state_layers = 0;
        const struct parallel parallel = model_tensor_parallel(1);
        cr_expect_eq(head_of_ns(target, target, &hw, parallel, totals),
                     head_of_ns(target, one, &hw, parallel, totals), "%s", names[i]);
    }
}
