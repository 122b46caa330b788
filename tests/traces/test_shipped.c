/* The traces that come with inflight, against published statistics. */
#include "reading.h"

#include <math.h>

static struct ifl_trace_stats measure(const char *path)
{
    struct notebook notebook = {0};
    struct ifl_trace trace = must_load(path, &notebook);
    struct ifl_trace_stats stats;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_measure(&trace, &stats, &error), 0);
    ifl_trace_free(&trace);
    return stats;
}

#define expect_near(value, expected, tolerance)                                                    \
    cr_expect(fabs((value) - (expected)) <= (tolerance), #value " is %.6g, published %.6g", value, \
              (double)(expected))

/* Patel et al., Splitwise, ISCA 2024; the data set's own statistics. */
Test(shipped, azure_code)
{
    const struct ifl_trace_stats stats = measure(SHIPPED("azure-code-2023.csv.gz"));
    cr_expect_eq(stats.n, 8819);
    expect_near(stats.span_s, 3435.9, 0.05);
    expect_near(stats.rate_rps, 2.567, 0.0005);
    expect_near(stats.prompt.mean, 2047.8, 0.05);
    expect_near(stats.prompt.p50, 1469, 0);
    expect_near(stats.prompt.p99, 7436, 0.5);
    expect_near(stats.prompt.max, 7437, 0);
    expect_near(stats.output.mean, 27.9, 0.05);
    expect_near(stats.output.p50, 13, 0);
    expect_near(stats.output.max, 1899, 0);
}

Test(shipped, azure_conversation)
{
    const struct ifl_trace_stats stats = measure(SHIPPED("azure-conv-2023.csv.gz"));
    cr_expect_eq(stats.n, 19366);
    expect_near(stats.span_s, 3501.7, 0.05);
    expect_near(stats.rate_rps, 5.53, 0.005);
    expect_near(stats.prompt.mean, 1154.7, 0.05);
    expect_near(stats.prompt.p50, 1020, 0);
    expect_near(stats.prompt.max, 14050, 0);
    expect_near(stats.output.mean, 211.1, 0.05);
    expect_near(stats.output.p50, 129, 0);
    expect_near(stats.output.max, 1000, 0);
}

/* Qin et al., Mooncake, FAST 2025: lengths; hits of an infinite cache are 36.6 % and 64.0 %. */
Test(shipped, mooncake_conversation)
{
    const struct ifl_trace_stats stats = measure(SHIPPED("mooncake-conversation.jsonl.gz"));
    cr_expect_eq(stats.n, 12031);
    expect_near(stats.span_s, 3537, 0.5);
    expect_near(stats.prompt.mean, 12035, 0.5);
    expect_near(stats.output.mean, 343, 0.5);
    cr_expect_eq(stats.n_hash_ids, 288500);
    cr_expect_eq(stats.n_hash_hits, 105710);
}

Test(shipped, mooncake_synthetic)
{
    const struct ifl_trace_stats stats = measure(SHIPPED("mooncake-synthetic.jsonl.gz"));
    cr_expect_eq(stats.n, 3993);
    expect_near(stats.prompt.mean, 15325, 0.5);
    expect_near(stats.output.mean, 149, 0.5);
    cr_expect_eq(stats.n_hash_ids, 121877);
    cr_expect_eq(stats.n_hash_hits, 77953);
}

/* Lengths without stamps; the last and largest values were read off the files by eye. */
Test(shipped, lengths)
{
    const struct ifl_trace_stats sharegpt = measure(SHIPPED("sharegpt-8k-lengths.csv.gz"));
    cr_expect_eq(sharegpt.n, 30731);
    expect_near(sharegpt.prompt.max, 8141, 0);
    cr_expect(isnan(sharegpt.rate_rps) && isnan(sharegpt.span_s) && isnan(sharegpt.gap_cv));
    const struct ifl_trace_stats arxiv = measure(SHIPPED("arxiv-lengths.csv.gz"));
    cr_expect_eq(arxiv.n, 28257);
    const struct ifl_trace_stats servingsim = measure(SHIPPED("llmservingsim-sharegpt.jsonl.gz"));
    cr_expect_eq(servingsim.n, 300);
    expect_near(servingsim.rate_rps, 10, 0.5);
}
