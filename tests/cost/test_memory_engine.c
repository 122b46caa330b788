#include "cost/memory_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static const double gib = 1024.0 * 1024 * 1024;

/* ---- the start-up logs ---- */

static const char v1_logs[] = "tests/cost/data/vllm_startup.csv",
                  v0_logs[] = "tests/cost/data/vllm_v0_startup.csv";

static struct memory_plan plan_by(const struct row *row, enum memory_rule rule)
{
    const struct model model = model_of(row);
    struct platform platform = platform_of(row);
    const struct memory_options options = options_of(row);
    const struct memory_profile_run run = {(int32_t)number(row, "max_batched_tokens"),
                                           (int32_t)number(row, "max_seqs"),
                                           .flashinfer_sampler = flag(row, "flashinfer")};
    struct memory_plan plan;
    struct ifl_error error = {0};
    platform.hardware.gpu.memory_gib = number(row, "memory_gib");
    cr_assert_eq(memory_plan_engine(&model, &platform, &options, rule, &run, &plan, &error), 0,
                 "%s: %s", word(row, "model"), error.text);
    return plan;
}

/* What the allocator held when the step had ended counts once more where the log says so. */
static struct memory_plan plan_of(const struct row *row)
{
    struct memory_plan plan = plan_by(row, rule_of(row));
    if (!flag(row, "held_twice"))
        return plan;
    const int64_t held_bytes = plan_by(row, MEMORY_VLLM_0_3_1).activation_bytes;
    plan.workspace_bytes += held_bytes;
    plan.kv_bytes -= held_bytes;
    return plan;
}

/* The plan's memory outside of K/V less the log's, in GiB. Logs without the amount of K/V give its
 * blocks, or the parts that are no weights. */
static double residual_gib(const struct row *row, const struct memory_plan *plan)
{
    const double kv_gib = number(row, "kv_gib"), blocks = number(row, "blocks");
    if (kv_gib > 0)
        return kv_gib - (double)plan->kv_bytes / gib;
    if (blocks > 0)
        return (blocks * (double)plan->block_bytes - (double)plan->kv_bytes) / gib;
    const int64_t parts = plan->activation_bytes + plan->workspace_bytes + plan->collective_bytes;
    return (double)parts / gib - number(row, "activations_gib") - number(row, "outside_gib");
}

/* Where the log has no count, that of the amount that it has; NAN if it has neither. */
static double logged_blocks(const struct row *row, const struct memory_plan *plan)
{
    const double blocks = number(row, "blocks"), kv_gib = number(row, "kv_gib");
    if (blocks > 0)
        return blocks;
    return kv_gib > 0 ? floor(kv_gib * gib / (double)plan->block_bytes) : NAN;
}

/* The null block included, as logs count. */
static int32_t counted_blocks(const struct row *row, const struct memory_plan *plan)
{
    return plan->n_blocks + memory_rule_has_null_block(rule_of(row));
}

static double block_error(const struct row *row, const struct memory_plan *plan)
{
    return counted_blocks(row, plan) / logged_blocks(row, plan) - 1;
}

static bool kv_is_a_quarter(const struct row *row, const struct memory_plan *plan)
{
    return logged_blocks(row, plan) * (double)plan->block_bytes > 0.25 * (double)plan->gpu_bytes;
}

static void show(const struct row *row, const struct memory_plan *plan, double off)
{
    printf("# %-8s %-8s %-10s %-20s x%d: weights %.2f (%g) activations %.2f (%g) outside %.2f (%g) "
           "residual %+.2f GiB, blocks %d (%g)\n",
           word(row, "source"), word(row, "half"), word(row, "rule"), word(row, "model"),
           plan->tensor_parallel, (double)plan->weight_bytes / gib, number(row, "weights_gib"),
           (double)plan->activation_bytes / gib, number(row, "activations_gib"),
           (double)(plan->workspace_bytes + plan->collective_bytes) / gib,
           number(row, "outside_gib"), off, plan->n_blocks + 1, number(row, "blocks"));
}

