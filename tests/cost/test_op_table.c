/* Tables of three or four rows; expected times are by hand. */
#include <string.h>
#include <sys/stat.h>

#include "cost/cost.h"
#include "loading.h"

#define LINEAR_HEADER                                                                              \
    "num_tokens,attn_pre_proj,attn_post_proj,mlp_up_proj,mlp_down_proj,mlp_act,attn_rope,"         \
    "input_layernorm,post_attention_layernorm,add,attn_kv_cache_save_exact_tokens\n"

/* Nine operations add up to 9 ms at 8 tokens and to 18 ms at 16. */
static const char *const linear = LINEAR_HEADER "3,0,0,0,0,0,0,0,0,0,0.25\n"
                                                "8,1,1,1,1,1,1,1,1,1,0.5\n"
                                                "11,0,0,0,0,0,0,0,0,0,0.75\n"
                                                "16,2,2,2,2,2,2,2,2,2,1\n";
static const char *const decode = "batch_size,kv_rounded64,ms\n1,64,3\n3,64,4\n3,128,5\n";
static const char *const prefill = "kv_rounded64,chunk,ms\n0,8,6\n64,8,7\n128,10,8\n";

struct folder {
    char path[64];
};

static void put(const struct folder *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static struct folder make_folder(const char *linear_text, const char *decode_text,
                                 const char *prefill_text)
{
    struct folder folder;
    snprintf(folder.path, sizeof folder.path, "/tmp/inflight-tables-%ld", (long)getpid());
    cr_assert_eq(mkdir(folder.path, 0700), 0);
    put(&folder, "my_linear_ms_per_layer.csv", linear_text);
    put(&folder, "my_attn_decode_ms_per_layer.csv", decode_text);
    put(&folder, "my_attn_prefill_ms_per_layer.csv", prefill_text);
    return folder;
}

static void remove_folder(const struct folder *folder)
{
    static const char *const names[] = {"linear", "attn_decode", "attn_prefill"};
    char path[128];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/my_%s_ms_per_layer.csv", folder->path, names[i]);
        remove(path);
    }
    rmdir(folder->path);
}

/* Two layers; two query heads on one KV head share it. */
static struct cost *load(bool shares_kv, struct ifl_error *error)
{
    const struct model model = {.layers = 2, .n_q_heads = 2, .n_kv_heads = shares_kv ? 1 : 2};
    const struct folder folder = make_folder(linear, decode, prefill);
    *error = (struct ifl_error){0};
    struct cost *cost = cost_create_table(&model, folder.path, error);
    remove_folder(&folder);
    return cost;
}

static void expect_ms(bool shares_kv, struct ifl_step_totals totals, double ms)
{
    struct ifl_error error;
    struct cost *cost = load(shares_kv, &error);
    cr_assert_not_null(cost, "%s: %s", error.file, error.text);
    cr_expect_eq(cost_step_ns(cost, &totals), (int64_t)(ms * 1e6 + 0.5), "%lld ns, not %g ms",
                 (long long)cost_step_ns(cost, &totals), ms);
    cost_destroy(cost);
}

/* K/V of 3 sequences: 193 / 3 = 64 and a third is 64 after the floor; 195 / 3 = 65 is 128 after the
 * ceiling. */
static const struct ifl_step_totals three_decode = {
    .n_tokens = 3, .n_decode_seqs = 3, .n_sampled = 3, .decode_context = 193};
static const struct ifl_step_totals three_longer = {
    .n_tokens = 3, .n_decode_seqs = 3, .n_sampled = 3, .decode_context = 195};
/* Chunks of 6 and 5 tokens behind 64 and 33: sqrt(61) = 7.8 is 8, hence not in the table at 128. */
static const struct ifl_step_totals two_chunks = {.n_tokens = 11,
                                                  .n_prefill_tokens = 11,
                                                  .n_prefill_seqs = 2,
                                                  .prefill_q_q = 61,
                                                  .prefill_kv_64 = 64};
static const struct ifl_step_totals mixed = {.n_tokens = 11,
                                             .n_prefill_tokens = 8,
                                             .n_prefill_seqs = 1,
                                             .n_decode_seqs = 3,
                                             .decode_context = 192,
                                             .prefill_q_q = 64,
                                             .prefill_kv_64 = 0};

