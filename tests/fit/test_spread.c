/* Draws around a profile: their spread is that of the fit's errors in the profile. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost/kernels.h"
#include "fit/spread.h"

enum { N = 4000, SEED = 7 };

/* A profile of the shipped A100 with errors of its own. */
static void write_profile(const char *fit, char path[64])
{
    static const char shipped[] = "configs/hardware/a100-80gb-sxm.yaml";
    char line[4096];
    snprintf(path, 64, "/tmp/inflight-spread-%ld.yaml", (long)getpid());
    FILE *in = fopen(shipped, "r"), *out = fopen(path, "w");
    cr_assert(in && out);
    while (fgets(line, sizeof line, in) && strcmp(line, "fit:\n") != 0)
        fputs(line, out);
    fputs(fit, out);
    fclose(in);
    cr_assert_eq(fclose(out), 0);
}

struct drawn {
    struct platform nominal, member[N];
};

static struct drawn *draw_with(const char *fit, double host_error_frac, bool other_software)
{
    struct drawn *drawn = malloc(sizeof *drawn);
    struct ifl_error error = {0};
    char path[64];
    cr_assert_not_null(drawn);
    write_profile(fit, path);
    cr_assert_eq(hardware_load(path, &drawn->nominal, &error), 0, "%s", error.text);
    for (int i = 0; i < N; i++) {
        const struct spread spread = {SEED, (uint64_t)i + 1, host_error_frac, other_software};
        drawn->member[i] = drawn->nominal;
        cr_assert_eq(spread_draw(path, &spread, &drawn->member[i], &error), 0, "%s", error.text);
    }
    remove(path);
    return drawn;
}

static struct drawn *draw(const char *fit)
{
    return draw_with(fit, 0, false);
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Residuals of 8% in the median: half of all draws are off by more than exp(0.08), and by the same
 * factor at every shape. */
Test(spread, a_class_is_off_by_one_factor)
{
    struct drawn *drawn = draw("fit:\n  gemm: {held_out_median: 0.08}\n");
    static double off[N];
    const double small = gemm_s(&drawn->nominal.hardware, 1, 4096, 4096, 2);
    const double large = gemm_s(&drawn->nominal.hardware, 4096, 11008, 4096, 2);
    for (int i = 0; i < N; i++) {
        const double factor = gemm_s(&drawn->member[i].hardware, 1, 4096, 4096, 2) / small;
        cr_assert_float_eq(gemm_s(&drawn->member[i].hardware, 4096, 11008, 4096, 2) / large, factor,
                           1e-9 * factor);
        off[i] = fabs(log(factor));
    }
    qsort(off, N, sizeof *off, compare);
    /* The standard error of that median is 0.0787 of sigma / sqrt(N / 100): about 2%. */
    cr_expect_float_eq(off[N / 2], 0.08, 0.08 * 0.06, "half of the draws are within %g",
                       off[N / 2]);
    free(drawn);
}

Test(spread, attention_takes_its_factor_whole)
{
    struct drawn *drawn =
        draw("fit:\n  prefill: {held_out_median: 0.1}\n  decode: {held_out_median: 0.05}\n");
    const struct prefill_shape short_one = {64, 0, 4096, 64, 1},
                               long_one = {512, 1048576, 262144, 2560, 1};
    const struct decode_shape few = {1, 100}, many = {64, 100000};
    const struct hardware *of = &drawn->nominal.hardware;
    for (int i = 0; i < 50; i++) {
        const struct hardware *m = &drawn->member[i].hardware;
        const double prefill =
            prefill_attention_s(m, &(struct attention_heads){32, 8, 128, 2}, &short_one) /
            prefill_attention_s(of, &(struct attention_heads){32, 8, 128, 2}, &short_one);
        const double decode =
            decode_attention_s(m, &(struct attention_heads){32, 8, 128, 2}, &few) /
            decode_attention_s(of, &(struct attention_heads){32, 8, 128, 2}, &few);
        cr_assert_float_neq(prefill, 1, 1e-9);
        cr_assert_float_neq(prefill, decode, 1e-9);
        cr_expect_float_eq(
            prefill_attention_s(m, &(struct attention_heads){32, 8, 128, 2}, &long_one) /
                prefill_attention_s(of, &(struct attention_heads){32, 8, 128, 2}, &long_one),
            prefill, 1e-9);
        cr_expect_float_eq(
            decode_attention_s(m, &(struct attention_heads){32, 8, 128, 2}, &many) /
                decode_attention_s(of, &(struct attention_heads){32, 8, 128, 2}, &many),
            decode, 1e-9);
        cr_expect_float_eq(
            decode_attention_mixed_s(m, &(struct attention_heads){32, 8, 128, 2}, &many) /
                decode_attention_mixed_s(of, &(struct attention_heads){32, 8, 128, 2}, &many),
            decode, 1e-9);
        cr_expect_eq(gemm_s(m, 64, 4096, 4096, 2), gemm_s(of, 64, 4096, 4096, 2));
    }
    free(drawn);
}

Test(spread, parameters_vary_by_their_standard_error)
{
    struct drawn *drawn = draw("fit:\n  gemm: {std_error: {launch_us: 0.25}}\n");
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        const double off =
            drawn->member[i].hardware.gemm.launch_us - drawn->nominal.hardware.gemm.launch_us;
        sum += off;
        squares += off * off;
        cr_assert_eq(drawn->member[i].hardware.gemm.memory_frac,
                     drawn->nominal.hardware.gemm.memory_frac);
    }
    cr_expect_float_eq(sum / N, 0, 4 * 0.25 / sqrt(N));
    cr_expect_float_eq(sqrt(squares / N), 0.25, 4 * 0.25 / sqrt(2.0 * N));
    free(drawn);
}