/* The central 90% of the rule's error. */
static bool interval_holds(const struct memory_plan *plan, double off_gib)
{
    return fabs(off_gib) * gib < 1.6449 * (double)plan->error_bytes;
}

/* Within 0.35 GiB, and 0.6 on several GPUs. */
static bool memory_is_near(const struct memory_plan *plan, double off_gib)
{
    return fabs(off_gib) < (plan->tensor_parallel == 1 ? 0.35 : 0.6);
}

/* Blocks within 5%, and 8% on several GPUs, where K/V has a quarter of the card; else the interval
 * holds the log. */
static bool blocks_are_near(const struct row *row, const struct memory_plan *plan, double off_gib)
{
    if (!kv_is_a_quarter(row, plan))
        return interval_holds(plan, off_gib);
    return fabs(block_error(row, plan)) < (plan->tensor_parallel == 1 ? 0.05 : 0.08);
}

/* A row that is known to fall short must do so: else the page that says so is out of date. */
static void expect_near(const struct row *row)
{
    const struct memory_plan plan = plan_of(row);
    const double off = residual_gib(row, &plan);
    const bool memory = memory_is_near(&plan, off), blocks = blocks_are_near(row, &plan, off);
    const bool falls_short = flag(row, "short");
    show(row, &plan, off);
    cr_expect_eq(memory && blocks, !falls_short, "%s of %s: %+.2f GiB, blocks %+.1f%%",
                 word(row, "model"), word(row, "source"), off, 100 * block_error(row, &plan));
}

static void expect_half(const char *path, const char *half, size_t n_expected)
{
    struct table table = read_logs(path);
    size_t n = 0;
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct row row = {&table, i};
        if (strcmp(word(&row, "half"), half) != 0)
            continue;
        expect_near(&row);
        n++;
    }
    cr_expect_eq(n, n_expected, "%zu rows", n);
    table_free(&table);
}

Test(memory_engine, logs_of_the_fit)
{
    expect_half(v1_logs, "fit", 21);
}

Test(memory_engine, logs_held_out)
{
    expect_half(v1_logs, "held out", 13);
}

Test(memory_engine, logs_seen_before_a_rule_changed)
{
    expect_half(v1_logs, "seen", 10);
}

Test(memory_engine, v0_logs_of_the_fit)
{
    expect_half(v0_logs, "fit", 12);
}

Test(memory_engine, v0_logs_held_out)
{
    expect_half(v0_logs, "held out", 14);
}

/* The one of V1 that is too far off in GiB: 0.38 GiB too much is left on an RTX 4090, where K/V has
 * a fifth of the card. The old rule left 0.44 GiB too much. */
Test(memory_engine, rtx_4090_falls_short)
{
    struct table table = read_logs(v1_logs);
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct row row = {&table, i};
        if (strcmp(word(&row, "source"), "L") != 0)
            continue;
        const struct memory_plan plan = plan_of(&row);
        const double off = residual_gib(&row, &plan);
        show(&row, &plan, off);
        cr_expect(off < -0.35 && off > -0.40, "%+.2f GiB", off);
    }
    table_free(&table);
}

/* Qwen3-Next-80B of vLLM 0.10.2 on two H200 (notes in a public repository): 139.81 GiB, 8192
 * tokens, 1024 sequences, 44.59 GiB of K/V in blocks of 544 tokens. A block holds 12 layers, and a
 * sequence has some in four groups of them; the log prints the tokens of one group, 973,760. */
