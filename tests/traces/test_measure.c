/* Statistics of a few rows, worked out by hand: linear interpolation as numpy's default. */
#include "reading.h"

#include <math.h>

#define expect_near(value, expected)                                                               \
    cr_expect(fabs((value) - (expected)) < 1e-9, #value " is %.12g, not %.12g", value,             \
              (double)(expected))

Test(measure, by_hand)
{
    /* stamps 0 1 3 7: gaps 1 2 4, mean 7/3, sample variance 7/3 */
    struct ifl_trace trace = must_read("arrival_s,prompt_tokens,output_tokens\n"
                                       "7,40,1\n0,10,1\n3,20,1\n1,30,9\n");
    struct ifl_trace_stats stats;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_measure(&trace, &stats, &error), 0);
    cr_expect_eq(stats.n, 4);
    expect_near(stats.span_s, 7);
    expect_near(stats.rate_rps, 4.0 / 7);
    expect_near(stats.gap_cv, sqrt(7.0 / 3) / (7.0 / 3));
    expect_near(stats.prompt.mean, 25);
    expect_near(stats.prompt.p50, 25);
    expect_near(stats.prompt.p90, 37);
    expect_near(stats.prompt.p99, 39.7);
    expect_near(stats.prompt.max, 40);
    expect_near(stats.output.mean, 3);
    expect_near(stats.output.p90, 6.6);
    cr_expect_eq(stats.n_hash_ids, 0);
    expect_column(trace.n_prompt, 40, 10, 20, 30); /* not sorted by the way */
    ifl_trace_free(&trace);
}

Test(measure, one_row_has_no_rate)
{
    struct ifl_trace trace = must_read("arrival_s,prompt_tokens,output_tokens\n5,4,3\n");
    struct ifl_trace_stats stats;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_measure(&trace, &stats, &error), 0);
    cr_expect(isnan(stats.rate_rps) && isnan(stats.gap_cv));
    expect_near(stats.span_s, 0);
    expect_near(stats.prompt.p99, 4);
    ifl_trace_free(&trace);
}

Test(measure, hash_hits_are_ids_seen_before)
{
    struct ifl_trace trace =
        must_read("{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"hash_ids\":[5,6,7]}\n"
                  "{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":[5,8]}\n"
                  "{\"timestamp\":2,\"input_length\":1,\"output_length\":1,\"hash_ids\":[5,8]}\n");
    struct ifl_trace_stats stats;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_measure(&trace, &stats, &error), 0);
    cr_expect_eq(stats.n_hash_ids, 7);
    cr_expect_eq(stats.n_hash_hits, 3);
    ifl_trace_free(&trace);
}

Test(measure, an_empty_trace_is_an_error)
{
    const struct ifl_trace trace = {0};
    struct ifl_trace_stats stats;
    struct ifl_error error;
    cr_expect_eq(ifl_trace_measure(&trace, &stats, &error), IFL_E_INPUT);
}