/* Profiles from before there were deployments have the errors of the host in microseconds. */
Test(spread, errors_of_the_host_in_microseconds_are_the_same)
{
    struct drawn *older = draw("fit:\n  step: {std_error: {host.layer_us: 3}}\n");
    struct drawn *newer = draw("fit:\n  step: {std_error: {host.layer_s: 3e-6}}\n");
    double squares = 0;
    for (int i = 0; i < N; i++) {
        const double layer_s = newer->member[i].deployment.host.layer_s;
        const double off = layer_s - newer->nominal.deployment.host.layer_s;
        squares += off * off;
        cr_assert_eq(older->member[i].deployment.host.layer_s, layer_s);
    }
    cr_expect_float_eq(sqrt(squares / N), 3e-6, 4 * 3e-6 / sqrt(2.0 * N));
    free(older);
    free(newer);
}

/* Of the fitted profile 0; of the members a standard normal: its mean within 4 standard errors, and
 * 95% of it within 1.96. */
Test(spread, memory_is_off_by_standard_deviations)
{
    struct drawn *drawn = draw("fit:\n  gemm: {std_error: {launch_us: 0.25}}\n");
    double sum = 0, n_inside = 0;
    for (int i = 0; i < N; i++) {
        sum += drawn->member[i].deployment.memory.drawn_sds;
        n_inside += fabs(drawn->member[i].deployment.memory.drawn_sds) < 1.96;
    }
    cr_expect_eq(drawn->nominal.deployment.memory.drawn_sds, 0);
    cr_expect_float_eq(sum / N, 0, 4 / sqrt(N));
    cr_expect_float_eq(n_inside / N, 0.95, 4 * sqrt(0.95 * 0.05 / N));
    free(drawn);
}

Test(spread, a_draw_depends_on_seed_and_member_alone)
{
    struct ifl_error error = {0};
    struct platform first, again, other;
    cr_assert_eq(hardware_load("h100-sxm", &first, &error), 0, "%s", error.text);
    again = other = first;
    const struct platform nominal = first;
    cr_assert_eq(spread_draw("h100-sxm", &(struct spread){1, 5, 0, false}, &first, &error), 0, "%s",
                 error.text);
    cr_assert_eq(spread_draw("h100-sxm", &(struct spread){1, 5, 0, false}, &again, &error), 0, "%s",
                 error.text);
    cr_assert_eq(spread_draw("h100-sxm", &(struct spread){2, 5, 0, false}, &other, &error), 0, "%s",
                 error.text);
    cr_expect_eq(first.hardware.gemm.launch_us, again.hardware.gemm.launch_us);
    cr_expect_neq(first.hardware.gemm.launch_us, other.hardware.gemm.launch_us);
    cr_expect_eq(first.hardware.elementwise.launch_us, nominal.hardware.elementwise.launch_us,
                 "it was not fitted");
    cr_expect_eq(first.deployment.host.layer_s, nominal.deployment.host.layer_s);
}

Test(spread, a_profile_without_a_fit_has_no_errors)
{
    struct ifl_error error = {0};
    struct platform hardware;
    char path[64];
    write_profile("", path);
    cr_assert_eq(hardware_load(path, &hardware, &error), 0, "%s", error.text);
    cr_expect_eq(spread_draw(path, &(struct spread){1, 1, 0, false}, &hardware, &error),
                 IFL_E_INPUT);
    cr_expect(strstr(error.text, "no errors of a fit"), "%s", error.text);
    write_profile("fit:\n  gemm: {held_out_median: wide}\n", path);
    cr_expect_eq(spread_draw(path, &(struct spread){1, 1, 0, false}, &hardware, &error),
                 IFL_E_INPUT);
    cr_expect(strstr(error.text, "held_out_median is not an error"), "%s", error.text);
    remove(path);
}

