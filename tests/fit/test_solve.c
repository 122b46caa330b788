/* The fitter finds known parameters, and reports parameters that it cannot find. */
#include <criterion/criterion.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/solve.h"

enum { MAX_ROWS = 4000 };

struct rows {
    struct fit_sample of[MAX_ROWS];
    const struct fit_sample *at[MAX_ROWS];
    size_t n;
};

/* An A100's peaks, and kernels made up. */
static const struct platform truth = {
    .hardware.gpu = {.peak_tflops = 312, .memory_gb_per_s = 2039, .n_sms = 108},
    .hardware.gemm = {6, 0.8, 0.7, 1.7, 0.2},
    .hardware.prefill = {12, 0.6, 250, 0.9, 0.4, 4},
    .hardware.decode = {15, 1.5, 0.8, 5, 25},
    .hardware.elementwise = {3, 0.6},
    .hardware.allreduce = {{5, 180, 40, 200, 4e6}},
    .hardware.send_recv = {12, 150},
    .hardware.swap_out = {.latency_us = 7, .gb_per_s = 22},
    .hardware.swap_in = {.latency_us = 5, .gb_per_s = 25},
    .hardware.block_copy = {4, 0.8},
};

static void add(struct rows *rows, struct fit_sample sample)
{
    cr_assert_lt(rows->n, MAX_ROWS);
    rows->at[rows->n] = &rows->of[rows->n];
    rows->of[rows->n++] = sample;
}

/* Sizes of products with odd rows, attention of all kinds, messages from 1 KiB to 1 GiB. */
static void make_rows(enum fit_op op, struct rows *rows)
{
    static const double m[] = {1, 8, 24, 72, 136, 280, 456, 900, 2100, 3700, 8000};
    static const double nk[] = {512, 1536, 4096, 5120, 8192, 22016};
    static const double seqs[] = {1, 3, 17, 64, 200}, context[] = {1, 60, 700, 3000, 16000};
    rows->n = 0;
    if (op == FIT_GEMM)
        for (int i = 0; i < 11 * 6 * 6; i++)
            add(rows, (struct fit_sample){.op = op,
                                          .m = m[i % 11],
                                          .n = nk[i / 11 % 6],
                                          .k = nk[i / 66],
                                          .element_bytes = 2});
    for (int i = 0; (op == FIT_DECODE || op == FIT_PREFILL) && i < 5 * 5 * 4 * 3; i++)
        add(rows, (struct fit_sample){.op = op,
                                      .n_seqs = seqs[i % 5],
                                      .new_tokens = op == FIT_DECODE ? 1 : context[i / 5 % 5],
                                      .context_tokens = op == FIT_DECODE ? context[i / 5 % 5]
                                                                         : (i / 75 % 2) * 1000.0,
                                      .q_heads = 8 << (i / 25 % 3),
                                      .kv_heads = 8,
                                      .d_head = 128,
                                      .element_bytes = 2});
    for (double bytes = 1024; op >= FIT_ELEMENTWISE && bytes < 1e9; bytes *= 1.3)
        add(rows, (struct fit_sample){.op = op, .n_seqs = 3, .bytes = bytes});
}

/* Log-normal noise, and a tenth of the rows off by a factor of up to two. */
static void measure(const struct form *form, struct rows *rows, double noise, bool outliers,
                    unsigned long seed)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, seed);
    for (size_t i = 0; i < rows->n; i++) {
        const double e = gsl_ran_gaussian(rng, noise);
        const double far = outliers && i % 10 == 3 ? gsl_ran_flat(rng, 0, log(2)) : 0;
        rows->of[i].measured_s = form->predict_s(&truth, &rows->of[i]) * exp(e + far);
    }
    gsl_rng_free(rng);
}

static struct platform blank(void)
{
    struct platform platform = {.hardware.gpu = truth.hardware.gpu};
    platform.hardware.prefill.causal_frac = 0.5;
    platform.hardware.decode_mixed = (struct decode_mixed_profile){1, 1}; /* likewise */
    platform.hardware.decode.stream_gb_per_s =
        10; /* not 0: contexts of unshared KV heads are not split */
    platform.hardware.allreduce[0].bulk_from_bytes = truth.hardware.allreduce[0].bulk_from_bytes;
    return platform;
}

static double true_value(const struct form_parameter *of)
{
    struct platform copy = truth;
    return *form_parameter_at(&copy, of);
}

/* About two hundred parameters over several draws of noise: few errors exceed two standard errors
 * (1 in 22 of a normal law), none exceeds five. */
