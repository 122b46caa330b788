/* Paired differences: Student's own data, requests paired by id, and runs that do not match. */
#include <math.h>

#include "compare/holm.h"
#include "inflight/compare.h"
#include "scratch.h"

static struct ifl_error error;
static char said[512];

static void keep(void *context, const char *text)
{
    (void)context;
    snprintf(said, sizeof said, "%s", text);
}

/* Two runs, each in its own folder, and their comparison. */
struct pair {
    struct scratch base, other;
    struct ifl_comparison of;
};

static struct pair pair_of(const char *base, const char *other)
{
    struct pair pair = {scratch_make(), scratch_make(), {0}};
    scratch_write(&pair.base, "summary.csv", base);
    scratch_write(&pair.other, "summary.csv", other);
    said[0] = '\0';
    return pair;
}

static int compare(struct pair *pair)
{
    pair->of.base_dir = pair->base.dir;
    pair->of.other_dir = pair->other.dir;
    pair->of.out_path = scratch_path(&pair->other, "compare.csv");
    pair->of.say = keep;
    return ifl_compare(&pair->of, &error);
}

static void part(struct pair *pair)
{
    scratch_remove(&pair->base);
    scratch_remove(&pair->other);
}

/* The number in a column of the row that begins with `row`. */
static double value(const struct pair *pair, const char *row, size_t column)
{
    char *text = scratch_read(&pair->other, "compare.csv");
    cr_assert_not_null(text);
    const char *at = text;
    while (at && strncmp(at, row, strlen(row)) != 0)
        at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    cr_assert_not_null(at, "no row %s in %s", row, text);
    while (column-- > 0)
        at = strchr(at, ',') + 1;
    const double found = *at == ',' ? (double)NAN : strtod(at, NULL);
    free(text);
    return found;
}

/* Columns behind one swept key; without a swept key each is one less. */
enum { PAIRS = 3, SAMPLES, BASE_MEAN, OTHER_MEAN, DIFFERENCE, HALF_WIDTH, P_VALUE, LOWER, HIGHER };

/* Extra hours of sleep of ten patients by two drugs (Student, "The probable error of a mean",
 * Biometrika 6(1), 1908). Textbooks and R's t.test give for the paired difference 1.58, t = 4.0621
 * with 9 degrees of freedom, p = 0.002833, and the interval 0.7001142 to 2.4598858. */
