/* How many blocks engines count for a model with latent attention. */
#include "cost/memory_engine.h"

#include <string.h>

#include "rows.h"

static const double gib = 1024.0 * 1024 * 1024;

/* ---- start-up logs ---- */

static struct memory_plan plan_of(const struct row *row)
{
    struct model model = load_model(word(row, "model"));
    struct platform platform =
        load_platform(strcmp(word(row, "link"), "nvlink") == 0 ? "h100-sxm" : "rtx-4090");
    const struct memory_options options = {(int32_t)number(row, "tensor"), 16,
                                           number(row, "utilization")};
    const struct memory_profile_run run = {(int32_t)number(row, "max_batched_tokens"),
                                           (int32_t)number(row, "max_seqs")};
    const bool is_int4 = strcmp(word(row, "dtype"), "int4") == 0;
    struct memory_plan plan;
    struct ifl_error error = {0};
    cr_assert_str_eq(word(row, "rule"), "vllm-0.6.5");
    model_set_dtype(&model, is_int4 ? MODEL_DTYPE_INT4 : MODEL_DTYPE_FP8);
    platform.hardware.gpu.memory_gib = number(row, "memory_gib");
    cr_assert_eq(
        memory_plan_engine(&model, &platform, &options, MEMORY_VLLM_0_6_5, &run, &plan, &error), 0,
        "%s: %s", word(row, "source"), error.text);
    return plan;
}

/* Memory outside of K/V of a rank, that of the log first; and the parts that both name. */
static void page_line(const struct row *row, char *text, size_t n_bytes)
{
    const struct memory_plan plan = plan_of(row);
    const double outside = (double)(plan.usable_bytes - plan.kv_bytes) / gib;
    const double off = number(row, "kv_gib") - (double)plan.kv_bytes / gib;
    const double blocks = number(row, "blocks");
    char counts[64] = "-";
    if (blocks > 0)
        snprintf(counts, sizeof counts, "%.0f, %d (%+.1f%%)", blocks, plan.n_blocks,
                 100 * (plan.n_blocks / blocks - 1));
    snprintf(text, n_bytes,
             "| %s | %s | %s | %d | %.2f | %.2f (%+.2f) | %.2f, %.2f | %.2f, %.2f | %.2f, %.2f | "
             "%s |",
             word(row, "source"), word(row, "half"), plan.rule, plan.tensor_parallel, outside - off,
             outside, off, number(row, "weights_gib"), (double)plan.weight_bytes / gib,
             number(row, "activations_gib"), (double)plan.activation_bytes / gib,
             number(row, "outside_gib"),
             (double)(plan.workspace_bytes + plan.collective_bytes) / gib, counts);
}

/* Within 0.6 GiB of a rank, as for other models on several GPUs, and blocks within 8%. */
Test(memory_latent, logs_of_servers)
{
    struct table table = read_logs("tests/cost/data/vllm_latent_startup.csv");
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct row row = {&table, i};
        const struct memory_plan plan = plan_of(&row);
        const double off = number(&row, "kv_gib") - (double)plan.kv_bytes / gib;
        const double blocks = number(&row, "blocks");
        cr_expect_lt(fabs(off), 0.6, "%s: %+.2f GiB", word(&row, "source"), off);
        cr_expect(blocks == 0 || fabs(plan.n_blocks / blocks - 1) < 0.08, "%d", plan.n_blocks);
    }
    cr_expect_eq(table.n_rows, 2);
    table_free(&table);
}

Test(memory_latent, the_page_has_every_log)
{
    static char page[32768];
    struct table table = read_logs("tests/cost/data/vllm_latent_startup.csv");
    FILE *in = fopen("reports/reproductions/memory/README.md", "r");
    cr_assert_not_null(in);
    const size_t n = fread(page, 1, sizeof page - 1, in);
    fclose(in);
    cr_assert(n > 0 && n < sizeof page - 1);
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct row row = {&table, i};
        char text[256];
        page_line(&row, text, sizeof text);
        printf("# %s\n", text);
        cr_expect_not_null(strstr(page, text), "the page has no line\n%s", text);
    }
    table_free(&table);
}

/* 24.10 GiB, to two decimals, of 20712 blocks of 16 tokens: 1280 bytes a token and layer of 61,
 * where 576 elements have 1152. */
Test(memory_latent, v0_has_latents_at_multiples_of_256_bytes)
{
    struct table table = read_logs("tests/cost/data/vllm_latent_startup.csv");
    const struct row row = {&table, 1};
    const struct memory_plan plan = plan_of(&row);
    cr_expect_eq(plan.block_bytes, INT64_C(16) * 61 * 1280);
    cr_expect_lt(fabs(20712.0 * (double)plan.block_bytes / gib - 24.10), 0.005);
    table_free(&table);
}

/* ---- by hand ---- */

static int plan_lite(enum memory_rule rule, enum model_dtype dtype, struct memory_plan *plan,
                     struct ifl_error *error)
{
    struct model model = load_model("deepseek-v2-lite");
    const struct platform platform = load_platform("h100-sxm");
    const struct memory_options options = {2, 16, 0.9};
    const struct memory_profile_run run = {8192, 8};
    model_set_dtype(&model, dtype);
    *error = (struct ifl_error){0};
    return memory_plan_engine(&model, &platform, &options, rule, &run, plan, error);
}

