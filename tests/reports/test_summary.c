#include "scratch.h"

#include <math.h>

#include "inflight/report.h"

static struct ifl_error error;

static const struct ifl_quantiles none = {NAN, NAN, NAN, NAN, NAN};

static struct ifl_summary example(void)
{
    return (struct ifl_summary){.n_requests = 10,
                                .n_finished = 8,
                                .n_rejected = 1,
                                .n_failed = 1,
                                .duration_s = 100,
                                .request_throughput_rps = 0.08,
                                .output_throughput_tok_per_s = 16,
                                .total_throughput_tok_per_s = 48,
                                .ttft_s = {1, 2, 3, 4, 5},
                                .tpot_s = none,
                                .itl_s = {0.1, 0.2, 0.3, 0.4, 0.5},
                                .e2e_s = {11, 12, 13, 14, 15},
                                .normalized_latency_s = {0.01, 0.02, 0.03, 0.04, 0.05},
                                .goodput_rps = 0.05,
                                .attainment_frac = 0.5,
                                .preemptions = 3,
                                .swap_outs = 2,
                                .n_steps = 1000,
                                .mean_batch = 1.0 / 3,
                                .kv_token_frac = 0.5,
                                .kv_reserved_frac = 0.25,
                                .kv_internal_frac = 0.125,
                                .kv_external_frac = 0.125,
                                .saturated = true,
                                .assumed = "a10g: swap, host",

                                .queue_s = {6, 7, 8, 9, 10},
                                .n_warmup = 12,
                                .warmup_s = 1.5,
                                .kv_shared_frac = 0.375,
                                .cached_prompt_frac = 0.625};
}

/* Points as a table in memory. */
struct tabled {
    const char *const *values; /* [n_points][n_keys] */
    const struct ifl_summary *summaries;
    size_t n_keys;
};

static int tabled_at(void *context, size_t point, const char **values, struct ifl_summary *summary,
                     struct ifl_error *why)
{
    const struct tabled *tabled = context;
    (void)why;
    for (size_t i = 0; values && i < tabled->n_keys; i++)
        values[i] = tabled->values[point * tabled->n_keys + i];
    if (summary)
        *summary = tabled->summaries[point];
    return IFL_OK;
}

static int write_summary(const struct scratch *scratch, size_t n_points, size_t n_keys,
                         const char *const *keys, const char *const *values,
                         const struct ifl_summary *summaries)
{
    struct tabled tabled = {values, summaries, n_keys};
    const struct ifl_points points = {n_points, n_keys, keys, &tabled, tabled_at};
    return ifl_write_summary(scratch_path(scratch, "summary.csv"), &points, &error);
}

Test(summary_csv, names_and_order_are_a_promise)
{
    const struct scratch scratch = scratch_make();
    const char *const keys[] = {"serving.preset", "cluster"};
    const char *const values[] = {"vllm-v0", "{replicas: 2, router: \"rr\"}"};
    const struct ifl_summary summary = example();
    cr_assert_eq(write_summary(&scratch, 1, 2, keys, values, &summary), IFL_OK);
    scratch_expect(
        &scratch, "summary.csv",
        "serving.preset,cluster,requests,finished,rejected,failed,duration_s,"
        "request_throughput_rps,output_throughput_tok_per_s,total_throughput_tok_per_s,"
        "mean_ttft_s,p50_ttft_s,p90_ttft_s,p95_ttft_s,p99_ttft_s,"
        "mean_tpot_s,p50_tpot_s,p90_tpot_s,p95_tpot_s,p99_tpot_s,"
        "mean_itl_s,p50_itl_s,p90_itl_s,p95_itl_s,p99_itl_s,"
        "mean_e2e_s,p50_e2e_s,p90_e2e_s,p95_e2e_s,p99_e2e_s,"
        "mean_normalized_latency_s,p50_normalized_latency_s,p90_normalized_latency_s,"
        "p95_normalized_latency_s,p99_normalized_latency_s,"
        "goodput_rps,attainment_frac,preemptions,swap_outs,steps,mean_batch_seqs,"
        "kv_token_frac,kv_reserved_frac,kv_internal_frac,kv_external_frac,saturated,error,assumed,"
        "mean_queue_s,p50_queue_s,p90_queue_s,p95_queue_s,p99_queue_s,warmup_requests,warmup_s,"
        "kv_shared_frac,cached_prompt_frac\n"
        "vllm-v0,\"{replicas: 2, router: \"\"rr\"\"}\",10,8,1,1,100,0.08,16,48,1,2,3,4,5,,,,,,"
        "0.1,0.2,0.3,0.4,0.5,11,12,13,14,15,0.01,0.02,0.03,0.04,0.05,0.05,0.5,3,2,1000,"
        "0.333333333,0.5,0.25,0.125,0.125,true,,\"a10g: swap, "
        "host\",6,7,8,9,10,12,1.5,0.375,0.625\n");
    cr_expect_eq(scratch_count(&scratch), 1);
    scratch_remove(&scratch);
}