Test(compare, students_sleep)
{
    static const double drug[2][10] = {{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
                                       {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}};
    char text[2][1024] = {"rate,replication,requests,mean_ttft_s\n",
                          "rate,replication,requests,mean_ttft_s\n"};
    for (int run = 0; run < 2; run++)
        for (int i = 0; i < 10; i++)
            sprintf(text[run] + strlen(text[run]), "%s,%d,1,%g\n", run ? "4.0" : "4", i,
                    drug[run][i]);
    struct pair pair = pair_of(text[0], text[1]);
    const char row[] = "4,replication,mean_ttft_s,";
    cr_assert_eq(compare(&pair), IFL_OK, "%s", error.text);
    cr_expect_eq(value(&pair, row, PAIRS), 10);
    cr_expect_eq(value(&pair, row, SAMPLES), 10);
    cr_expect_float_eq(value(&pair, row, BASE_MEAN), 0.75, 1e-9);
    cr_expect_float_eq(value(&pair, row, OTHER_MEAN), 2.33, 1e-9);
    cr_expect_float_eq(value(&pair, row, DIFFERENCE), 1.58, 1e-9);
    cr_expect_float_eq(value(&pair, row, HALF_WIDTH), (2.4598858 - 0.7001142) / 2, 1e-7);
    cr_expect_float_eq(value(&pair, row, P_VALUE), 0.002833, 5e-7);
    cr_expect_eq(value(&pair, row, LOWER), 0);
    cr_expect_float_eq(value(&pair, row, HIGHER), 0.9, 1e-9, "one patient slept the same");
    part(&pair);
}

#define REQUESTS                                                                                   \
    "point,request_id,arrival_s,prompt_tokens,output_tokens,ttft_s,tpot_s,e2e_s,queue_s\n"

/* Requests in different orders; one is unfinished, one exists in one run only. */
Test(compare, requests_are_paired_by_id)
{
    struct pair pair = pair_of("rate,requests\n1,3\n2,4\n", "rate,requests\n2,4\n3,1\n");
    scratch_write(&pair.base, "requests.csv",
                  REQUESTS "0,5,0,10,2,9,9,9,9\n1,5,0,10,2,1,1,2,0\n1,6,1,20,1,3,,3,0\n"
                           "1,7,2,30,4,5,2,11,1\n1,8,3,40,4,1,1,4,0\n");
    scratch_write(&pair.other, "requests.csv",
                  REQUESTS "0,7,2,30,4,3,1,6,0\n0,6,1,20,1,4,,4,2\n0,8,3,40,4,,,,\n"
                           "0,5,0,10,2,1,1,2,0\n1,5,0,10,2,7,7,7,7\n");
    cr_assert_eq(compare(&pair), IFL_OK, "%s", error.text);
    cr_expect_not_null(strstr(said, "1 of the 2 points in "), "%s", said);
    cr_expect_eq(value(&pair, "2,request,ttft_s,", PAIRS), 3);
    cr_expect_float_eq(value(&pair, "2,request,ttft_s,", DIFFERENCE), (0 + 1 - 2) / 3.0, 1e-9);
    cr_expect_float_eq(value(&pair, "2,request,ttft_s,", LOWER), 1 / 3.0, 1e-9);
    cr_expect(isnan(value(&pair, "2,request,ttft_s,", HALF_WIDTH)), "too few to make batches of");
    cr_expect_eq(value(&pair, "2,request,tpot_s,", PAIRS), 2);
    cr_expect_float_eq(value(&pair, "2,request,tpot_s,", DIFFERENCE), -0.5, 1e-9);
    cr_expect_float_eq(value(&pair, "2,request,normalized_latency_s,", DIFFERENCE),
                       (0 + 1 - 5 / 4.0) / 3, 1e-9);
    part(&pair);
}

/* 200 requests with differences of 1 in the first half and 3 in the second: of the means of twenty
 * batches of ten, ten are 1 and ten are 3. Their standard deviation is sqrt(20/19), t of 19 degrees
 * of freedom 2.093. */
Test(compare, twenty_batches_where_there_is_one_run)
{
    struct pair pair = pair_of("requests\n200\n", "requests\n200\n");
    static char text[2][1 << 14];
    for (int run = 0; run < 2; run++) {
        strcpy(text[run], REQUESTS);
        for (int i = 0; i < 200; i++)
            sprintf(text[run] + strlen(text[run]), "0,%d,%d,1,1,%d,,%d,0\n", i, i,
                    run ? (i < 100 ? 6 : 8) : 5, 9);
    }
    scratch_write(&pair.base, "requests.csv", text[0]);
    scratch_write(&pair.other, "requests.csv", text[1]);
    cr_assert_eq(compare(&pair), IFL_OK, "%s", error.text);
    cr_expect_eq(value(&pair, "request,ttft_s,", PAIRS - 1), 200);
    cr_expect_eq(value(&pair, "request,ttft_s,", SAMPLES - 1), 20);
    cr_expect_float_eq(value(&pair, "request,ttft_s,", DIFFERENCE - 1), 2, 1e-9);
    cr_expect_float_eq(value(&pair, "request,ttft_s,", HALF_WIDTH - 1), 2.093 * sqrt(1 / 19.0),
                       1e-4);
    cr_expect(isnan(value(&pair, "request,e2e_s,", P_VALUE - 1)), "no difference to test");
    part(&pair);
}

/* 210 requests are batches of 10 and 11 in turn, with differences of 1 and 3: the mean of the
 * requests is 430/210, that of the batches would be 2. Weighted squares from it add up to 4 x 100 x
 * 110 / 210. 30 of the requests have a TPOT, which are too few to make batches of. */
Test(compare, batches_count_as_their_requests)
{
    struct pair pair = pair_of("requests\n210\n", "requests\n210\n");
    static char text[2][1 << 14];
    for (int run = 0; run < 2; run++) {
        strcpy(text[run], REQUESTS);
        for (int i = 0; i < 210; i++)
            sprintf(text[run] + strlen(text[run]), "0,%d,%d,1,6,%d,%s,9,0\n", i, i,
                    run ? (i % 21 < 10 ? 6 : 8) : 5,
                    i % 10 > 0 && i < 200 ? "" : (run && i >= 200 ? "2" : "1"));
    }
    scratch_write(&pair.base, "requests.csv", text[0]);
    scratch_write(&pair.other, "requests.csv", text[1]);
    cr_assert_eq(compare(&pair), IFL_OK, "%s", error.text);
    cr_expect_eq(value(&pair, "request,ttft_s,", SAMPLES - 1), 20);
    cr_expect_float_eq(value(&pair, "request,ttft_s,", BASE_MEAN - 1), 5, 1e-9);
    cr_expect_float_eq(value(&pair, "request,ttft_s,", OTHER_MEAN - 1), 5 + 430 / 210.0, 1e-7);
    cr_expect_float_eq(value(&pair, "request,ttft_s,", DIFFERENCE - 1), 430 / 210.0, 1e-7);
    cr_expect_float_eq(value(&pair, "request,ttft_s,", HALF_WIDTH - 1),
                       2.0930 * sqrt(4 * 100 * 110 / 210.0 / (210 * 19)), 1e-4);
    cr_expect_eq(value(&pair, "request,tpot_s,", PAIRS - 1), 30);
    cr_expect_eq(value(&pair, "request,tpot_s,", SAMPLES - 1), 1);
    cr_expect_float_eq(value(&pair, "request,tpot_s,", DIFFERENCE - 1), 10 / 30.0, 1e-7);
    cr_expect(isnan(value(&pair, "request,tpot_s,", HALF_WIDTH - 1)));
    part(&pair);
}

/* Two values of a swept key, in one run. */
Test(compare, between_two_values)
{
    const char sweep[] = "serving.preset,rate,requests,mean_ttft_s\n"
                         "a,1,1,1\na,2,1,2\nb,1,1,5\nb,2,1,8\nc,1,1,0\n";
    struct pair pair = pair_of(sweep, sweep);
    pair.of.key = "preset";
    pair.of.base_value = "a";
    pair.of.other_value = "b";
    cr_assert_eq(compare(&pair), IFL_OK, "%s", error.text);
    cr_expect_eq(value(&pair, "1,replication,mean_ttft_s,", DIFFERENCE), 4);
    cr_expect_eq(value(&pair, "2,replication,mean_ttft_s,", DIFFERENCE), 6);
    cr_expect_str_eq(said, "");
    pair.of.other_value = "c";
    cr_assert_eq(compare(&pair), IFL_OK, "%s", error.text);
    cr_expect_not_null(strstr(said, "1 of the 2 points in "), "%s", said);
    pair.of.other_value = "d";
    cr_expect_eq(compare(&pair), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "no point has preset d"), "%s", error.text);
    pair.of.key = "presets";
    cr_expect_eq(compare(&pair), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "expected one of: preset, rate"), "%s", error.text);
    part(&pair);
}