Test(memory_engine, layers_with_states_as_logged)
{
    const struct model model = load_model("qwen3-next-80b-a3b");
    const struct platform platform = load_platform("h200-sxm");
    const struct memory_options options = {2, 544, 0.9, .groups = true};
    const struct memory_profile_run run = {8192, 1024};
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(
        memory_plan_engine(&model, &platform, &options, MEMORY_VLLM_0_9_1, &run, &plan, &error), 0,
        "%s", error.text);
    const double off = 44.59 - (double)plan.kv_bytes / gib, n_logged = 973760.0 / 544 * 4;
    printf("# Qwen3-Next-80B x2: weights %.2f (74.28), %+.2f GiB, blocks %d (%.0f)\n",
           (double)plan.weight_bytes / gib, off, plan.n_blocks + 1, n_logged);
    cr_expect(memory_is_near(&plan, off), "%+.2f GiB", off);
    cr_expect_lt(fabs((plan.n_blocks + 1) / n_logged - 1), 0.08, "%d", plan.n_blocks);
}

/* ---- the page ---- */

/* Memory outside of K/V of a rank, that of the log first; logs without an amount or a count of K/V
 * print its parts alone. */
static void page_line(const struct row *row, char *text, size_t n_bytes)
{
    const struct memory_plan plan = plan_of(row);
    const double off = residual_gib(row, &plan), logged = number(row, "blocks");
    const double outside = (double)(plan.usable_bytes - plan.kv_bytes) / gib;
    char blocks[64] = "- | -";
    if (logged > 0)
        snprintf(blocks, sizeof blocks, "%.0f | %d (%+.1f%%)", logged, counted_blocks(row, &plan),
                 100 * block_error(row, &plan));
    snprintf(text, n_bytes, "| %s | %s | %s | %s | %d | %.2f | %.2f (%+.2f) | %s | %s |",
             word(row, "source"), word(row, "half"), plan.rule, word(row, "model"),
             plan.tensor_parallel, outside - off, outside, off, blocks,
             interval_holds(&plan, off) ? "holds" : "no");
}

static void expect_on_page(const char *path, const char *page)
{
    struct table table = read_logs(path);
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct row row = {&table, i};
        char text[256];
        page_line(&row, text, sizeof text);
        printf("%s\n", text);
        cr_expect_not_null(strstr(page, text), "the page has no line\n%s", text);
    }
    table_free(&table);
}

Test(memory_engine, the_page_has_every_log)
{
    static char page[32768];
    FILE *in = fopen("reports/reproductions/memory/README.md", "r");
    cr_assert_not_null(in);
    const size_t n = fread(page, 1, sizeof page - 1, in);
    fclose(in);
    cr_assert(n > 0 && n < sizeof page - 1);
    expect_on_page(v1_logs, page);
    expect_on_page(v0_logs, page);
}

/* Estimates of v0.19, within 0.3 GiB but for one: Granite 2B printed 1.6 GiB and then took 0.84. */
Test(memory_engine, graphs_as_logged)
{
    struct table table = read_logs(v1_logs);
    size_t n = 0, n_far = 0;
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct row row = {&table, i};
        const double logged = number(&row, "graphs_gib");
        if (logged == 0)
            continue;
        const struct model model = model_of(&row);
        const struct memory_options options = {(int32_t)number(&row, "tensor"), 16, 0.95};
        const struct memory_profile_run run = {8192, 1024};
        const struct platform platform = load_platform("h100-sxm");
        struct memory_plan plan;
        struct ifl_error error = {0};
        cr_assert_eq(
            memory_plan_engine(&model, &platform, &options, MEMORY_VLLM_0_20, &run, &plan, &error),
            0, "%s", error.text);
        const double off = (double)plan.graph_bytes / gib - logged;
        printf("# %-8s %-20s graphs %+.2f GiB\n", word(&row, "half"), word(&row, "model"), off);
        n++;
        n_far += fabs(off) > 0.3;
    }
    cr_expect_eq(n, 9, "%zu", n);
    cr_expect_eq(n_far, 1, "%zu", n_far);
    table_free(&table);
}

