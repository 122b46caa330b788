/* Arrival processes against closed forms. */
#include "reading.h"

#include <math.h>

enum { N = 100000 };

static const double pi = 3.14159265358979323846;

static struct ifl_trace rows(size_t n)
{
    const struct ifl_length_spec fixed = {.law = IFL_LENGTH_FIXED, .mean = 1};
    struct ifl_trace trace;
    struct ifl_error error;
    cr_assert_eq(ifl_trace_generate(n, 0, &fixed, &fixed, &trace, &error), 0, "%s", error.text);
    return trace;
}

static struct ifl_trace arrive(size_t n, const struct ifl_arrivals *arrivals)
{
    struct ifl_error error;
    struct ifl_trace trace = rows(n);
    cr_assert_eq(ifl_trace_arrive(&trace, arrivals, "t.csv", NULL, &error), 0, "%s", error.text);
    for (size_t i = 1; i < n; i++)
        cr_assert_geq(trace.arrival_ns[i], trace.arrival_ns[i - 1]);
    return trace;
}

/* Mean and coefficient of variation of the gaps, the one before the first request included. */
static void measure_gaps(const struct ifl_trace *trace, double *mean_s, double *cv)
{
    double sum = 0, sum_of_squares = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const int64_t before_ns = i ? trace->arrival_ns[i - 1] : 0;
        const double gap_s = (double)(trace->arrival_ns[i] - before_ns) * 1e-9;
        sum += gap_s;
        sum_of_squares += gap_s * gap_s;
    }
    const double n = (double)trace->n;
    *mean_s = sum / n;
    *cv = sqrt(sum_of_squares / n - *mean_s * *mean_s) / *mean_s;
}

Test(arrivals, poisson)
{
    double mean_s, cv;
    const struct ifl_arrivals poisson = {.process = IFL_ARRIVE_POISSON, .rate_rps = 4, .seed = 7};
    struct ifl_trace trace = arrive(N, &poisson);
    measure_gaps(&trace, &mean_s, &cv);
    cr_expect_lt(fabs(mean_s - 0.25), 3 * 0.25 / sqrt(N));
    /* the standard error of an exponential's sample cv is 1 / sqrt(n) */
    cr_expect_lt(fabs(cv - 1), 3 / sqrt(N));
    /* memoryless: P(gap > mean) is 1 / e, P(gap > 3 mean) is 1 / e^3 */
    double n_long = 0, n_very_long = 0;
    for (size_t i = 1; i < trace.n; i++) {
        n_long += trace.arrival_ns[i] - trace.arrival_ns[i - 1] > 250000000;
        n_very_long += trace.arrival_ns[i] - trace.arrival_ns[i - 1] > 750000000;
    }
    cr_expect_lt(fabs(n_long / N - exp(-1)), 3 * sqrt(exp(-1) * (1 - exp(-1)) / N));
    cr_expect_lt(fabs(n_very_long / N - exp(-3)), 3 * sqrt(exp(-3) * (1 - exp(-3)) / N));
    cr_expect(trace.has_stamps);
    ifl_trace_free(&trace);
}

Test(arrivals, draws_are_keyed_by_row)
{
    const struct ifl_arrivals poisson = {.process = IFL_ARRIVE_POISSON, .rate_rps = 4, .seed = 7};
    struct ifl_trace few = arrive(10, &poisson), many = arrive(1000, &poisson);
    cr_expect_arr_eq(few.arrival_ns, many.arrival_ns, 10 * sizeof *few.arrival_ns);
    ifl_trace_free(&many);
    const struct ifl_arrivals other = {.process = IFL_ARRIVE_POISSON, .rate_rps = 4, .seed = 8};
    many = arrive(10, &other);
    cr_expect_arr_neq(few.arrival_ns, many.arrival_ns, 10 * sizeof *few.arrival_ns);
    ifl_trace_free(&few);
    ifl_trace_free(&many);
}

/* Smooth, Poisson-like and bursty, up to shapes where only the series near 0 converges. The
 * sample cv of a gamma law has a relative standard error of sqrt((1 + 3 cv^2 + ...) / n); the
 * bounds below are over 4 of them. */
