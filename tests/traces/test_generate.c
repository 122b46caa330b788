/* Generated lengths against the laws' closed forms: within 4 standard errors, or exactly. */
#include "reading.h"

#include <math.h>

enum { N = 100000 };

static struct ifl_trace generate(const struct ifl_length_spec *prompt)
{
    const struct ifl_length_spec fixed = {.law = IFL_LENGTH_FIXED, .mean = 17.4};
    struct ifl_trace trace;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_generate(N, 42, prompt, &fixed, &trace, &error), 0, "%s", error.text);
    cr_assert(trace.n == N && !trace.has_stamps && trace.n_clients == 1);
    return trace;
}

static double mean(const struct ifl_trace *trace)
{
    double sum = 0;
    for (size_t i = 0; i < trace->n; i++)
        sum += trace->n_prompt[i];
    return sum / (double)trace->n;
}

static double variance(const struct ifl_trace *trace)
{
    const double m = mean(trace);
    double sum = 0;
    for (size_t i = 0; i < trace->n; i++)
        sum += (trace->n_prompt[i] - m) * (trace->n_prompt[i] - m);
    return sum / (double)trace->n;
}

Test(generate, uniform)
{
    const struct ifl_length_spec uniform = {.law = IFL_LENGTH_UNIFORM, .min = 10, .max = 19};
    struct ifl_trace trace = generate(&uniform);
    int n_of[20] = {0};
    for (size_t i = 0; i < N; i++) {
        cr_assert(trace.n_prompt[i] >= 10 && trace.n_prompt[i] <= 19);
        n_of[trace.n_prompt[i]]++;
        cr_assert_eq(trace.n_output[i], 17);
    }
    for (int v = 10; v < 20; v++) /* binomial(N, 1/10) */
        cr_expect_lt(fabs(n_of[v] - N / 10.0), 4 * sqrt(N * 0.09), "%d comes %d times", v, n_of[v]);
    ifl_trace_free(&trace);
}

Test(generate, lognormal_has_the_mean_and_cv_asked_for)
{
    const struct ifl_length_spec lognormal = {
        .law = IFL_LENGTH_LOGNORMAL, .mean = 1000, .cv = 0.5, .min = 1, .max = INT32_MAX};
    struct ifl_trace trace = generate(&lognormal);
    cr_expect_lt(fabs(mean(&trace) - 1000), 4 * 500 / sqrt(N));
    cr_expect_lt(fabs(sqrt(variance(&trace)) / mean(&trace) - 0.5), 0.01);
    /* the median is mean / sqrt(1 + cv^2) */
    double n_below = 0;
    for (size_t i = 0; i < N; i++)
        n_below += trace.n_prompt[i] < 1000 / sqrt(1.25);
    cr_expect_lt(fabs(n_below / N - 0.5), 4 * 0.5 / sqrt(N));
    ifl_trace_free(&trace);
}

Test(generate, lognormal_is_clipped_and_may_have_no_spread)
{
    struct ifl_length_spec lognormal = {
        .law = IFL_LENGTH_LOGNORMAL, .mean = 100, .cv = 2, .min = 50, .max = 200};
    struct ifl_trace trace = generate(&lognormal);
    bool low = false, high = false;
    for (size_t i = 0; i < N; i++) {
        cr_assert(trace.n_prompt[i] >= 50 && trace.n_prompt[i] <= 200);
        low = low || trace.n_prompt[i] == 50;
        high = high || trace.n_prompt[i] == 200;
    }
    cr_expect(low && high);
    ifl_trace_free(&trace);
    lognormal.cv = 0;
    trace = generate(&lognormal);
    cr_expect(trace.n_prompt[0] == 100 && trace.n_prompt[N - 1] == 100);
    ifl_trace_free(&trace);
}

/* P(v) = v^-s / sum: with s = 1 over 1..4 that is 12, 6, 4, 3 of 25; with s = 0 all are alike. */
Test(generate, zipf)
{
    static const double expected[] = {12 / 25.0, 6 / 25.0, 4 / 25.0, 3 / 25.0};
    struct ifl_length_spec zipf = {.law = IFL_LENGTH_ZIPF, .exponent = 1, .min = 1, .max = 4};
    struct ifl_trace trace = generate(&zipf);
    int n_of[5] = {0};
    for (size_t i = 0; i < N; i++)
        n_of[trace.n_prompt[i]]++;
    for (int v = 1; v <= 4; v++) {
        const double p = expected[v - 1];
        cr_expect_lt(fabs(n_of[v] - N * p), 4 * sqrt(N * p * (1 - p)), "%d comes %d times", v,
                     n_of[v]);
    }
    ifl_trace_free(&trace);
    zipf = (struct ifl_length_spec){.law = IFL_LENGTH_ZIPF, .min = 3, .max = 5};
    trace = generate(&zipf);
    cr_expect_lt(fabs(mean(&trace) - 4), 4 * sqrt(2.0 / 3 / N));
    ifl_trace_free(&trace);
}

Test(generate, prompt_and_output_are_drawn_apart_and_by_row)
{
    const struct ifl_length_spec wide = {.law = IFL_LENGTH_UNIFORM, .min = 1, .max = 1000000};
    struct ifl_trace few, many;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_generate(10, 1, &wide, &wide, &few, &error), 0);
    cr_assert_eq(ifl_trace_generate(20, 1, &wide, &wide, &many, &error), 0);
    cr_expect_arr_eq(few.n_prompt, many.n_prompt, 10 * sizeof *few.n_prompt);
    cr_expect_arr_neq(few.n_prompt, few.n_output, 10 * sizeof *few.n_prompt);
    ifl_trace_free(&few);
    ifl_trace_free(&many);
}

Test(generate, impossible_laws_are_refused)
{
    static const struct {
        struct ifl_length_spec spec;
        const char *says;
    } cases[] = {
        {{.law = IFL_LENGTH_FIXED}, "the mean is 0 tokens"},
        {{.law = IFL_LENGTH_UNIFORM, .min = 0, .max = 5},
         "lengths are bound to [0, 5] tokens, expected 1 <= min <= max"},
        {{.law = IFL_LENGTH_UNIFORM, .min = 6, .max = 5}, "[6, 5] tokens"},
        {{.law = IFL_LENGTH_LOGNORMAL, .min = 1, .max = 5, .mean = 3, .cv = -1},
         "cv is -1, expected 0 or more"},
        {{.law = IFL_LENGTH_LOGNORMAL, .min = 1, .max = 5, .mean = NAN}, "the mean is"},
        {{.law = IFL_LENGTH_ZIPF, .min = 1, .max = 5, .exponent = -1},
         "the exponent of zipf is -1"},
        {{.law = IFL_LENGTH_ZIPF, .min = 1, .max = INT32_MAX},
         "zipf has 2147483647 lengths from 1 to 2147483647 tokens, expected at most 16777216"},
    };
    const struct ifl_length_spec fixed = {.law = IFL_LENGTH_FIXED, .mean = 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ifl_trace trace;
        struct ifl_error error = {0};
        cr_expect_eq(ifl_trace_generate(1, 0, &fixed, &cases[i].spec, &trace, &error), IFL_E_INPUT);
        cr_expect(strstr(error.text, cases[i].says), "\"%s\" lacks \"%s\"", error.text,
                  cases[i].says);
    }
    struct ifl_trace trace;
    struct ifl_error error;
    cr_expect_eq(ifl_trace_generate(0, 0, &fixed, &fixed, &trace, &error), IFL_E_INPUT);
}
