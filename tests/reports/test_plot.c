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

static const char quantiles[] = "point,quantile,ttft_s,tpot_s,itl_s,e2e_s,normalized_latency_s\n"
                                "0,0,1,,1,1,1\n0,1,2,,2,2,2\n"
                                "1,0,0.125,,0.01,1,1\n1,1,0.5,,0.02,2,2\n"
                                "2,0,1,,1,1,1\n2,1,2,,2,2,2\n"
                                "3,0,1,,1,1,1\n3,1,2,,2,2,2\n"
                                "4,0,0.25,,0.01,1,1\n4,1,0.75,,0.03,2,2\n"
                                "5,0,1,,1,1,1\n5,1,2,,2,2,2\n";

Test(series, rate_is_the_axis_and_the_rest_names_the_line)
{
    const struct scratch scratch = run_of(sweep, quantiles);
    const char *const dirs[] = {scratch.dir};
    struct series_set set;
    cr_assert_eq(series_read(&set, 1, dirs, NULL, &error), IFL_OK, "%s", error.text);
    cr_assert_eq(set.n_series, 2);
    cr_expect_str_eq(set.names[0], "orca");
    cr_expect_str_eq(set.names[1], "vllm");
    const double rates[] = {1, 2, 4, 2, 4, 8};
    for (size_t i = 0; i < 6; i++)
        cr_expect_eq(set.points[i].x, rates[i], "point %zu", i);
    cr_expect(set.points[2].saturated && !set.points[4].saturated);
    series_free(&set);
    scratch_remove(&scratch);
}