Test(arrivals, gamma)
{
    static const struct {
        double cv, tolerance_frac;
    } cases[] = {{0.01, 0.02}, {0.5, 0.02}, {1, 0.02}, {3, 0.06}, {10, 0.25}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double mean_s, cv;
        const struct ifl_arrivals gamma = {
            .process = IFL_ARRIVE_GAMMA, .rate_rps = 10, .cv = cases[i].cv, .seed = 3};
        struct ifl_trace trace = arrive(N / 4, &gamma);
        measure_gaps(&trace, &mean_s, &cv);
        cr_expect_lt(fabs(mean_s - 0.1), 3 * 0.1 * cases[i].cv / sqrt(N / 4),
                     "mean gap %g at cv %g", mean_s, cases[i].cv);
        cr_expect_lt(fabs(cv / cases[i].cv - 1), cases[i].tolerance_frac, "cv %g, not %g", cv,
                     cases[i].cv);
        ifl_trace_free(&trace);
    }
}

/* A gamma law of cv 1 is the exponential. */
Test(arrivals, gamma_of_cv_1_is_poisson)
{
    struct ifl_arrivals arrivals = {
        .process = IFL_ARRIVE_POISSON, .rate_rps = 2, .cv = 1, .seed = 5};
    struct ifl_trace poisson = arrive(1000, &arrivals);
    arrivals.process = IFL_ARRIVE_GAMMA;
    struct ifl_trace gamma = arrive(1000, &arrivals);
    for (size_t i = 0; i < 1000; i++)
        cr_expect_leq(llabs(poisson.arrival_ns[i] - gamma.arrival_ns[i]), 100);
    ifl_trace_free(&poisson);
    ifl_trace_free(&gamma);
}

Test(arrivals, constant_is_exact)
{
    const struct ifl_arrivals constant = {.process = IFL_ARRIVE_CONSTANT, .rate_rps = 4};
    struct ifl_trace trace = arrive(1000, &constant);
    for (size_t i = 0; i < 1000; i++)
        cr_assert_eq(trace.arrival_ns[i], (int64_t)(i + 1) * 250000000);
    ifl_trace_free(&trace);
}

Test(arrivals, burst_and_closed)
{
    const struct ifl_arrivals burst = {.process = IFL_ARRIVE_BURST};
    struct ifl_trace trace = arrive(3, &burst);
    expect_column(trace.arrival_ns, 0, 0, 0);
    ifl_trace_free(&trace);
    const struct ifl_arrivals closed = {.process = IFL_ARRIVE_CLOSED, .concurrency = 2};
    trace = arrive(3, &closed);
    expect_column(trace.arrival_ns, 0, 0, 0);
    cr_expect(!trace.has_stamps);
    ifl_trace_free(&trace);
}

static size_t count_between(const struct ifl_trace *trace, double from_s, double to_s)
{
    size_t n = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const double at_s = (double)trace->arrival_ns[i] * 1e-9;
        n += at_s > from_s + 1e-6 && at_s <= to_s + 1e-6;
    }
    return n;
}

Test(arrivals, piecewise_constant)
{
    /* 10 s at 2/s, 5 s of silence, 20 s at 5/s, then 1/s for ever */
    const struct ifl_arrivals pieces = {.process = IFL_ARRIVE_CONSTANT,
                                        .n_pieces = 4,
                                        .piece_from_s = {0, 10, 15, 35},
                                        .piece_rate_rps = {2, 0, 5, 1}};
    struct ifl_trace trace = arrive(200, &pieces);
    cr_expect_eq(count_between(&trace, 0, 10), 20);
    cr_expect_eq(count_between(&trace, 10, 15), 0);
    cr_expect_eq(count_between(&trace, 15, 35), 100);
    cr_expect_eq(count_between(&trace, 35, 115), 80);
    expect_column(trace.arrival_ns, 500000000, 1000000000);
    cr_expect_eq(trace.arrival_ns[20], 15200000000);
    cr_expect_eq(trace.arrival_ns[199], 115000000000);
    ifl_trace_free(&trace);
}

