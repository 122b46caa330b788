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
    expect_column(trace.n_prompt, 40, 10, 20, 30); /* measuring must not sort the trace */
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

/* Turns that wait for the previous one do not count in the rate: stamps 0 and 4, of two sessions.
 */
Test(measure, what_the_optional_columns_hold)
{
    struct ifl_trace trace = must_read(
        "arrival_s,prompt_tokens,output_tokens,session,think_s,prefix_group,prefix_tokens,client,"
        "priority,ttft_slo_s,max_tokens,samples\n"
        "4,9,1,b,,g,8,x,2,,,1\n,9,1,b,1,g,9,y,-1,0.5,7,3\n0,9,1,a,,,,x,0,,,1\n,9,1,a,2,,,z,0,,,"
        "1\n");
    struct ifl_trace_stats stats;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_measure(&trace, &stats, &error), 0);
    expect_near(stats.span_s, 4);
    expect_near(stats.rate_rps, 0.5);
    cr_expect_eq(stats.n_sessions, 2);
    cr_expect_eq(stats.n_turns, 4);
    cr_expect_eq(stats.n_waiting_turns, 2);
    cr_expect_eq(stats.n_prefix_groups, 1);
    cr_expect_eq(stats.n_in_groups, 2);
    cr_expect_eq(stats.n_clients, 3);
    cr_expect(stats.least_priority == -1 && stats.most_priority == 2);
    cr_expect(stats.n_ttft_slos == 1 && stats.n_tpot_slos == 0);
    cr_expect_eq(stats.n_limits, 1);
    cr_expect_eq(stats.most_samples, 3);
    ifl_trace_free(&trace);
}

Test(measure, an_empty_trace_is_an_error)
{
    const struct ifl_trace trace = {0};
    struct ifl_trace_stats stats;
    struct ifl_error error;
    cr_expect_eq(ifl_trace_measure(&trace, &stats, &error), IFL_E_INPUT);
}