Test(summary_csv, a_failed_point_has_nothing_but_its_error)
{
    const struct scratch scratch = scratch_make();
    const char *const keys[] = {"model"}, *const values[] = {"a", "b"};
    const struct ifl_summary summaries[] = {{.n_requests = 3, .error = "too large, by far"},
                                            example()};
    cr_assert_eq(write_summary(&scratch, 2, 1, keys, values, summaries), IFL_OK);
    char *text = scratch_read(&scratch, "summary.csv");
    char *row = strchr(text, '\n') + 1, *next = strchr(row, '\n');
    *next = '\0';
    cr_expect_eq(strncmp(row, "a,,,", 4), 0);
    const char *why = strstr(row, ",\"too large, by far\",");
    cr_assert_not_null(why, "%s", row);
    cr_expect_eq(strspn(why + 21, ","), strlen(why + 21), "nothing behind it");
    free(text);
    scratch_remove(&scratch);
}

Test(summary_csv, a_full_disk_leaves_nothing)
{
    if (access("/dev/full", W_OK))
        cr_skip_test("no /dev/full here");
    const struct scratch scratch = scratch_make();
    const struct ifl_summary summary = example();
    cr_assert_eq(symlink("/dev/full", scratch_path(&scratch, "summary.csv.tmp")), 0);
    cr_expect_eq(write_summary(&scratch, 1, 0, NULL, NULL, &summary), IFL_E_IO);
    cr_expect_eq(scratch_count(&scratch), 0);
    scratch_remove(&scratch);
}

static char *printed(size_t n_points, size_t n_keys, const char *const *keys,
                     const char *const *values, const struct ifl_summary *summaries)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    cr_assert_not_null(out);
    struct tabled tabled = {values, summaries, n_keys};
    const struct ifl_points points = {n_points, n_keys, keys, &tabled, tabled_at};
    cr_assert_eq(ifl_print_summary(out, &points, &error), IFL_OK);
    cr_assert_eq(fclose(out), 0);
    return text;
}

Test(terminal, a_sweep_is_a_table_of_110_columns_at_most)
{
    const char *const keys[] = {"serving.preset", "workload.arrivals.rate_rps", "model"};
    const char *const values[] = {
        "a-preset-with-a-name-that-does-not-end-soon",       "4",   "llama-2-7b",
        "a-preset-with-another-name-that-does-not-end-soon", "0.5", "llama-2-70b"};
    const struct ifl_summary summaries[] = {example(), {.n_requests = 1, .ttft_s = none}};
    char *text = printed(2, 3, keys, values, summaries);
    cr_expect_eq(strncmp(text, "preset", 6), 0);
    cr_expect_not_null(strstr(text, "rate_rps"));
    cr_expect_not_null(strstr(text, "8/10"));
    cr_expect_not_null(strstr(text, " *\n"));
    cr_expect_not_null(strstr(text, "\n* saturated"));
    cr_expect_not_null(strstr(text, "\nassumed, not measured: a10g: swap, host\n"));
    size_t n_lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n_lines++)
        cr_expect_leq(strlen(line), 110, "%s", line);
    cr_expect_eq(n_lines, 6, "two of head, two points, what the star says, what is assumed");
    free(text);
}

Test(terminal, one_point_is_a_list)
{
    const struct ifl_summary summary = example();
    char *text = printed(1, 0, NULL, NULL, &summary);
    cr_expect_not_null(strstr(text, "request throughput          0.080 req/s\n"));
    cr_expect_not_null(strstr(text, "ITL                       100.000    200.000    300.000"
                                    "    400.000    500.000 ms\n"));
    cr_expect_not_null(strstr(text, "TPOT                            -"));
    cr_expect_not_null(strstr(text, "saturated:"));
    free(text);
}

Test(join, keeps_one_header_and_the_order)
{
    const struct scratch scratch = scratch_make();
    scratch_write(&scratch, "b", "point,x\n1,b\n1,c\n");
    scratch_write(&scratch, "a", "point,x\n0,a\n");
    scratch_write(&scratch, "empty", "point,x\n");
    const char *paths[] = {NULL, scratch_path(&scratch, "a"), scratch_path(&scratch, "empty"),
                           scratch_path(&scratch, "b")};
    cr_assert_eq(scratch_join(&scratch, "all.csv", false, 4, paths, &error), IFL_OK);
    scratch_expect(&scratch, "all.csv", "point,x\n0,a\n1,b\n1,c\n");
    cr_expect_eq(scratch_count(&scratch), 4, "the parts stay");
    scratch_remove(&scratch);
}

Test(join, a_missing_part_is_named_and_the_others_stay)
{
    const struct scratch scratch = scratch_make();
    scratch_write(&scratch, "a", "point,x\n0,a\n");
    const char *paths[] = {scratch_path(&scratch, "a"), scratch_path(&scratch, "gone")};
    cr_expect_eq(scratch_join(&scratch, "all.csv", false, 2, paths, &error), IFL_E_IO);
    cr_expect_not_null(strstr(error.text, "/gone: cannot open"), "%s", error.text);
    scratch_expect(&scratch, "a", "point,x\n0,a\n");
    cr_expect_eq(scratch_count(&scratch), 1);
    scratch_remove(&scratch);
}