/* Counts of an inhomogeneous Poisson process are Poisson: 3 standard deviations. */
Test(arrivals, piecewise_poisson)
{
    const struct ifl_arrivals pieces = {.process = IFL_ARRIVE_POISSON,
                                        .seed = 11,
                                        .n_pieces = 2,
                                        .piece_from_s = {0, 1000},
                                        .piece_rate_rps = {10, 40}};
    struct ifl_trace trace = arrive(N, &pieces);
    cr_expect_lt(fabs((double)count_between(&trace, 0, 1000) - 10000), 3 * sqrt(10000));
    cr_expect_lt(fabs((double)count_between(&trace, 1000, 2000) - 40000), 3 * sqrt(40000));
    ifl_trace_free(&trace);
}

/* rate 10 (1 + 0.8 sin(2 pi (t + phase) / 100)): half a period has 500 + 8 * 100 / pi of a rising
 * and 500 - 800 / pi of a falling half; whole periods have 1000. A constant process counts the
 * integral to within one. */
Test(arrivals, sine_counts)
{
    struct ifl_arrivals sine = {.process = IFL_ARRIVE_CONSTANT,
                                .rate_rps = 10,
                                .sine_amplitude_frac = 0.8,
                                .sine_period_s = 100};
    struct ifl_trace trace = arrive(5000, &sine);
    for (int k = 0; k < 4; k++) {
        const double rising = 500 + 800 / pi, from_s = 100 * k;
        cr_expect_lt(fabs((double)count_between(&trace, from_s, from_s + 50) - rising), 1.01);
        cr_expect_lt(fabs((double)count_between(&trace, from_s, from_s + 100) - 1000), 1.01);
    }
    ifl_trace_free(&trace);
    sine.sine_phase_s = 50; /* begins with the falling half */
    sine.sine_amplitude_frac = 1;
    trace = arrive(5000, &sine);
    cr_expect_lt(fabs((double)count_between(&trace, 0, 50) - (500 - 1000 / pi)), 1.01);
    ifl_trace_free(&trace);
}

/* Each arrival of a constant process is where the integral passes a whole number. */
Test(arrivals, sine_inverts_to_the_nanosecond)
{
    const double rate = 3, a = 0.9, period_s = 60, phase_s = 7, w = 2 * pi / period_s;
    const struct ifl_arrivals sine = {.process = IFL_ARRIVE_CONSTANT,
                                      .rate_rps = rate,
                                      .sine_amplitude_frac = a,
                                      .sine_period_s = period_s,
                                      .sine_phase_s = phase_s};
    struct ifl_trace trace = arrive(2000, &sine);
    for (size_t i = 0; i < trace.n; i++) {
        const double t = (double)trace.arrival_ns[i] * 1e-9;
        const double integral = rate * (t + a / w * (cos(w * phase_s) - cos(w * (t + phase_s))));
        cr_assert_lt(fabs(integral - (double)(i + 1)), 1e-8, "request %zu at %.9f s", i, t);
    }
    ifl_trace_free(&trace);
}

/* ---- the trace's own stamps ---- */

static const char unsorted[] = "arrival_s,prompt_tokens,output_tokens,session,think_s\n"
                               "4,1,1,a,\n2,2,1,a,0.5\n3,3,1,,\n";

Test(arrivals, trace_with_speedup_sorts)
{
    struct notebook notebook = {0};
    const struct ifl_notes notes = notes_into(&notebook);
    const struct ifl_arrivals arrivals = {.process = IFL_ARRIVE_TRACE, .speedup = 4};
    struct ifl_trace trace = must_read(unsorted);
    struct ifl_error error;
    cr_assert_eq(ifl_trace_arrive(&trace, &arrivals, "t.csv", &notes, &error), 0);
    expect_column(trace.arrival_ns, 500000000, 750000000, 1000000000);
    expect_column(trace.n_prompt, 2, 3, 1);
    expect_column(trace.think_ns, 500000000, -1, -1); /* waits are the user's, not the trace's */
    /* a turn that waits for another has no stamp of its own */
    cr_expect_str_eq(notebook.last, "1 of 3 stamps were out of order; sorted");
    ifl_trace_free(&trace);
}