/* From 0.8 on encoders count, and there is a null block: both by vLLM's source. */
Test(memory_engine, what_each_rule_counts)
{
    for (int rule = 0; rule <= MEMORY_SGLANG; rule++) {
        const bool is_late = rule >= MEMORY_VLLM_0_8 && rule != MEMORY_SGLANG;
        cr_expect_eq(memory_rule_counts_encoder((enum memory_rule)rule), is_late, "%d", rule);
        cr_expect_eq(memory_rule_has_null_block((enum memory_rule)rule), is_late, "%d", rule);
    }
}

/* ---- two A100 with Llama-3.1-70B ---- */

/* The deployment of llm-d of May 2025: utilisation 0.95, 2048 tokens, 256 sequences, vLLM 0.9.0.
 * Its recordings have up to about 2,290 blocks in use whenever a request waits. */
static const struct memory_options two_a100 = {2, 16, 0.95};
static const struct memory_profile_run of_a100 = {2048, 256};

static struct memory_plan plan_70b(const struct platform *platform)
{
    const struct model model = load_model("llama-3.1-70b");
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(
        memory_plan_engine(&model, platform, &two_a100, MEMORY_VLLM_0_8, &of_a100, &plan, &error),
        0, "%s", error.text);
    return plan;
}

Test(memory_engine, llama_70b_on_two_a100)
{
    const struct platform platform = load_platform("a100-80gb-sxm");
    const struct memory_plan plan = plan_70b(&platform);
    cr_expect_lt(fabs(plan.n_blocks / 2290.0 - 1), 0.05, "%d", plan.n_blocks);
    cr_expect(memory_end(&plan, MEMORY_LOW) < 2290 && memory_end(&plan, MEMORY_HIGH) > 2290);
}

/* 0.53 + 0.13 of context and libraries, 1.76 + 2 x 0.03 of collectives; 256 x 128256 logits of 37
 * bytes beside 2048 hidden states of 16 KiB, and 0.07 GiB. */
Test(memory_engine, the_terms_by_hand)
{
    const struct platform platform = load_platform("a100-80gb-sxm");
    const struct memory_plan plan = plan_70b(&platform);
    cr_expect_float_eq((double)plan.workspace_bytes, 0.66 * gib, 2);
    cr_expect_float_eq((double)plan.collective_bytes, 1.82 * gib, 2);
    cr_expect_float_eq((double)plan.activation_bytes,
                       256.0 * 128256 * 37 + 2048.0 * 8192 * 2 + 0.07 * gib, 2);
    cr_expect_eq(plan.sampled_seqs, 256);
    cr_expect_eq(plan.graph_bytes, 0);
    cr_expect_eq(plan.kv_bytes, plan.usable_bytes - plan.weight_bytes - plan.activation_bytes -
                                    plan.workspace_bytes - plan.collective_bytes);
    cr_expect_eq(plan.n_blocks, plan.kv_bytes / (16 * 163840) - 1); /* the null block */
}

Test(memory_engine, the_arithmetic_is_printed)
{
    const struct platform platform = load_platform("a100-80gb-sxm");
    const struct memory_plan plan = plan_70b(&platform);
    char text[768] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    cr_assert_not_null(out);
    memory_print(&plan, out);
    fclose(out);
    cr_expect_str_eq(
        text,
        "KV memory of each of 2 GPUs: by the rule vllm-0.8 79.15 GiB x 0.95 = 75.19, less 65.71 "
        "weights, 1.23 activations (logits of 256 sequences), 0.66 context and libraries, 1.82 "
        "collectives, 0.00 CUDA graphs leaves 5.77 +- 0.24 GiB for KV blocks of 2.500 MiB:\n"
        "2362 blocks of 16 tokens, 37792 tokens; 90% of counts lie from 2203 to 2520.\n");
}

