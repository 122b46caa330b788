/* The data file of each figure. */
#include "drawing.h"

#include <math.h>

#include "plot/series.h"

static const char sweep[] =
    "serving.preset,workload.arrivals.rate_rps,requests,mean_normalized_latency_s,"
    "p99_normalized_latency_s,saturated\n"
    "orca,1,10,0.1,0.2,false\n"
    "orca,2,10,0.3,0.5,false\n"
    "orca,4,10,0.9,2,true\n"
    "vllm,4,10,0.4,1,false\n"
    "vllm,2,10,0.2,0.5,false\n"
    "vllm,8,10,4,9,true\n";

static void expect_data(const char *figure, const char *summary, const char *requests,
                        const char *expected)
{
    char name[64];
    const struct scratch scratch = run_of(summary, NULL);
    if (requests)
        scratch_write(&scratch, "requests.csv", requests);
    cr_assert_eq(plot_named(&scratch, figure, NULL), IFL_OK, "%s", error.text);
    snprintf(name, sizeof name, "%s.csv", figure);
    scratch_expect(&scratch, name, expected);
    scratch_remove(&scratch);
}

/* The second point is worse than the first in both metrics; the third is worse than the fourth in
 * one metric. */
Test(plot, the_front_is_what_nothing_beats)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    expect_data("throughput_latency",
                "serving.preset,rate_rps,requests,output_throughput_tok_per_s,mean_normalized_"
                "latency_s,saturated\n"
                "x,1,9,100,0.01,false\nx,2,9,90,0.02,false\nx,3,9,300,0.04,false\n"
                "x,4,9,300,0.03,true\n",
                NULL,
                "number,series,rate_rps,saturated,output_throughput_tok_per_s,"
                "output_throughput_tok_per_s_ci95,mean_normalized_latency_s,"
                "mean_normalized_latency_s_ci95,front\n"
                "1,x,1,false,100,,0.01,,true\n1,x,2,false,90,,0.02,,false\n"
                "1,x,3,false,300,,0.04,,false\n1,x,4,true,300,,0.03,,true\n");
}

/* TTFT is held to 1 s, TPOT to 0.1 s. Scales needed: 0.5, 2 (by TPOT), never (it failed), 0 (one
 * token, first at once). */
Test(plot, attainment_steps_where_a_request_meets_its_slos)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch =
        run_of("requests,mean_normalized_latency_s,saturated\n4,1,false\n", NULL);
    scratch_write(&scratch, "requests.csv",
                  "point,ttft_s,tpot_s,e2e_s,ttft_slo_s,tpot_slo_s\n"
                  "0,0.5,0.01,9,1,0.1\n0,0.5,0.2,9,1,0.1\n0,0.1,,,1,0.1\n0,0,,9,1,0.1\n");
    cr_assert_eq(plot_named(&scratch, "attainment_vs_slo_scale", NULL), IFL_OK, "%s", error.text);
    char *text = scratch_read(&scratch, "attainment_vs_slo_scale.csv");
    static const char *const rows[] = {",0.125,0.25,\n",     ",0.471937156,0.25,\n", ",0.5,0.5,\n",
                                       ",1.88774863,0.5,\n", ",2,0.75,\n",           ",8,0.75,\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_not_null(strstr(text, rows[i]), "%s not in\n%s", rows[i], text);
    free(text);
    scratch_remove(&scratch);
}

Test(plot, the_same_data_gives_the_same_bytes)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch = run_of(sweep, NULL);
    static const char *const names[] = {"latency_vs_rate.pdf", "latency_vs_rate.svg",
                                        "latency_vs_rate.png"};
    char *first[3];
    size_t n[3], n_again;
    cr_assert_eq(plot_named(&scratch, "latency_vs_rate", NULL), IFL_OK, "%s", error.text);
    for (size_t i = 0; i < 3; i++)
        first[i] = scratch_read_bytes(&scratch, names[i], &n[i]);
    sleep(1); /* a time stamp in a file would differ after a second */
    cr_assert_eq(plot_named(&scratch, "latency_vs_rate", NULL), IFL_OK, "%s", error.text);
    for (size_t i = 0; i < 3; i++) {
        char *again = scratch_read_bytes(&scratch, names[i], &n_again);
        cr_expect(n_again == n[i] && memcmp(first[i], again, n[i]) == 0, "%s", names[i]);
        free(again);
        free(first[i]);
    }
    scratch_remove(&scratch);
}