static void refuses(const char *base, const char *other, const char *why)
{
    struct pair pair = pair_of(base, other);
    cr_expect_eq(compare(&pair), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, why), "%s", error.text);
    cr_expect_null(scratch_read(&pair.other, "compare.csv"));
    cr_expect_str_eq(said, "");
    part(&pair);
}

Test(compare, what_does_not_match)
{
    refuses("rate,requests\n1,1\n", "requests\n1\n", "rate is swept here and not in ");
    refuses("requests\n1\n", "rate,requests\n1,1\n", "rate is swept here and not in ");
    refuses("rate,requests\n1,1\n", "rate,requests\n2,1\n", "no point has the swept values of one");
    refuses("rate,requests\n1,1\n", "rate,requests\n1,many\n", "\"many\", expected a number");
    refuses("rate\n1\n", "rate\n1\n", "no column requests");
}

Test(compare, a_request_is_there_once)
{
    struct pair pair = pair_of("requests\n3\n", "requests\n3\n");
    scratch_write(&pair.base, "requests.csv",
                  REQUESTS "0,5,0,10,2,1,1,2,0\n0,4,0,10,2,1,1,2,0\n0,5,0,10,2,1,1,2,0\n");
    scratch_write(&pair.other, "requests.csv", REQUESTS "0,5,0,10,2,1,1,2,0\n");
    cr_expect_eq(compare(&pair), IFL_E_INPUT);
    cr_expect_str_eq(error.text, "request_id is 5 as on line 2, expected each id once");
    cr_expect_eq(error.line, 4);
    cr_expect_str_eq(error.file, scratch_path(&pair.base, "requests.csv"));
    part(&pair);
}

Test(compare, other_requests_under_the_same_id)
{
    struct pair pair = pair_of("requests\n1\n", "requests\n1\n");
    scratch_write(&pair.base, "requests.csv", REQUESTS "0,5,0,10,2,1,1,2,0\n");
    scratch_write(&pair.other, "requests.csv", REQUESTS "0,5,0,10,3,1,1,2,0\n");
    cr_expect_eq(compare(&pair), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "request 5 of point 0 has 10 prompt and 3 output tokens"),
                       "%s", error.text);
    part(&pair);
}

struct taken {
    size_t n;
    double ttft_s;
};

static int take_row(void *context, const struct ifl_compare_row *row, struct ifl_error *unused)
{
    (void)unused;
    struct taken *taken = context;
    taken->n++;
    if (strcmp(row->metric, "mean_ttft_s") == 0 && !row->by_request &&
        strcmp(row->values[0], "2") == 0)
        taken->ttft_s = row->difference;
    return row->n_keys == 1 && strcmp(row->keys[0], "rate") == 0 ? IFL_OK : IFL_E_INPUT;
}