Test(series, distributions_are_taken_at_a_rate_that_all_share)
{
    const struct scratch scratch = run_of(sweep, quantiles);
    const char *const dirs[] = {scratch.dir};
    struct series_set set;
    size_t chosen[2], from, to;
    cr_assert_eq(series_read(&set, 1, dirs, NULL, &error), IFL_OK);
    cr_assert_eq(series_choose(&set, 0, chosen, &error), IFL_OK);
    cr_expect_eq(set.points[chosen[0]].x, 2, "2 and 4 are shared: the lower of the middle");
    cr_expect_eq(set.points[chosen[1]].x, 2);
    cr_assert(series_quantiles(&set, &set.points[chosen[1]], 0, &from, &to));
    cr_expect_eq(from, 8, "row 4 of the summary has rows 8 and 9");
    cr_expect_eq(to, 10);
    cr_assert_eq(series_choose(&set, 4, chosen, &error), IFL_OK);
    cr_expect_eq(set.points[chosen[0]].x, 4);
    cr_expect_eq(series_choose(&set, 8, chosen, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "orca has no point at 8 requests/s");
    series_free(&set);
    scratch_remove(&scratch);
}

Test(series, keys_are_named_where_values_do_not_speak_for_themselves)
{
    const struct scratch scratch =
        run_of("model,serving.preset,serving.batching.max_seqs,cost.model,requests,saturated\n"
               "opt,orca,8,linear,1,false\nopt,orca,16,linear,1,false\n",
               NULL);
    const char *const dirs[] = {scratch.dir};
    struct series_set set;
    cr_assert_eq(series_read(&set, 1, dirs, NULL, &error), IFL_OK);
    cr_assert_eq(set.n_series, 2);
    cr_expect_str_eq(set.names[1], "opt / orca / max_seqs 16 / model linear");
    cr_expect_not(set.has_x);
    series_free(&set);
    scratch_remove(&scratch);
}

static void expect_complaint(const char *summary, const char *complaint, int line)
{
    const struct scratch scratch = run_of(summary, NULL);
    const char *const dirs[] = {scratch.dir};
    struct series_set set;
    cr_expect_eq(series_read(&set, 1, dirs, NULL, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, complaint);
    cr_expect_eq(error.line, line);
    cr_expect_str_eq(error.file + strlen(scratch.dir), "/summary.csv");
    scratch_remove(&scratch);
}

/* Two names that look alike in a figure are still two series. */
Test(series, names_with_commas_and_quotes_stay_apart)
{
    const struct scratch scratch = run_of("model,requests,saturated\n"
                                          "\"a,b\",1,false\n\"a\"\"b\",1,false\na b,1,false\n"
                                          "a\\b,1,false\n",
                                          NULL);
    const char *const dirs[] = {scratch.dir};
    struct series_set set;
    cr_assert_eq(series_read(&set, 1, dirs, NULL, &error), IFL_OK, "%s", error.text);
    cr_assert_eq(set.n_series, 4);
    cr_expect_str_eq(set.names[0], "a\\054b", "gnuplot's escape of a comma");
    cr_expect_str_eq(set.names[1], "a\\042b");
    cr_expect_str_eq(set.names[2], "a b");
    cr_expect_str_eq(set.names[3], "a\\134b");
    series_free(&set);
    scratch_remove(&scratch);
}

Test(series, what_a_cell_cannot_hold_is_refused)
{
    static const char nul[] = "model,requests,saturated\na\0b,1,false\n";
    const struct scratch scratch = scratch_make();
    const char *const dirs[] = {scratch.dir};
    struct series_set set;
    FILE *file = fopen(scratch_path(&scratch, "summary.csv"), "w");
    fwrite(nul, 1, sizeof nul - 1, file);
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(series_read(&set, 1, dirs, NULL, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "a cell with a NUL character, expected text");
    cr_expect(error.line == 2 && error.column == 1);
    file = fopen(scratch_path(&scratch, "summary.csv"), "w");
    fputs("model,requests,saturated\n", file);
    for (size_t i = 0; i < (size_t)3 << 20; i++)
        putc('x', file);
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(series_read(&set, 1, dirs, NULL, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "a cell of more than a MiB");
    cr_expect_eq(error.line, 2);
    scratch_remove(&scratch);
}

Test(series, a_bad_summary_is_named_to_the_line)
{
    expect_complaint("", "an empty file, expected a header", 1);
    expect_complaint("a,b\n", "no column requests", 1);
    expect_complaint("rate_rps,requests\n1,1\n", "no column saturated", 1);
    expect_complaint("rate_rps,requests,saturated\n1,1,false\nfast,1,false\n",
                     "rate_rps is \"fast\", expected a number", 3);
    expect_complaint("rate_rps,requests,saturated\n1,1\n", "2 fields, expected 3 as in the header",
                     2);
}

/* ---- with gnuplot ---- */

static bool is_drawn(const struct scratch *scratch, const char *name, const char *magic)
{
    char *text = scratch_read(scratch, name);
    const bool drawn = text && strncmp(text, magic, strlen(magic)) == 0;
    free(text);
    return drawn;
}

Test(plot, draws_a_figure_and_keeps_what_it_shows)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch = run_of(sweep, quantiles);
    char notes[8192] = "";
    cr_assert_eq(plot_named(&scratch, "latency_vs_rate", notes), IFL_OK, "%s", error.text);
    cr_assert_eq(plot_named(&scratch, "ttft_itl_cdf", notes), IFL_OK, "%s", error.text);
    scratch_expect(&scratch, "latency_vs_rate.csv",
                   "number,series,rate_rps,saturated,mean_normalized_latency_s,"
                   "mean_normalized_latency_s_ci95\n"
                   "1,orca,1,false,0.1,\n1,orca,2,false,0.3,\n1,orca,4,true,0.9,\n"
                   "2,vllm,2,false,0.2,\n2,vllm,4,false,0.4,\n2,vllm,8,true,4,\n");
    scratch_expect(&scratch, "ttft_itl_cdf.csv",
                   "number,series,rate_rps,saturated,quantile,ttft_s,ttft_s_ci95,itl_s,itl_s_ci95\n"
                   "1,orca,2,false,0,0.125,,0.01,\n1,orca,2,false,1,0.5,,0.02,\n"
                   "2,vllm,2,false,0,0.25,,0.01,\n2,vllm,2,false,1,0.75,,0.03,\n");
    cr_expect(is_drawn(&scratch, "latency_vs_rate.pdf", "%PDF"));
    cr_expect(is_drawn(&scratch, "latency_vs_rate.svg", "<?xml"));
    cr_expect(is_drawn(&scratch, "latency_vs_rate.png", "\x89PNG"));
    cr_expect(is_drawn(&scratch, "ttft_itl_cdf.pdf", "%PDF"));
    cr_expect_not_null(strstr(notes, "ttft_itl_cdf"), "%s", notes);
    scratch_remove(&scratch);
}

/* The text of an SVG file without its tags, entities resolved: a word of it, between > and <. */
static bool shows(const char *svg, const char *name)
{
    char word[64] = ">";
    size_t n = 1;
    for (const char *c = name; *c; c++)
        n += (size_t)snprintf(word + n, sizeof word - n, "%s",
                              *c == '&'   ? "&amp;"
                              : *c == '<' ? "&lt;"
                                          : (const char[]){*c, '\0'});
    snprintf(word + n, sizeof word - n, "<");
    return strstr(svg, word);
}

/* Characters with a meaning in gnuplot appear literally in a name: in a legend, and in the label of
 * a tic, which is a format. */
Test(plot, a_name_is_shown_as_it_is)
{
    static const char *const names[] = {
        "50%", "%d%s", "100%%", "a\\b", "a\\n", "a`ls`b", "a_b^c",  "a{b}", "$x",  "@x", "~a",
        "a&b", "<b",   "#x",    "a'b",  "a|b",  "a;b",    "a\"b\"", "a,b",  "a b", "!x"};
    enum { N = sizeof names / sizeof *names };
    static const char *const figures[] = {"latency_vs_rate", "latency_by_series"};
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    for (size_t f = 0; f < 2; f++) {
        char text[4096], file[64];
        const char *const rate = f ? "" : "rate_rps,";
        size_t n = (size_t)snprintf(text, sizeof text,
                                    "model,%srequests,mean_normalized_latency_s,"
                                    "p99_normalized_latency_s,saturated\n",
                                    rate);
        for (size_t i = 0; i < 2 * N; i++) {
            n += (size_t)snprintf(text + n, sizeof text - n, "\"");
            for (const char *c = names[i / 2]; *c; c++)
                n += (size_t)snprintf(text + n, sizeof text - n, "%s%c", *c == '"' ? "\"" : "", *c);
            n += (size_t)snprintf(text + n, sizeof text - n, "\",%s1,0.1,0.2,false\n",
                                  f       ? ""
                                  : i % 2 ? "1,"
                                          : "2,");
        }
        const struct scratch scratch = run_of(text, NULL);
        cr_assert_eq(plot_named(&scratch, figures[f], NULL), IFL_OK, "%s", error.text);
        snprintf(file, sizeof file, "%s.svg", figures[f]);
        char *svg = scratch_read(&scratch, file);
        for (size_t i = 0; i < N; i++)
            cr_expect(shows(svg, names[i]), "%s does not show %s", figures[f], names[i]);
        free(svg);
        scratch_remove(&scratch);
    }
}

/* For values from 0.1 to 4 the axis goes from 0.05 to 5, not to the next powers of ten. */
Test(plot, a_logarithmic_axis_ends_near_the_values)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch = run_of(sweep, NULL);
    cr_assert_eq(plot_named(&scratch, "latency_vs_rate", NULL), IFL_OK, "%s", error.text);
    char *svg = scratch_read(&scratch, "latency_vs_rate.svg");
    cr_assert_not_null(svg);
    cr_expect(strstr(svg, ">0.05<") && strstr(svg, ">0.2<") && strstr(svg, ">5<"));
    cr_expect(!strstr(svg, ">0.01<") && !strstr(svg, ">0.02<") && !strstr(svg, ">10<"));
    free(svg);
    scratch_remove(&scratch);
}

Test(plot, says_how_many_series_a_figure_leaves_out)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch = run_of("seed,requests,mean_normalized_latency_s,saturated\n"
                                          "1,1,1,false\n2,1,1,false\n3,1,1,false\n4,1,1,false\n"
                                          "5,1,1,false\n6,1,1,false\n7,1,1,false\n",
                                          quantiles);
    char notes[8192] = "";
    cr_assert_eq(plot_named(&scratch, "ttft_itl_cdf", notes), IFL_OK, "%s", error.text);
    cr_expect_not_null(strstr(notes, ": the first 6 of 7 series\n"), "%s", notes);
    char *svg = scratch_read(&scratch, "ttft_itl_cdf.svg");
    cr_expect_not_null(strstr(svg, ">the first 6 of 7 series<"), "the figure itself");
    free(svg);
    scratch_remove(&scratch);
}

/* The first point has failed: its series has no quantiles. */
Test(plot, a_series_without_rows_has_no_line)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch = run_of("serving.preset,requests,mean_normalized_latency_s,"
                                          "saturated\norca,1,,false\nvllm,1,1,false\n",
                                          "point,quantile,ttft_s,itl_s\n1,0,1,1\n1,1,2,2\n");
    cr_assert_eq(plot_named(&scratch, "ttft_itl_cdf", NULL), IFL_OK, "%s", error.text);
    char *svg = scratch_read(&scratch, "ttft_itl_cdf.svg");
    cr_expect(strstr(svg, ">vllm<") && !strstr(svg, ">orca<"));
    free(svg);
    scratch_remove(&scratch);
}

