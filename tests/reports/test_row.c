#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "inflight/random.h"
#include "inflight/time.h"
#include "tables/row.h"

static const char *seconds(int64_t ns)
{
    static char text[64];
    *row_seconds(text, ns) = '\0';
    return text;
}

Test(row, seconds_at_the_edges)
{
    cr_expect_str_eq(seconds(0), "0.000000000,");
    cr_expect_str_eq(seconds(1), "0.000000001,");
    cr_expect_str_eq(seconds(-1), "-0.000000001,");
    cr_expect_str_eq(seconds(999999999), "0.999999999,");
    cr_expect_str_eq(seconds(1000000000), "1.000000000,");
    cr_expect_str_eq(seconds(-1500000000), "-1.500000000,");
    cr_expect_str_eq(seconds(INT64_MAX - 1), "9223372036.854775806,");
    cr_expect_str_eq(seconds(INT64_MIN), "-9223372036.854775808,");
    cr_expect_str_eq(seconds(IFL_NEVER), ",", "undefined fields are empty");
}

Test(row, integers_at_the_edges)
{
    char text[64];
    *row_int(text, INT64_MIN) = '\0';
    cr_expect_str_eq(text, "-9223372036854775808,");
    *row_int(text, INT64_MAX) = '\0';
    cr_expect_str_eq(text, "9223372036854775807,");
    *row_uint(text, UINT64_MAX) = '\0';
    cr_expect_str_eq(text, "18446744073709551615,");
    *row_int(text, 0) = '\0';
    cr_expect_str_eq(text, "0,");
}

Test(row, agrees_with_printf_on_every_length)
{
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t draw = ifl_draw(1, IFL_DRAW_PROMPT, i, 0) >> i % 64;
        char ours[64], theirs[64];
        *row_uint(ours, draw) = '\0';
        snprintf(theirs, sizeof theirs, "%" PRIu64 ",", draw);
        cr_assert_str_eq(ours, theirs);
        const int64_t ns = (int64_t)(draw >> 1);
        snprintf(theirs, sizeof theirs, "%" PRId64 ".%09" PRId64 ",", ns / 1000000000,
                 ns % 1000000000);
        cr_assert_str_eq(seconds(ns), theirs);
    }
}

/* Every group of four digits, in front of and behind other digits. */
Test(row, all_groups_of_four_digits)
{
    char ours[64], theirs[64];
    for (uint64_t four = 0; four < 10000; four++)
        for (uint64_t scale = 1; scale <= 1000000000000; scale *= 10000) {
            const uint64_t value = four * scale + 1234 % scale;
            *row_uint(ours, value) = '\0';
            snprintf(theirs, sizeof theirs, "%" PRIu64 ",", value);
            cr_assert_str_eq(ours, theirs);
        }
}

Test(row, reals_have_nine_digits_and_nan_is_empty)
{
    char text[64];
    *row_real(text, 1.0 / 3) = '\0';
    cr_expect_str_eq(text, "0.333333333,");
    *row_real(text, -1.23456789e-300) = '\0';
    cr_expect_str_eq(text, "-1.23456789e-300,");
    *row_real(text, NAN) = '\0';
    cr_expect_str_eq(text, ",");
}

static void expect_text(const char *text, const char *cell)
{
    char buffer[64];
    char *end = row_text(buffer, text);
    cr_expect_leq((size_t)(end - buffer), row_text_bytes(text));
    *row_end(end) = '\0';
    cr_expect_str_eq(buffer, cell);
}

Test(row, text_is_quoted_where_rfc_4180_says_so)
{
    expect_text("vllm-v0", "vllm-v0\n");
    expect_text("", "\n");
    expect_text("a,b", "\"a,b\"\n");
    expect_text("say \"hi\"", "\"say \"\"hi\"\"\"\n");
    expect_text("two\nlines", "\"two\nlines\"\n");
    expect_text("\"\"\"\"", "\"\"\"\"\"\"\"\"\"\"\n");
}