/* Ends of the interval are 1.645 standard deviations away; a draw of one moves the count by one. */
Test(memory_engine, a_draw_moves_the_count)
{
    struct platform platform = load_platform("a100-80gb-sxm");
    const struct memory_plan plan = plan_70b(&platform);
    const double sd = (double)plan.error_bytes / (double)plan.block_bytes;
    cr_expect_float_eq((double)plan.error_bytes, hypot(0.15, 0.182) * gib, 2);
    cr_expect_leq(abs(memory_end(&plan, MEMORY_HIGH) - (int)(plan.n_blocks + 1.6449 * sd)), 1);
    platform.deployment.memory.drawn_sds = -1;
    cr_expect_leq(abs(plan_70b(&platform).n_blocks - (int)(plan.n_blocks - sd)), 1);
    platform.deployment.memory.drawn_sds = -100;
    cr_expect_eq(plan_70b(&platform).n_blocks, 1);
}

Test(memory_engine, what_does_not_fit_is_said_with_its_arithmetic)
{
    const struct model model = load_model("llama-3.1-70b");
    const struct platform platform = load_platform("h100-sxm");
    const struct memory_options one = {1, 16, 0.92};
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_expect_eq(
        memory_plan_engine(&model, &platform, &one, MEMORY_VLLM_0_20, &of_a100, &plan, &error),
        IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "131.42 weights"), "%s", error.text);
    cr_expect_not_null(strstr(error.text, "CUDA graphs leaves -"), "%s", error.text);
    cr_expect_eq(
        memory_plan_engine(&model, &platform, &one, MEMORY_SGLANG, &of_a100, &plan, &error),
        IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "by the rule sglang"), "%s", error.text);
}

/* ---- what moves a count ---- */

static int64_t scale_bytes(struct model model, int32_t group)
{
    const struct platform platform = load_platform("h100-sxm");
    const struct memory_options options = {1, 16, 0.9};
    struct memory_plan plan;
    struct ifl_error error = {0};
    model.quantization = MODEL_INT4;
    model.quantization_group = group;
    cr_assert_eq(
        memory_plan_engine(&model, &platform, &options, MEMORY_VLLM_0_17, &of_a100, &plan, &error),
        0);
    model.quantization_group = -1;
    return plan.weight_bytes - model_weight_bytes(&model, 1);
}

/* Half a byte each, and 20 bits for a group: of 128 where nothing is said, hardly any of a column.
 */
Test(memory_engine, groups_of_4_bits_have_scales_and_zeros)
{
    struct model model = load_model("llama-3-8b");
    model.quantization = MODEL_INT4;
    const int64_t n_weights = 2 * model_matrices_bytes(&model, 1);
    cr_expect_eq(scale_bytes(model, 0), n_weights / 128 * 20 / 8);
    cr_expect_eq(scale_bytes(model, 128), n_weights / 128 * 20 / 8);
    cr_expect_eq(scale_bytes(model, 32), n_weights / 32 * 20 / 8);
    cr_expect_eq(scale_bytes(model, -1), 0);
}

static struct memory_plan plan_8b(enum memory_rule rule, struct memory_profile_run run)
{
    const struct model model = load_model("llama-3-8b");
    const struct platform platform = load_platform("h100-sxm");
    const struct memory_options options = {1, 16, 0.9};
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(memory_plan_engine(&model, &platform, &options, rule, &run, &plan, &error), 0,
                 "%s", error.text);
    return plan;
}

/* Start-up logs: 51 and 35 graphs with 256 sequences, 5 and 4 with 8. */
Test(memory_engine, graphs_by_their_sizes)
{
    const double each = 0.205 * 1024 * 1024 * 32, base = 0.19 * gib;
    const double of_256 =
        (double)plan_8b(MEMORY_VLLM_0_20, (struct memory_profile_run){2048, 256}).graph_bytes;
    const double of_8 =
        (double)plan_8b(MEMORY_VLLM_0_20, (struct memory_profile_run){2048, 8}).graph_bytes;
    cr_expect_float_eq((of_256 - base) / each, 51 + 35, 1e-3);
    cr_expect_float_eq((of_8 - base) / each, 5 + 4, 1e-3);
}