static void expect_recovery(enum fit_op op)
{
    static struct rows rows;
    const struct form *form = form_of(op);
    int n = 0, n_far = 0;
    make_rows(op, &rows);
    for (unsigned long seed = 1; n < 200; seed++) {
        struct platform fitted = blank();
        struct solution solution;
        struct ifl_error error = {0};
        measure(form, &rows, 0.03, false, seed);
        cr_assert_eq(solve(form, rows.at, rows.n, SOLVE_DETERMINED, &fitted, &solution, &error), 0,
                     "%s: %s", form->section, error.text);
        for (int i = 0; i < form->n_parameters; i++) {
            if (solution.held[i])
                continue;
            const double off = fabs(solution.value[i] - true_value(&form->parameters[i]));
            cr_expect_lt(off, 5 * solution.std_error[i], "%s.%s: %g +- %g, not %g", form->section,
                         form->parameters[i].name, solution.value[i], solution.std_error[i],
                         true_value(&form->parameters[i]));
            n_far += off > 2 * solution.std_error[i];
            n++;
        }
    }
    cr_expect_lt(n_far, n / 8.0, "%s: %d of %d beyond two standard errors", form->section, n_far,
                 n);
}

Test(solve, recovers_products)
{
    expect_recovery(FIT_GEMM);
}

Test(solve, recovers_prefill)
{
    expect_recovery(FIT_PREFILL);
}

Test(solve, recovers_decode)
{
    expect_recovery(FIT_DECODE);
}

Test(solve, recovers_lines)
{
    expect_recovery(FIT_ELEMENTWISE);
    expect_recovery(FIT_ALLREDUCE_2);
    expect_recovery(FIT_SEND_RECV);
    expect_recovery(FIT_SWAP_OUT);
    expect_recovery(FIT_SWAP_IN);
    expect_recovery(FIT_BLOCK_COPY);
}

/* One row in ten is too slow by up to a factor of two, half of them by more than 40%. Least squares
 * would follow these rows; here no parameter moves by more than 8%. */
Test(solve, outliers_hardly_pull)
{
    static struct rows rows;
    const struct form *form = form_of(FIT_GEMM);
    struct platform fitted = blank();
    struct solution solution;
    struct ifl_error error = {0};
    make_rows(FIT_GEMM, &rows);
    measure(form, &rows, 0.01, true, 7);
    cr_assert_eq(solve(form, rows.at, rows.n, SOLVE_DETERMINED, &fitted, &solution, &error), 0,
                 "%s", error.text);
    cr_expect_lt(fabs(fitted.hardware.gemm.compute_frac / 0.8 - 1), 0.08, "%g",
                 fitted.hardware.gemm.compute_frac);
    cr_expect_lt(fabs(fitted.hardware.gemm.memory_frac / 0.7 - 1), 0.08, "%g",
                 fitted.hardware.gemm.memory_frac);
}

static void expect_refusal(const struct rows *rows, enum fit_op op, const char *name)
{
    struct platform fitted = blank();
    struct solution solution;
    struct ifl_error error = {0};
    cr_expect_eq(
        solve(form_of(op), rows->at, rows->n, SOLVE_DETERMINED, &fitted, &solution, &error),
        IFL_E_INPUT, "%s was determined", name);
    cr_expect_not_null(strstr(error.text, name), "%s, not %s", error.text, name);
    cr_expect_eq(fitted.hardware.gemm.launch_us, 0, "a refusal left numbers behind");
}

Test(solve, refuses_too_few_rows)
{
    static struct rows rows;
    make_rows(FIT_GEMM, &rows);
    measure(form_of(FIT_GEMM), &rows, 0.01, false, 1);
    rows.n = 9;
    expect_refusal(&rows, FIT_GEMM, "gemm, from launch_us on");
}

/* Products of one row are all bound by memory. */
Test(solve, refuses_what_no_row_shows)
{
    static struct rows rows;
    make_rows(FIT_GEMM, &rows);
    for (size_t i = 0; i < rows.n; i++)
        rows.of[i].m = 1;
    measure(form_of(FIT_GEMM), &rows, 0.01, false, 1);
    expect_refusal(&rows, FIT_GEMM, "gemm.compute_frac");
}

/* Whole prompts show kappa / e_a only: kappa keeps its value. */
Test(solve, holds_what_only_a_context_shows)
{
    static struct rows rows;
    const struct form *form = form_of(FIT_PREFILL);
    struct platform fitted = blank();
    struct solution solution;
    struct ifl_error error = {0};
    make_rows(FIT_PREFILL, &rows);
    for (size_t i = 0; i < rows.n; i++)
        rows.of[i].context_tokens = 0;
    measure(form, &rows, 0.01, false, 1);
    cr_assert_eq(solve(form, rows.at, rows.n, SOLVE_DETERMINED, &fitted, &solution, &error), 0,
                 "%s", error.text);
    cr_expect_eq(fitted.hardware.prefill.causal_frac, 0.5);
    cr_expect(solution.held[3]);
    /* 0.9 / 0.6 as 0.5 / e_a */
    cr_expect_lt(fabs(fitted.hardware.prefill.compute_frac / (0.6 * 0.5 / 0.9) - 1), 0.02, "%g",
                 fitted.hardware.prefill.compute_frac);
}