/* A host that is known to 5% in the median: one factor for all its times, and the kernels as
 * fitted. */
Test(spread, the_host_of_a_deployment)
{
    struct drawn *drawn = draw_with("fit:\n  gemm: {fitted_median: 0.08}\n", 0.05, false);
    static double off[N];
    for (int i = 0; i < N; i++) {
        const double factor =
            drawn->member[i].deployment.host.layer_s / drawn->nominal.deployment.host.layer_s;
        cr_assert_eq(drawn->member[i].hardware.gemm.launch_us,
                     drawn->nominal.hardware.gemm.launch_us);
        off[i] = fabs(log(factor));
    }
    qsort(off, N, sizeof *off, compare);
    cr_expect_float_eq(off[N / 2], 0.05, 0.05 * 0.06, "half of the draws are within %g",
                       off[N / 2]);
    free(drawn);
}

/* The median of |log(factor)| over the members, of a time that `of` tells. */
static double median_off(const struct drawn *drawn, double (*of)(const struct hardware *hardware))
{
    static double off[N];
    for (int i = 0; i < N; i++)
        off[i] = fabs(log(of(&drawn->member[i].hardware) / of(&drawn->nominal.hardware)));
    qsort(off, N, sizeof *off, compare);
    return off[N / 2];
}

static double large_product(const struct hardware *hardware)
{
    return gemm_s(hardware, 1 << 20, 1 << 16, 1 << 16, 2);
}

static double product_of_a_row(const struct hardware *hardware)
{
    return gemm_s(hardware, 1, 1 << 16, 1 << 16, 2);
}

static const struct attention_heads heads = {32, 8, 128, 2};

static double prompt_attention(const struct hardware *hardware)
{
    const struct prefill_shape shape = {512, 1048576, 262144, 2560, 1};
    return prefill_attention_s(hardware, &heads, &shape);
}

static double decode_attention(const struct hardware *hardware)
{
    const struct decode_shape shape = {64, 100000};
    return decode_attention_s(hardware, &heads, &shape);
}

static double small_message(const struct hardware *hardware)
{
    return lines_s(&hardware->allreduce_eager[1], 1);
}

static double large_message(const struct hardware *hardware)
{
    return lines_s(&hardware->allreduce[0], 0x1p40);
}

/* Each as far off as tables of different software are; nothing else is drawn, and nothing without
 * it. The standard error of such medians is 2%. */
Test(spread, kernels_of_other_software)
{
    static const char no_errors[] = "fit:\n  gemm: {fitted_median: 0.08}\n";
    static const struct {
        double (*of)(const struct hardware *hardware);
        double off;
    } expected[] = {{large_product, 0.091},    {product_of_a_row, 0.026}, {prompt_attention, 0.209},
                    {decode_attention, 0.157}, {small_message, 0.256},    {large_message, 0.021}};
    struct drawn *drawn = draw_with(no_errors, 0, true), *same = draw(no_errors);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        cr_expect_float_eq(median_off(drawn, expected[i].of), expected[i].off,
                           0.06 * expected[i].off, "%zu: %g", i, median_off(drawn, expected[i].of));
        cr_expect_eq(median_off(same, expected[i].of), 0, "%zu", i);
    }
    cr_expect_eq(drawn->member[0].hardware.elementwise.launch_us,
                 drawn->nominal.hardware.elementwise.launch_us);
    cr_expect_eq(drawn->member[0].deployment.host.layer_s, drawn->nominal.deployment.host.layer_s);
    free(drawn);
    free(same);
}

static double share_below(const double *sorted, double limit)
{
    int n = 0;
    while (n < N && sorted[n] < limit)
        n++;
    return (double)n / N;
}

/* A twentieth lies beyond each end of an interval, half on each side of the value, whatever the
 * host's own error; a number without an interval stays. */