Test(memory_engine, few_sequences_leave_the_layer_as_the_widest)
{
    const struct memory_plan plan =
        plan_8b(MEMORY_VLLM_0_17, (struct memory_profile_run){8192, 16});
    cr_expect_eq(plan.sampled_seqs, 0);
    cr_expect_float_eq((double)plan.activation_bytes,
                       8192.0 * 2 * (3 * 14336 + 3 * 4096) + 0.07 * gib, 2);
}

/* 256 sequences are not sampled in a step of 64 tokens. */
Test(memory_engine, a_small_step_samples_fewer)
{
    cr_expect_eq(plan_8b(MEMORY_VLLM_0_17, (struct memory_profile_run){64, 256}).sampled_seqs, 64);
}

Test(memory_engine, releases_count_differently)
{
    const struct memory_profile_run run = {8192, 1024};
    const struct memory_plan oldest = plan_8b(MEMORY_VLLM_0_8, run);
    const struct memory_plan older = plan_8b(MEMORY_VLLM_0_9_1, run);
    const struct memory_plan old = plan_8b(MEMORY_VLLM_0_17, run);
    const struct memory_plan now = plan_8b(MEMORY_VLLM_0_20, run);
    cr_expect_float_eq((double)(older.kv_bytes - oldest.kv_bytes), 0.53 * gib, 4);
    cr_expect_gt(old.kv_bytes, older.kv_bytes);
    cr_expect_eq(old.kv_bytes - now.kv_bytes, now.graph_bytes);
}

/* ---- V1 before its sampler was profiled ---- */

static double logits_of_0_7(int32_t tensor_parallel, int32_t n_tokens)
{
    const struct model model = load_model("llama-3-8b");
    const struct platform platform = load_platform("h100-sxm");
    const struct memory_options options = {tensor_parallel, 16, 0.9};
    const struct memory_profile_run run = {n_tokens, 256};
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(
        memory_plan_engine(&model, &platform, &options, MEMORY_VLLM_0_7, &run, &plan, &error), 0,
        "%s", error.text);
    cr_expect(plan.logits_tokens == n_tokens && plan.sampled_seqs == 0);
    cr_expect_eq(plan.n_blocks, plan.kv_bytes / plan.block_bytes, "no null block");
    return (double)plan.activation_bytes - 0.07 * gib;
}

/* 128,256 logits of 2 bytes and a hidden state of 4096 each token; on two GPUs the rank's half of
 * the logits, what it gathers, and a copy of that. */
Test(memory_engine, v0_7_has_logits_of_all_tokens)
{
    cr_expect_float_eq(logits_of_0_7(1, 8192), 8192.0 * 2 * (128256 + 4096), 2);
    cr_expect_float_eq(logits_of_0_7(2, 2048), 2048.0 * 2 * (2.5 * 128256 + 4096), 2);
}

Test(memory_engine, the_null_block_came_with_0_8)
{
    for (int rule = 0; rule <= MEMORY_SGLANG; rule++)
        cr_expect_eq(memory_rule_has_null_block((enum memory_rule)rule),
                     rule >= MEMORY_VLLM_0_8 && rule < MEMORY_SGLANG, "%d", rule);
}

/* ---- V0 ---- */

/* 8192 tokens' layer, of which the MLP is 3 x 14336 wide and six rows of 4096 are alive; 20 bytes a
 * logit for the sort, which finds no room in the MLP's 448 MiB; 0.07 GiB. No null block. */
