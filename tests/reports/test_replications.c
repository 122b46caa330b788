/* Intervals against a table, means of runs, and MSER-5 against its definition. */
#include <math.h>

#include "inflight/random.h"
#include "record/warmup.h"
#include "scratch.h"

static struct ifl_error error;

/* Student's t, two-sided 95%: 12.706, 4.303, 2.776, 2.262 for 1, 2, 4 and 9 degrees of freedom, as
 * every table has them. */
Test(interval, students_table)
{
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const struct {
        size_t n;
        double t;
    } rows[] = {{2, 12.706}, {3, 4.303}, {5, 2.776}, {10, 2.262}};
    for (size_t i = 0; i < 4; i++) {
        /* the variance of 1..n is n (n + 1) / 12 */
        const double n = (double)rows[i].n;
        const struct ifl_interval of = ifl_interval_95(x, rows[i].n);
        cr_expect_eq(of.mean, (n + 1) / 2);
        cr_expect_float_eq(of.half_width, rows[i].t * sqrt((n + 1) / 12), 1e-3);
    }
    cr_expect(isnan(ifl_interval_95(x, 1).half_width));
    cr_expect_eq(ifl_interval_95(x, 1).mean, 1);
    cr_expect(isnan(ifl_interval_95(x, 0).mean));
}

/* Two rates, three runs of each; the last of them failed. */
static int run_at(void *context, size_t point, const char **values, struct ifl_summary *summary,
                  struct ifl_error *why)
{
    static const char *const rates[] = {"1", "2"}, *const numbers[] = {"0", "1", "2"};
    (void)context;
    (void)why;
    if (values) {
        values[0] = rates[point / 3];
        values[1] = numbers[point % 3];
    }
    if (summary) {
        *summary = (struct ifl_summary){.n_requests = 10 + point, .duration_s = (double)point};
        summary->goodput_rps = point == 0 ? (double)NAN : 7;
        summary->saturated = point >= 3;
        if (point == 5)
            snprintf(summary->error, sizeof summary->error, "no");
    }
    return IFL_OK;
}

static const char *const run_keys[] = {"rate", "replication"};
static const struct ifl_points runs = {6, 2, run_keys, NULL, run_at};
static const struct ifl_replications three = {&runs, 3};

/* The cell of a column in a row of a CSV file without quotes. */
static const char *cell(const char *text, const char *column, size_t row)
{
    static char found[64];
    const char *at = text;
    size_t wanted = 0, i = 0;
    for (; strncmp(at, column, strlen(column)) != 0 || !strchr(",\n", at[strlen(column)]); wanted++)
        at = strchr(at, ',') + 1;
    for (at = text; row > 0; row--)
        at = strchr(at, '\n') + 1;
    for (; wanted > 0; wanted--)
        at = strchr(at, ',') + 1;
    for (; at[i] != ',' && at[i] != '\n'; i++)
        found[i] = at[i];
    found[i] = '\0';
    return found;
}

Test(replications, a_row_for_the_runs_of_a_point)
{
    const struct scratch scratch = scratch_make();
    cr_assert_eq(ifl_write_replications(scratch_path(&scratch, "r.csv"), &three, &error), IFL_OK);
    char *text = scratch_read(&scratch, "r.csv");
    cr_expect_eq(strncmp(text, "rate,runs,saturated_runs,requests,requests_ci95,", 48), 0);
    cr_expect_null(strstr(text, "replication,"));
    cr_expect_str_eq(cell(text, "runs", 1), "3");
    cr_expect_str_eq(cell(text, "runs", 2), "2", "one of the runs at 2 failed");
    cr_expect_str_eq(cell(text, "saturated_runs", 1), "0");
    cr_expect_str_eq(cell(text, "saturated_runs", 2), "2");
    cr_expect_str_eq(cell(text, "requests", 1), "11");
    cr_expect_float_eq(atof(cell(text, "requests_ci95", 1)), 4.3027 / sqrt(3), 1e-4);
    cr_expect_str_eq(cell(text, "duration_s", 2), "3.5");
    cr_expect_float_eq(atof(cell(text, "duration_s_ci95", 2)), 12.7062 * sqrt(0.5) / sqrt(2), 1e-4);
    cr_expect_str_eq(cell(text, "goodput_rps", 1), "7", "undefined in the first of three");
    cr_expect_str_eq(cell(text, "goodput_rps_ci95", 1), "0");
    free(text);
    scratch_remove(&scratch);
}

Test(replications, the_mean_is_a_point)
{
    struct ifl_summary mean;
    struct ifl_replications of = three;
    const char *values[1];
    cr_assert_eq(ifl_mean_of_runs(&of, 1, values, &mean, &error), IFL_OK);
    cr_expect_str_eq(values[0], "2");
    cr_expect_eq(mean.n_requests, 14, "13.5 is rounded");
    cr_expect_eq(mean.duration_s, 3.5);
    cr_expect(mean.saturated);
    cr_expect_str_eq(mean.error, "");
}

/* ---- the warm-up ---- */

static double batch_mean(const double *x, size_t batch)
{
    double sum = 0;
    for (size_t i = 0; i < 5; i++)
        sum += x[5 * batch + i];
    return sum / 5;
}

/* By the definition, at quadratic cost. */
static size_t by_definition(const double *x, size_t n)
{
    const size_t k = n / 5;
    size_t best = 0;
    double least = INFINITY;
    for (size_t d = 0; d <= k / 2; d++) {
        double mean = 0, squares = 0;
        for (size_t j = d; j < k; j++)
            mean += batch_mean(x, j) / (double)(k - d);
        for (size_t j = d; j < k; j++)
            squares += pow(batch_mean(x, j) - mean, 2);
        if (squares / pow((double)(k - d), 2) < least) {
            least = squares / pow((double)(k - d), 2);
            best = d;
        }
    }
    return 5 * best;
}

enum { N = 1000 };

static void draw_series(uint64_t seed, double initial, double *x)
{
    double state = initial;
    for (uint64_t i = 0; i < N; i++) {
        state = 0.9 * state + ifl_uniform(ifl_draw(seed, IFL_DRAW_POLICY, i, 0)) - 0.5;
        x[i] = state;
    }
}

Test(warmup, as_the_definition_has_it)
{
    double x[N];
    for (uint64_t seed = 0; seed < 20; seed++) {
        draw_series(seed, seed % 2 ? 30 : 0, x);
        cr_expect_eq(warmup_mser5(x, N), by_definition(x, N), "seed %d", (int)seed);
        cr_expect_eq(warmup_mser5(x, 103), by_definition(x, 103), "seed %d", (int)seed);
    }
}

Test(warmup, an_initial_bias_is_found)
{
    double x[N];
    draw_series(1, 30, x); /* 30 x 0.9^40 = 0.44, the size of the noise */
    cr_expect_geq(warmup_mser5(x, N), 20);
    cr_expect_leq(warmup_mser5(x, N), 100);
}

Test(warmup, too_little_is_left_alone)
{
    const double x[49] = {9, 9, 9};
    cr_expect_eq(warmup_mser5(x, 49), 0);
    cr_expect_eq(warmup_mser5(x, 0), 0);
}