Test(spread, intervals_of_a_deployment)
{
    static double request_s[N], step_s[N], blocks[N];
    struct platform platform, drawn;
    struct ifl_error error = {0};
    char path[64];
    double together = 0;
    write_profile("fit:\n  gemm: {rows: 1}\n", path);
    cr_assert_eq(hardware_load(path, &platform, &error), 0, "%s", error.text);
    struct deployment *of = &platform.deployment;
    of->front_end.request_s = 0.02;
    of->host.step_s = 0.001;
    of->num_blocks = 1000;
    cr_assert_eq(deployment_set_interval(of, "front_end.request_s", 0.01, 0.05), 0);
    cr_assert_eq(deployment_set_interval(of, "host.step_s", 0.0008, 0.0012), 0);
    cr_assert_eq(deployment_set_interval(of, "num_blocks", 900, 1200), 0);
    cr_expect_lt(deployment_set_interval(of, "host.eager", 0, 1), 0);
    cr_expect_lt(deployment_set_interval(of, "host.steps", 0, 1), 0);
    for (int i = 0; i < N; i++) {
        drawn = platform;
        const struct spread spread = {SEED, (uint64_t)i + 1, 0.3};
        cr_assert_eq(spread_draw(path, &spread, &drawn, &error), 0, "%s", error.text);
        request_s[i] = drawn.deployment.front_end.request_s;
        step_s[i] = drawn.deployment.host.step_s;
        blocks[i] = drawn.deployment.num_blocks;
        together += (request_s[i] > 0.02) == (step_s[i] > 0.001);
        cr_assert_geq(request_s[i], 0);
        cr_assert_eq(drawn.deployment.front_end.token_s, of->front_end.token_s);
        cr_assert_neq(drawn.deployment.host.layer_s, of->host.layer_s);
    }
    cr_expect_float_eq(together / N, 0.5, 4 * sqrt(0.25 / N));
    const double tail = 4 * sqrt(0.05 * 0.95 / N), middle = 4 * sqrt(0.25 / N);
    double *const all[] = {request_s, step_s, blocks};
    const double ends[][3] = {{0.01, 0.02, 0.05}, {0.0008, 0.001, 0.0012}, {899.5, 999.5, 1200.5}};
    for (int k = 0; k < 3; k++) {
        qsort(all[k], N, sizeof **all, compare);
        cr_expect_float_eq(share_below(all[k], ends[k][0]), 0.05, tail);
        cr_expect_float_eq(share_below(all[k], ends[k][1]), 0.5, middle);
        cr_expect_float_eq(share_below(all[k], ends[k][2]), 0.95, tail);
    }
    remove(path);
}

/* Two numbers with correlation r are on the same sides of their medians with the probability
 * 1/2 + asin(r) / pi (Sheppard, 1899). A third stays independent, and each keeps its interval. */
Test(spread, correlations_of_a_deployment)
{
    static double step_s[N];
    const double pi = acos(-1), r = -0.8;
    struct platform platform, drawn;
    struct ifl_error error = {0};
    char path[64];
    double same = 0, third = 0;
    write_profile("fit:\n  gemm: {rows: 1}\n", path);
    cr_assert_eq(hardware_load(path, &platform, &error), 0, "%s", error.text);
    struct deployment *of = &platform.deployment;
    of->front_end.request_s = 0.02;
    of->host.step_s = 0.001;
    of->host.seq_s = 2e-5;
    cr_assert_eq(deployment_set_interval(of, "front_end.request_s", 0.01, 0.05), 0);
    cr_assert_eq(deployment_set_interval(of, "host.step_s", 0.0008, 0.0012), 0);
    cr_assert_eq(deployment_set_interval(of, "host.seq_s", 1e-5, 3e-5), 0);
    cr_assert_eq(deployment_set_correlation(of, "host.seq_s", "host.step_s", r), 0);
    cr_expect_lt(deployment_set_correlation(of, "host.seq_s", "host.steps", r), 0);
    for (int i = 0; i < N; i++) {
        drawn = platform;
        const struct spread spread = {SEED, (uint64_t)i + 1, 0};
        cr_assert_eq(spread_draw(path, &spread, &drawn, &error), 0, "%s", error.text);
        step_s[i] = drawn.deployment.host.step_s;
        same += (step_s[i] > 0.001) == (drawn.deployment.host.seq_s > 2e-5);
        third += (step_s[i] > 0.001) == (drawn.deployment.front_end.request_s > 0.02);
    }
    const double p = 0.5 + asin(r) / pi;
    cr_expect_float_eq(same / N, p, 4 * sqrt(p * (1 - p) / N));
    cr_expect_float_eq(third / N, 0.5, 4 * sqrt(0.25 / N));
    qsort(step_s, N, sizeof *step_s, compare);
    cr_expect_float_eq(share_below(step_s, 0.0008), 0.05, 4 * sqrt(0.05 * 0.95 / N));
    remove(path);
}