Test(plot, a_figure_says_where_it_comes_from)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch = run_of(sweep, NULL);
    /* The hash of "a" is published with the algorithm: af63dc4c8601ec8c. */
    scratch_write(&scratch, "config.yaml", "a");
    cr_assert_eq(plot_named(&scratch, "latency_vs_rate", NULL), IFL_OK, "%s", error.text);
    static const char *const names[] = {"latency_vs_rate.svg", "latency_vs_rate.pdf",
                                        "latency_vs_rate.png"};
    for (size_t i = 0; i < 3; i++) {
        char *text = scratch_read(&scratch, names[i]);
        bool found = false;
        for (size_t at = 0; !found && at + 37 < 1 << 20; at++)
            found = memcmp(text + at, "config.yaml fnv1a-64 af63dc4c8601ec8c", 37) == 0;
        cr_expect(found, "%s", names[i]);
        free(text);
    }
    scratch_remove(&scratch);
}

/* Two steps of a second with an idle second between them; the pool has 100 slots. */
static const char two_steps[] =
    "point,replica,start_s,duration_s,prefill_seqs,decode_seqs,waiting,swapped,kv_token_slots,"
    "kv_reserved_slots,kv_internal_slots,kv_pool_slots\n"
    "0,0,10,1,2,0,3,1,20,30,10,100\n0,0,12,1,0,4,0,0,80,0,0,100\n";

/* The sum of a column of a figure over its bins, and the bins' width. */
static double integral(const struct scratch *scratch, const char *name, int column, double from_s,
                       double to_s)
{
    struct sheet sheet;
    double sum = 0;
    cr_assert_eq(sheet_read(&sheet, scratch_path(scratch, name), &error), IFL_OK);
    cr_assert_gt(sheet.n_rows, 2);
    for (size_t row = 0; row + 1 < sheet.n_rows; row++) {
        const double at_s = atof(sheet_cell(&sheet, row, 4)),
                     width_s = atof(sheet_cell(&sheet, row + 1, 4)) - at_s;
        if (at_s >= from_s && at_s < to_s)
            sum += width_s * atof(sheet_cell(&sheet, row, (size_t)column));
    }
    sheet_free(&sheet);
    return sum;
}

Test(plot, bins_keep_every_second)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch =
        run_of("requests,mean_normalized_latency_s,saturated\n4,1,false\n", NULL);
    scratch_write(&scratch, "steps.csv", two_steps);
    cr_assert_eq(plot_named(&scratch, "batch_over_time", NULL), IFL_OK, "%s", error.text);
    cr_assert_eq(plot_named(&scratch, "kv_over_time", NULL), IFL_OK, "%s", error.text);
    const char *batch = "batch_over_time.csv", *kv = "kv_over_time.csv";
    cr_expect_float_eq(integral(&scratch, batch, 5, 0, 99), 6, 1e-9);
    cr_expect_float_eq(integral(&scratch, batch, 6, 0, 99), 4, 1e-9);
    cr_expect_float_eq(integral(&scratch, batch, 5, 10, 11), 2, 1e-9);
    cr_expect_float_eq(integral(&scratch, batch, 5, 11, 12), 0, 1e-9);
    cr_expect_float_eq(integral(&scratch, kv, 5, 0, 99), 1.0, 1e-9);
    cr_expect_float_eq(integral(&scratch, kv, 6, 0, 99), 0.3, 1e-9);
    cr_expect_float_eq(integral(&scratch, kv, 7, 0, 99), 0.1, 1e-9);
    cr_expect_float_eq(integral(&scratch, kv, 8, 11, 12), 1.0, 1e-9);
    scratch_remove(&scratch);
}

/* The share of tokens in the second of two steps: 25 of a pool of 100 slots at replica 0, and 225
 * of one of 300 at another replica. */