Test(arrivals, other_processes_keep_think_times_and_order)
{
    const struct ifl_arrivals arrivals = {.process = IFL_ARRIVE_CONSTANT, .rate_rps = 1};
    struct ifl_trace trace = must_read(unsorted);
    struct ifl_error error;
    cr_assert_eq(ifl_trace_arrive(&trace, &arrivals, "t.csv", NULL, &error), 0);
    expect_column(trace.n_prompt, 1, 2, 3);
    expect_column(trace.think_ns, -1, 500000000, -1);
    ifl_trace_free(&trace);
}

Test(arrivals, trace_without_stamps_is_an_error)
{
    const struct ifl_arrivals arrivals = {.process = IFL_ARRIVE_TRACE, .speedup = 1};
    struct ifl_trace trace = rows(1);
    struct ifl_error error;
    cr_assert_eq(ifl_trace_arrive(&trace, &arrivals, "t.csv", NULL, &error), IFL_E_INPUT);
    cr_expect_str_eq(error.file, "t.csv");
    cr_expect(strstr(error.text, "no stamps") && strstr(error.text, "poisson"), "%s", error.text);
    ifl_trace_free(&trace);
}

/* ---- refusals ---- */

Test(arrivals, impossible_ones_are_refused)
{
    static const struct {
        struct ifl_arrivals arrivals;
        const char *says;
    } cases[] = {
        {{.process = IFL_ARRIVE_TRACE}, "speedup is 0"},
        {{.process = IFL_ARRIVE_POISSON}, "rate_rps is 0"},
        {{.process = IFL_ARRIVE_POISSON, .rate_rps = -4}, "rate_rps is -4"},
        {{.process = IFL_ARRIVE_POISSON, .rate_rps = NAN}, "rate_rps is"},
        {{.process = IFL_ARRIVE_GAMMA, .rate_rps = 1}, "cv is 0"},
        {{.process = IFL_ARRIVE_CLOSED}, "concurrency is 0, expected 1 or more"},
        {{.process = IFL_ARRIVE_CONSTANT, .rate_rps = 1e-10}, "would arrive after"},
        {{.process = IFL_ARRIVE_POISSON, .n_pieces = 1, .piece_from_s = {1}}, "begins at 1 s"},
        {{.process = IFL_ARRIVE_POISSON,
          .n_pieces = 2,
          .piece_rate_rps = {1, 0},
          .piece_from_s = {0, 5}},
         "the last rate piece has 0 requests/s, expected more: it never ends"},
        {{.process = IFL_ARRIVE_POISSON,
          .n_pieces = 2,
          .piece_rate_rps = {1, 2},
          .piece_from_s = {0, 0}},
         "later than the one before"},
        {{.process = IFL_ARRIVE_POISSON, .n_pieces = 1, .piece_rate_rps = {-1}},
         "rate piece 0 has -1 requests/s, expected 0 or more"},
        {{.process = IFL_ARRIVE_POISSON,
          .rate_rps = 1,
          .sine_amplitude_frac = 1.5,
          .sine_period_s = 1},
         "amplitude 1.5"},
        {{.process = IFL_ARRIVE_POISSON, .rate_rps = 1, .sine_amplitude_frac = 0.5}, "period 0 s"},
        {{.process = IFL_ARRIVE_POISSON,
          .sine_amplitude_frac = 0.5,
          .sine_period_s = 1,
          .n_pieces = 1,
          .piece_rate_rps = {1}},
         "both given"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ifl_trace trace = rows(2);
        struct ifl_error error = {0};
        cr_expect_eq(ifl_trace_arrive(&trace, &cases[i].arrivals, "t.csv", NULL, &error),
                     IFL_E_INPUT, "%s", cases[i].says);
        cr_expect(strstr(error.text, cases[i].says), "\"%s\" lacks \"%s\"", error.text,
                  cases[i].says);
        ifl_trace_free(&trace);
    }
}
