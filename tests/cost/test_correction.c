#include <math.h>
#include <string.h>

#include "cost/kernels.h"
#include "loading.h"

static int read_text(const char *text, struct corrections *corrections, struct ifl_error *error)
{
    char path[64];
    write_temporary("inflight-corrections", "csv", text, path);
    *error = (struct ifl_error){0};
    const int code = corrections_read(path, corrections, error);
    remove(path);
    return code;
}

static struct corrections corrections_of(const char *text)
{
    struct corrections corrections;
    struct ifl_error error;
    cr_assert_eq(read_text(text, &corrections, &error), 0, "%s", error.text);
    return corrections;
}

static void expect_factor(const struct corrections *of, enum correction_op op, double n, double k,
                          double size, double factor)
{
    const double got = correction_factor(of, op, n, k, size);
    cr_expect_lt(fabs(got - factor), 1e-12, "%s %g x %g, %g: %g, not %g", correction_op_name(op), n,
                 k, size, got, factor);
}

/* From 1.2 at 10 to 1.6 at 1000: 1.4 at 100, half-way in the logarithm; the ends hold beyond. */
Test(correction, lies_between_its_sizes)
{
    const struct corrections of = corrections_of("op,n,k,size,factor\n"
                                                 "gemm,64,32,1000,1.6\n"
                                                 "decode,,,500,0.9\n"
                                                 "gemm,64,32,10,1.2\n"
                                                 "gemm,,,7,0.5\n");
    expect_factor(&of, CORRECT_GEMM, 64, 32, 10, 1.2);
    expect_factor(&of, CORRECT_GEMM, 64, 32, 100, 1.4);
    expect_factor(&of, CORRECT_GEMM, 64, 32, 1000, 1.6);
    expect_factor(&of, CORRECT_GEMM, 64, 32, 1, 1.2);
    expect_factor(&of, CORRECT_GEMM, 64, 32, 1e6, 1.6);
    expect_factor(&of, CORRECT_GEMM, 32, 64, 1e6, 0.5);
    expect_factor(&of, CORRECT_DECODE, 0, 0, 3, 0.9);
    expect_factor(&of, CORRECT_PREFILL, 0, 0, 3, 1);
}

/* With one factor for all rows every product takes that factor longer. */
Test(correction, multiplies_the_form)
{
    struct hardware hw = load_hardware("a100-80gb-sxm");
    const double before_s = gemm_s(&hw, 300, 4096, 4096, 2);
    const struct decode_shape decode = {8, 4000};
    const double decode_before_s =
        decode_attention_s(&hw, &(struct attention_heads){32, 8, 128, 2}, &decode);
    const double mixed_s =
        decode_attention_mixed_s(&hw, &(struct attention_heads){32, 8, 128, 2}, &decode);
    hw.corrections = corrections_of("op,n,k,size,factor\ngemm,,,1,1.25\ndecode,,,1,2\n");
    cr_expect_float_eq(gemm_s(&hw, 300, 4096, 4096, 2) / before_s, 1.25, 1e-12);
    cr_expect_float_eq(decode_attention_s(&hw, &(struct attention_heads){32, 8, 128, 2}, &decode) /
                           decode_before_s,
                       2, 1e-12);
    cr_expect_eq(decode_attention_mixed_s(&hw, &(struct attention_heads){32, 8, 128, 2}, &decode),
                 mixed_s);
}

static void expect_refused(const char *rows, int line, const char *words)
{
    char text[256];
    struct corrections corrections;
    struct ifl_error error;
    snprintf(text, sizeof text, "op,n,k,size,factor\n%s", rows);
    cr_expect_eq(read_text(text, &corrections, &error), IFL_E_INPUT, "accepted: %s", rows);
    cr_expect_eq(error.line, line, "%s", error.text);
    cr_expect_not_null(strstr(error.text, words), "%s", error.text);
}

Test(correction, wrong_rows_are_named)
{
    expect_refused("gem,,,1,1\n", 2, "expected gemm, gemm_fp8, prefill");
    expect_refused("gemm,,,0,1\n", 2, "size is \"0\"");
    expect_refused("gemm,,,1,1\ngemm,,,2,-1\n", 3, "factor is \"-1\"");
    expect_refused("gemm,64,,1,1\ngemm,64,,1,2\n", 0, "two rows for gemm of n 64, k 0 and size 1");
}