Test(memory_engine, v0_counts_what_the_allocator_holds)
{
    const double logits = 256.0 * 128256;
    const struct memory_plan plan =
        plan_8b(MEMORY_VLLM_0_3_1, (struct memory_profile_run){8192, 256});
    cr_expect_float_eq((double)plan.activation_bytes,
                       8192.0 * 2 * (3 * 14336 + 6 * 4096) + 20 * logits + 0.07 * gib, 2);
    cr_expect_eq(plan.sampled_seqs, 256);
    cr_expect_eq(plan.n_blocks, plan.kv_bytes / plan.block_bytes);
}

/* With half of the sequences the sort has room: pull request 9003 printed 1.71 GiB for 256, 1.10
 * for 128 and 1.10 for one. */
Test(memory_engine, v0_with_few_sequences_holds_the_layers_alone)
{
    const double printed_gib[] = {1.7109, 1.1016, 1.0977};
    const int32_t max_seqs[] = {256, 128, 1};
    for (int i = 0; i < 3; i++) {
        const struct memory_plan plan =
            plan_8b(MEMORY_VLLM_0_3_1, (struct memory_profile_run){8192, max_seqs[i]});
        cr_expect_float_eq((double)plan.activation_bytes / gib, printed_gib[i], 0.01, "%d: %g",
                           max_seqs[i], (double)plan.activation_bytes / gib);
    }
}

static struct memory_plan plan_70b_v0(enum memory_rule rule, int32_t tensor_parallel)
{
    const struct model model = load_model("llama-3-70b");
    const struct platform platform = load_platform("a100-80gb-sxm");
    const struct memory_options options = {tensor_parallel, 16, 0.9};
    const struct memory_profile_run run = {4096, 256};
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_eq(memory_plan_engine(&model, &platform, &options, rule, &run, &plan, &error), 0,
                 "%s", error.text);
    return plan;
}

/* 161 inputs of 64 MiB. */
Test(memory_engine, v0_2_5_keeps_the_inputs_of_all_reduces)
{
    const struct memory_plan kept = plan_70b_v0(MEMORY_VLLM_0_2_5, 4);
    const struct memory_plan freed = plan_70b_v0(MEMORY_VLLM_0_2_6, 4);
    cr_expect_eq(freed.kv_bytes - kept.kv_bytes, INT64_C(161) << 26);
    const struct memory_profile_run run = {4096, 256};
    cr_expect_eq(plan_8b(MEMORY_VLLM_0_2_5, run).kv_bytes,
                 plan_8b(MEMORY_VLLM_0_2_6, run).kv_bytes);
}

Test(memory_engine, v0_releases_count_differently)
{
    const struct memory_plan alone = plan_70b_v0(MEMORY_VLLM_0_1, 4);
    const struct memory_plan context = plan_70b_v0(MEMORY_VLLM_0_2_6, 4);
    const struct memory_plan none = plan_70b_v0(MEMORY_VLLM_0_3_1, 4);
    const struct memory_plan peak = plan_70b_v0(MEMORY_VLLM_0_6_4, 4);
    const struct memory_plan last = plan_70b_v0(MEMORY_VLLM_0_6_5, 4);
    cr_expect_eq(alone.workspace_bytes + alone.collective_bytes, 0);
    cr_expect_float_eq((double)(none.kv_bytes - context.kv_bytes), 0.53 * gib, 4);
    cr_expect_float_eq((double)(last.kv_bytes - peak.kv_bytes), 0.53 * gib, 4);
    cr_expect_eq(alone.activation_bytes, last.activation_bytes);
    cr_expect_leq(last.activation_bytes, none.activation_bytes);
}

Test(memory_engine, options_out_of_range_are_refused)
{
    const struct model model = load_model("llama-3-8b");
    const struct platform platform = load_platform("h100-sxm");
    const struct memory_options wrong[] = {{1, 0, 0.9}, {1, 16, 1.5}, {3, 16, 0.9}};
    struct memory_plan plan;
    struct ifl_error error = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_eq(memory_plan_engine(&model, &platform, &wrong[i], MEMORY_VLLM_0_20, &of_a100,
                                        &plan, &error),
                     IFL_E_INPUT);
}