Test(plot, a_run_of_one_point_says_what_it_leaves_out)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch =
        run_of("requests,mean_normalized_latency_s,p99_normalized_latency_s,saturated\n"
               "10,0.1,0.2,false\n",
               NULL);
    char notes[8192] = "";
    cr_assert_eq(plot_named(&scratch, NULL, notes), IFL_OK, "%s", error.text);
    cr_expect_not_null(strstr(notes, "left out: latency_vs_rate (no swept rate)"), "%s", notes);
    cr_expect_not_null(strstr(notes, "ttft_itl_cdf (no quantiles.csv)"), "%s", notes);
    cr_expect_eq(scratch_count(&scratch), 1);
    scratch_remove(&scratch);
}

Test(plot, a_figure_that_is_asked_for_must_be_possible)
{
    const struct scratch scratch = run_of(sweep, NULL);
    cr_expect_eq(plot_named(&scratch, "ttft_itl_cdf", NULL), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "cannot draw ttft_itl_cdf: no quantiles.csv");
    cr_expect_eq(plot_named(&scratch, "no_such", NULL), IFL_E_INPUT);
    cr_expect_eq(plot_named(&scratch, "percentiles_vs_rate", NULL), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "no column p50_ttft_s");
    cr_expect_eq(scratch_count(&scratch), 1, "nothing half written");
    scratch_remove(&scratch);
}

