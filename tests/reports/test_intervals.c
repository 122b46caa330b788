/* intervals.csv: how much of what is drawn lies between the ends. */
#include "scratch.h"

#include <math.h>

#include "inflight/random.h"
#include "inflight/report.h"

enum { MANY = 40, FEW = 8, TRIALS = 2000 };

/* Writes the intervals of members that differ in one mean, and reads the ends of that. */
static void ends_of(const struct scratch *scratch, const double *e2e_s, size_t n, double *low,
                    double *high)
{
    static struct ifl_summary members[MANY];
    struct ifl_error error = {0};
    const struct ifl_summary nominal = {.n_requests = 1};
    const struct ifl_ensemble ensemble = {0, &nominal, members, n};
    for (size_t i = 0; i < n; i++)
        members[i].e2e_s.mean = e2e_s[i];
    cr_assert_eq(ifl_write_intervals(&ensemble, scratch_path(scratch, "intervals.csv"), &error), 0,
                 "%s", error.text);
    char *text = scratch_read(scratch, "intervals.csv");
    const char *row = strstr(text, "\n0,mean_e2e_s,");
    cr_assert_not_null(row);
    cr_assert_eq(sscanf(row, "\n0,mean_e2e_s,%*[^,],%*[^,],%*[^,],%lf,%*[^,],%lf", low, high), 2);
    free(text);
}

/* Ranks 0.05 and 0.95 of n + 1, by hand. */
Test(intervals, ends_are_ranks_of_one_more)
{
    const struct scratch scratch = scratch_make();
    double value[MANY], low, high;
    for (int i = 0; i < MANY; i++)
        value[i] = MANY - i;
    ends_of(&scratch, value, MANY, &low, &high);
    cr_expect_float_eq(low, 2.05, 1e-9);
    cr_expect_float_eq(high, 38.95, 1e-9);
    ends_of(&scratch, value, FEW, &low, &high);
    cr_expect_eq(low, MANY - FEW + 1, "the outermost of a few");
    cr_expect_eq(high, MANY);
    ends_of(&scratch, value, 1, &low, &high);
    cr_expect_eq(low, MANY);
    cr_expect_eq(high, MANY);
    value[3] = NAN;
    ends_of(&scratch, value, FEW, &low, &high);
    cr_expect_eq(high, MANY, "a member without the number does not count");
    scratch_remove(&scratch);
}

/* One more draw of the same kind, here of exp(3 u): 90% of them, whatever the distribution. */
Test(intervals, hold_ninety_of_a_hundred_further_draws)
{
    const struct scratch scratch = scratch_make();
    double value[MANY + 1], low, high;
    int n_held = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        for (int i = 0; i <= MANY; i++)
            value[i] =
                exp(3 * ifl_uniform(ifl_draw(11, IFL_DRAW_ENSEMBLE, (uint64_t)trial, (uint64_t)i)));
        ends_of(&scratch, value, MANY, &low, &high);
        n_held += low <= value[MANY] && value[MANY] <= high;
    }
    /* Three standard errors of a share of 2,000 are 2%. */
    cr_expect_float_eq((double)n_held / TRIALS, 0.9, 0.02, "%d of %d", n_held, TRIALS);
    scratch_remove(&scratch);
}