static struct memory_plan lite(enum memory_rule rule, enum model_dtype dtype)
{
    struct memory_plan plan;
    struct ifl_error error;
    cr_assert_eq(plan_lite(rule, dtype, &plan, &error), 0, "%s", error.text);
    return plan;
}

Test(memory_latent, v1_and_sglang_have_latents_as_they_are)
{
    cr_expect_eq(lite(MEMORY_VLLM_0_8, MODEL_DTYPE_BF16).block_bytes, 16 * 27 * 1152);
    cr_expect_eq(lite(MEMORY_SGLANG, MODEL_DTYPE_BF16).block_bytes, 16 * 27 * 1152);
}

/* The latent is on each of the two ranks: a pool on one has no more than half of it less. */
Test(memory_latent, ranks_do_not_share_a_latent)
{
    const struct model model = load_model("deepseek-v2-lite");
    for (int32_t t = 1; t <= 16; t *= 2)
        cr_expect_eq(model_kv_bytes_per_token(&model, t), 27 * 576 * 2, "%d ranks", t);
}

/* W^UK and W^UV of 8 heads, 512 x (128 + 128) each, in 16 bits for 27 layers, beside quantised
 * weights alone. */
Test(memory_latent, vllm_keeps_absorbed_weights_in_16_bits)
{
    struct model model = load_model("deepseek-v2-lite");
    const int64_t copies = INT64_C(2) * 27 * 512 * 8 * (128 + 128);
    cr_expect_eq(lite(MEMORY_VLLM_0_8, MODEL_DTYPE_BF16).weight_bytes,
                 model_weight_bytes(&model, 2));
    model_set_dtype(&model, MODEL_DTYPE_FP8);
    cr_expect_eq(lite(MEMORY_VLLM_0_8, MODEL_DTYPE_FP8).weight_bytes,
                 model_weight_bytes(&model, 2) + copies);
}

/* 8192 tokens of 16 bits. From 0.14 on the first layer's MLP of 10944 / 2 columns and three rows of
 * 2048, which is more than the four rows of a layer with experts, one of them of the shared ones;
 * and workspaces of 6 picks, 2048 + 2048 each, which are kept. Before, and in V0, the workspaces
 * and the four rows are the most. */
Test(memory_latent, activations_by_hand)
{
    const double first = 8192.0 * 2 * (3 * 10944 / 2 + 3 * 2048);
    const double experts = 8192.0 * 2 * 6 * (2048 + 2048), rows = 8192.0 * 2 * 4 * 2048;
    cr_expect_float_eq((double)lite(MEMORY_VLLM_0_14, MODEL_DTYPE_BF16).activation_bytes,
                       first + experts + 0.07 * gib, 2);
    cr_expect_float_eq((double)lite(MEMORY_VLLM_0_8, MODEL_DTYPE_BF16).activation_bytes,
                       rows + experts + 0.07 * gib, 2);
    cr_expect_float_eq((double)lite(MEMORY_VLLM_0_6_5, MODEL_DTYPE_BF16).activation_bytes,
                       rows + experts + 0.07 * gib, 2);
}

/* Attention of V0's step on one rank: 16 heads with a query, a key, a value and an output of 192
 * and what they were cut from, 256, beside two rows of 2048; more than 4 rows and 1 pick. */
Test(memory_latent, attention_of_v0_can_be_the_most)
{
    struct model model = load_model("deepseek-v2-lite");
    const struct platform platform = load_platform("h100-sxm");
    const struct memory_profile_run run = {8192, 8};
    struct memory_plan plan;
    struct ifl_error error = {0};
    model.experts_per_token = 1;
    model.d_ffn_dense = 16;
    cr_assert_eq(memory_plan_engine(&model, &platform, &(struct memory_options){1, 16, 0.9},
                                    MEMORY_VLLM_0_6_5, &run, &plan, &error),
                 0, "%s", error.text);
    cr_expect_float_eq((double)plan.activation_bytes,
                       8192.0 * 2 * (16 * (4 * 192 + 256) + 2 * 2048) + 0.07 * gib, 2);
}

Test(memory_latent, older_rules_are_refused)
{
    struct memory_plan plan;
    struct ifl_error error;
    for (int rule = MEMORY_VLLM_0_1; rule < MEMORY_VLLM_0_6_5; rule++) {
        cr_expect_eq(plan_lite((enum memory_rule)rule, MODEL_DTYPE_BF16, &plan, &error),
                     IFL_E_INPUT);
        cr_expect_not_null(strstr(error.text, "no latent attention, that of deepseek-v2-lite"),
                           "%s", error.text);
    }
    for (int rule = MEMORY_VLLM_0_6_5; rule <= MEMORY_SGLANG; rule++)
        cr_expect_eq(plan_lite((enum memory_rule)rule, MODEL_DTYPE_BF16, &plan, &error), 0, "%s",
                     error.text);
}