Test(plot, without_a_finished_request_there_is_nothing_to_draw)
{
    const struct scratch scratch = run_of(
        "serving.preset,requests,mean_normalized_latency_s,saturated\norca,1,,false\n", quantiles);
    char notes[8192] = "";
    setenv("INFLIGHT_SCRIPTS", "/nonexistent", 1);
    cr_assert_eq(plot_named(&scratch, NULL, notes), IFL_OK);
    cr_expect_str_eq(notes, "no figures: no request has finished\n");
    cr_expect_eq(scratch_count(&scratch), 2);
    scratch_remove(&scratch);
}

Test(plot, a_missing_gnuplot_names_the_package)
{
    const struct scratch scratch = run_of(sweep, quantiles);
    setenv("PATH", scratch.dir, 1);
    cr_expect_eq(plot_named(&scratch, "latency_vs_rate", NULL), IFL_E_IO);
    cr_expect_not_null(strstr(error.text, "gnuplot-nox"), "%s", error.text);
    scratch_remove(&scratch);
}

Test(plot, what_gnuplot_complains_of_is_the_message)
{
    if (!have_gnuplot())
        cr_skip_test("no gnuplot here");
    const struct scratch scratch = run_of(sweep, quantiles);
    setenv("INFLIGHT_SCRIPTS", "/nonexistent", 1);
    cr_expect_eq(plot_named(&scratch, NULL, NULL), IFL_E_IO);
    cr_expect_not_null(strstr(error.text, "/nonexistent/latency_vs_rate.gp"), "%s", error.text);
    cr_expect_null(strchr(error.text, '\n'));
    scratch_remove(&scratch);
}