/* Without a path no file is written; the rows are handed on all the same, and can end it. */
Test(compare, rows_for_a_caller)
{
    struct pair pair = pair_of("rate,requests,mean_ttft_s\n1,3,0.5\n2,4,1.5\n",
                               "rate,requests,mean_ttft_s\n1,3,0.25\n2,4,4\n");
    struct taken taken = {0};
    const struct ifl_comparison of = {.base_dir = pair.base.dir,
                                      .other_dir = pair.other.dir,
                                      .take = take_row,
                                      .context = &taken};
    cr_assert_eq(ifl_compare(&of, &error), IFL_OK, "%s", error.text);
    cr_expect_eq(taken.n, 4, "two points of two metrics");
    cr_expect_float_eq(taken.ttft_s, 2.5, 1e-12);
    cr_expect_null(scratch_read(&pair.other, "compare.csv"));
    part(&pair);
}

/* Corrected p-values of statsmodels 0.15.0, multipletests(p, method="holm"), which are also those
 * of R's p.adjust(p, "holm"). Two are equal, and from the fifth on a smaller one is lifted to the
 * one before it. */
Test(compare, holm)
{
    static const double p[] = {0.0043, 0.0103, 0.0251,  0.04, 0.0009, 0.6,
                               0.0251, 0.03,   0.00001, 0.45, 1.0,    0.012};
    static const double corrected[] = {0.043,  0.0927, 0.1757,  0.1757, 0.0099, 1.0,
                                       0.1757, 0.1757, 0.00012, 1.0,    1.0,    0.096};
    struct holm_test tests[12];
    for (size_t i = 0; i < 12; i++)
        tests[i] = (struct holm_test){i, p[i]};
    holm_correct(tests, 12);
    for (size_t i = 0; i < 12; i++)
        cr_expect_float_eq(tests[i].p, corrected[tests[i].row], 1e-12, "p %g", p[tests[i].row]);
    holm_correct(tests, 0);
}

/* The family of a metric is all pairs at all points; a pair without a p-value is not part of it. */
Test(compare, all_pairs_of_a_key)
{
    static const char text[] = "policy,rate,replication,requests,mean_ttft_s\n"
                               "a,1,0,1,1\na,1,1,1,2\na,1,2,1,3\n"
                               "b,1,0,1,2\nb,1,1,1,3\nb,1,2,1,4\n"
                               "c,1,0,1,4\nc,1,1,1,6\nc,1,2,1,7\n";
    struct scratch run = scratch_make();
    const char *const dirs[] = {run.dir};
    scratch_write(&run, "summary.csv", text);
    const struct ifl_all_pairs of = {
        .n_runs = 1, .run_dirs = dirs, .out_path = scratch_path(&run, "compare.csv")};
    cr_assert_eq(ifl_compare_all_pairs(&of, &error), IFL_OK, "%s", error.text);
    char *found = scratch_read(&run, "compare.csv");
    cr_assert_not_null(found);
    /* b - a is 1 in all runs and has no p-value. Of c - a, 3, 4, 4, and of c - b, 2, 3, 3, the t
     * test of two degrees of freedom gives t / sqrt(2 + t^2) with t = 11 and 8 as 1 - p. */
    const char *row = strstr(found, "1,a,b,replication,mean_ttft_s,3,3,2,3,1,0,,0,1,,0\n");
    cr_expect_not_null(row, "%s", found);
    double p[2], p_holm[2];
    static const char *const pair[] = {"1,a,c,replication,mean_ttft_s,",
                                       "1,b,c,replication,mean_ttft_s,"};
    for (int i = 0; i < 2; i++) {
        row = strstr(found, pair[i]);
        cr_assert_not_null(row, "%s", found);
        cr_assert_eq(sscanf(row + strlen(pair[i]), "%*d,%*d,%*f,%*f,%*f,%*f,%lf,%*f,%*f,%lf,2",
                            &p[i], &p_holm[i]),
                     2);
    }
    cr_expect_float_eq(p[0], 1 - 11 / sqrt(2 + 121), 1e-9);
    cr_expect_float_eq(p[1], 1 - 8 / sqrt(2 + 64), 1e-9);
    cr_expect_float_eq(p_holm[0], 2 * p[0], 1e-9);
    cr_expect_float_eq(p_holm[1], fmax(p[1], 2 * p[0]), 1e-9);
    free(found);
    scratch_remove(&run);
}