static double share_with(int replica)
{
    char steps[512];
    const struct scratch scratch =
        run_of("requests,mean_normalized_latency_s,saturated\n4,1,false\n", NULL);
    snprintf(steps, sizeof steps,
             "point,replica,start_s,duration_s,prefill_seqs,decode_seqs,waiting,swapped,"
             "kv_token_slots,kv_reserved_slots,kv_internal_slots,kv_pool_slots\n"
             "0,%d,10,1,2,0,3,1,225,0,0,300\n0,0,10,1,0,4,0,0,25,0,0,100\n",
             replica);
    scratch_write(&scratch, "steps.csv", steps);
    cr_assert_eq(plot_named(&scratch, "kv_over_time", NULL), IFL_OK, "%s", error.text);
    const double share = integral(&scratch, "kv_over_time.csv", 5, 0, 99);
    scratch_remove(&scratch);
    return share;
}

/* A replica without a row is taken for one of mean size, 200. */
Test(plot, shares_are_of_all_pools_however_large_each_is)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    cr_expect_float_eq(share_with(1), 250.0 / 400, 1e-9);
    cr_expect_float_eq(share_with(2), 250.0 / 600, 1e-9);
}

/* Request 5 keeps its slot idle in step 1, is preempted, and returns behind request 6 into the slot
 * that is left. */
Test(plot, a_slot_is_held_until_its_request_is_gone)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch =
        run_of("requests,mean_normalized_latency_s,saturated\n4,1,false\n", NULL);
    scratch_write(&scratch, "work.csv",
                  "point,replica,step,request_id,prefill_tokens,decode_tokens,preemptions\n"
                  "0,0,0,5,7,0,0\n0,0,1,6,7,0,0\n0,0,2,5,0,1,0\n0,0,2,6,0,1,0\n"
                  "0,0,3,6,0,1,0\n0,0,4,5,8,0,1\n0,1,4,9,8,0,0\n");
    cr_assert_eq(plot_named(&scratch, "slot_grid", NULL), IFL_OK, "%s", error.text);
    char *text = scratch_read(&scratch, "slot_grid.csv");
    static const char *const rows[] = {",1,0,prefill,5,true\n", ",1,1,held,5,false\n",
                                       ",1,2,decode,5,false\n", ",1,3,idle,,false\n",
                                       ",1,4,prefill,5,true\n", ",2,0,idle,,false\n",
                                       ",2,1,prefill,6,true\n", ",2,2,decode,6,false\n",
                                       ",2,3,decode,6,false\n", ",2,4,idle,,false\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_not_null(strstr(text, rows[i]), "%s not in\n%s", rows[i], text);
    free(text);
    scratch_remove(&scratch);
}

/* Three runs a point: means and intervals from replications.csv, and the numbers of the runs in the
 * other files. */
Test(plot, replications_stand_for_their_runs)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch =
        run_of("rate_rps,run,requests,mean_normalized_latency_s,saturated\n"
               "1,0,4,1,false\n1,1,4,2,false\n1,2,4,3,false\n"
               "2,0,4,4,true\n2,1,4,5,true\n2,2,4,6,false\n",
               "point,quantile,ttft_s,itl_s\n0,0,1,1\n0,1,2,2\n1,0,7,7\n3,0,3,4\n3,1,5,6\n"
               "5,0,1,1\n5,1,2,2\n");
    scratch_write(&scratch, "replications.csv",
                  "rate_rps,runs,saturated_runs,mean_normalized_latency_s,"
                  "mean_normalized_latency_s_ci95\n1,3,1,2,0.5\n2,3,2,5,0.25\n");
    const char *const dirs[] = {scratch.dir};
    cr_assert_eq(plot_named(&scratch, "latency_vs_rate", NULL), IFL_OK, "%s", error.text);
    char *text = scratch_read(&scratch, "latency_vs_rate.csv");
    cr_expect_not_null(strstr(text, ",1,false,2,0.5\n"), "%s", text);
    cr_expect_not_null(strstr(text, ",2,true,5,0.25\n"), "%s", text);
    free(text);
    struct series_set set;
    size_t from, to;
    cr_assert_eq(series_read(&set, 1, dirs, NULL, &error), IFL_OK);
    cr_assert(series_quantiles(&set, &set.points[1], 0, &from, &to));
    cr_expect_eq(from, 3, "point 3 is the first of the second rate");
    cr_expect_eq(to, 5);
    cr_expect_not(series_quantiles(&set, &set.points[1], 1, &from, &to));
    cr_assert(series_quantiles(&set, &set.points[1], 2, &from, &to));
    cr_expect_eq(from, 5, "point 5 is the last");
    series_free(&set);
    scratch_remove(&scratch);
}