Test(op_table, rounds_as_vidur_does)
{
    expect_ms(false, three_decode, 2 * (9 + 0.25 + 4));
    expect_ms(false, three_longer, 2 * (9 + 0.25 + 5));
    expect_ms(false, two_chunks, 2 * (18 + 0.75 + 7));
    expect_ms(false, mixed, 2 * (18 + 0.75 + 4 + 6));
}

/* 10% on the terms over more than one sequence, where KV heads are shared. */
Test(op_table, batches_of_shared_kv_heads_cost_more)
{
    expect_ms(true, three_decode, 2 * (9 + 0.25 + 1.1 * 4));
    expect_ms(true, two_chunks, 2 * (18 + 0.75 + 1.1 * 7));
    expect_ms(true, mixed, 2 * (18 + 0.75 + 1.1 * 4 + 6));
}

/* The step has no duration, and the reason names the table and the row. */
static void expect_unknown(struct ifl_step_totals totals, const char *file, const char *words)
{
    struct ifl_error error;
    struct cost *cost = load(false, &error);
    cr_assert_not_null(cost, "%s", error.text);
    cr_expect_lt(cost_step_ns(cost, &totals), 0);
    cr_expect_eq(cost_why_not(cost, &totals, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.file, file), "%s", error.file);
    cr_expect_not_null(strstr(error.text, words), "%s", error.text);
    cost_destroy(cost);
}

Test(op_table, says_which_row_it_lacks)
{
    struct ifl_step_totals totals = three_decode;
    totals.n_tokens = 17;
    expect_unknown(totals, "linear", "num_tokens 24, or for 17");
    totals = three_decode;
    totals.decode_context = 3 * 129;
    expect_unknown(totals, "attn_decode", "batch_size 3 and kv_rounded64 192");
    totals = two_chunks;
    totals.prefill_kv_64 = 128;
    expect_unknown(totals, "attn_prefill", "kv_rounded64 128 and chunk 8");
    totals = three_decode;
    totals.n_blocks_out = 1;
    expect_unknown(totals, "", "blocks that are swapped");
}

static void expect_refused(const char *linear_text, const char *decode_text, int line,
                           const char *words)
{
    const struct model model = {.layers = 2, .n_q_heads = 2, .n_kv_heads = 2};
    const struct folder folder = make_folder(linear_text, decode_text, prefill);
    struct ifl_error error = {0};
    cr_expect_null(cost_create_table(&model, folder.path, &error));
    cr_expect_eq(error.code, IFL_E_INPUT);
    cr_expect_eq(error.line, line, "%d: %s", error.line, error.text);
    cr_expect_not_null(strstr(error.text, words), "%s", error.text);
    remove_folder(&folder);
}

Test(op_table, refuses_tables_that_are_not)
{
    expect_refused("num_tokens,ms\n1,2\n", decode, 1, "no column attn_kv_cache_save_exact_tokens");
    expect_refused(linear, "batch_size,kv_rounded64\n1,64\n", 1, "no column ms");
    expect_refused(linear, "batch_size,kv_rounded64,ms\n1,65,2\n", 2, "a multiple of 64");
    expect_refused(linear, "batch_size,kv_rounded64,ms\n1,64,-2\n", 2, "expected a number from 0");
    expect_refused(linear, "batch_size,kv_rounded64,ms\n1,64,2\n1,64,3\n", 3, "a second row");
    expect_refused(linear, "batch_size,kv_rounded64,ms\n1000000,64000000,2\n", 0,
                   "expected at most");
}

Test(op_table, wants_one_file_a_kind)
{
    const struct model model = {.layers = 2, .n_q_heads = 2, .n_kv_heads = 2};
    const struct folder folder = make_folder(linear, decode, prefill);
    struct ifl_error error = {0};
    put(&folder, "other_linear_ms_per_layer.csv", linear);
    cr_expect_null(cost_create_table(&model, folder.path, &error));
    cr_expect_not_null(strstr(error.text, "2 files that end in linear_ms_per_layer.csv"), "%s",
                       error.text);
    char path[128];
    snprintf(path, sizeof path, "%s/other_linear_ms_per_layer.csv", folder.path);
    remove(path);
    remove_folder(&folder);
}