static const char two_runs[] = "run,requests,mean_normalized_latency_s,saturated\n"
                               "0,2,1,false\n1,2,2,true\n";
static const char two_runs_mean[] = "runs,saturated_runs,mean_normalized_latency_s,"
                                    "mean_normalized_latency_s_ci95\n2,2,1.5,6.35\n";

/* Of two values a and b the mean is (a + b) / 2, the standard error |a - b| / 2, and half the 95%
 * interval 12.7062047 times that, Student's t with one degree of freedom. */
Test(plot, attainment_is_the_mean_of_all_replications)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch = run_of(two_runs, NULL);
    scratch_write(&scratch, "replications.csv", two_runs_mean);
    /* at scale 1 half of the first run and all of the second meet the SLO; at 4 all of both do */
    scratch_write(&scratch, "requests.csv",
                  "point,ttft_s,tpot_s,e2e_s,ttft_slo_s,tpot_slo_s\n"
                  "0,0.5,,9,1,\n0,3,,9,1,\n1,0.5,,9,1,\n1,0.75,,9,1,\n");
    cr_assert_eq(plot_named(&scratch, "attainment_vs_slo_scale", NULL), IFL_OK, "%s", error.text);
    char *text = scratch_read(&scratch, "attainment_vs_slo_scale.csv");
    cr_expect_not_null(strstr(text, ",true,1,0.75,3.17655118\n"), "%s", text);
    cr_expect_not_null(strstr(text, ",true,4,1,0\n"), "%s", text);
    free(text);
    scratch_remove(&scratch);
}

Test(plot, distributions_are_means_of_all_replications)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch =
        run_of(two_runs, "point,quantile,ttft_s,itl_s\n0,0,1,0.5\n0,1,2,1\n1,0,3,0.5\n1,1,6,\n");
    scratch_write(&scratch, "replications.csv", two_runs_mean);
    cr_assert_eq(plot_named(&scratch, "ttft_itl_cdf", NULL), IFL_OK, "%s", error.text);
    char *text = scratch_read(&scratch, "ttft_itl_cdf.csv");
    cr_expect_not_null(strstr(text, ",true,0,2,12.7062047,0.5,0\n"), "%s", text);
    cr_expect_not_null(strstr(text, ",true,1,4,25.4124095,1,\n"), "%s", text);
    free(text);
    scratch_write(&scratch, "quantiles.csv",
                  "point,quantile,ttft_s,itl_s\n0,0,1,1\n0,1,2,2\n1,0,3,1\n1,0.5,6,2\n");
    cr_expect_eq(plot_named(&scratch, "ttft_itl_cdf", NULL), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "quantile is 0.5, expected 1 as in the first replication");
    cr_expect_eq(error.line, 5);
    scratch_remove(&scratch);
}

/* A second run is a separate line, even if its last folder has the same name. */
Test(plot, runs_are_overlaid)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch one = run_of(sweep, NULL), other = run_of(sweep, NULL);
    char one_dir[80], other_dir[80];
    snprintf(one_dir, sizeof one_dir, "%s/.", one.dir);
    snprintf(other_dir, sizeof other_dir, "%s/.", other.dir);
    const char *const dirs[] = {one_dir, other_dir}, *const figure = "latency_vs_rate";
    const struct ifl_plot_options options = {
        .n_runs = 2,
        .run_dirs = dirs,
        .drawing = {.out_dir = one.dir, .script_dir = getenv("INFLIGHT_SCRIPTS")},
        .n_figures = 1,
        .figures = &figure};
    cr_assert_eq(ifl_plot(&options, &error), IFL_OK, "%s", error.text);
    struct sheet sheet;
    cr_assert_eq(sheet_read(&sheet, scratch_path(&one, "latency_vs_rate.csv"), &error), IFL_OK);
    cr_expect_eq(sheet.n_rows, 12);
    cr_expect_str_eq(sheet_cell(&sheet, 11, 0), "4");
    cr_expect_str_neq(sheet_cell(&sheet, 0, 1), sheet_cell(&sheet, 6, 1));
    sheet_free(&sheet);
    scratch_remove(&one);
    scratch_remove(&other);
}
