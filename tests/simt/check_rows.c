#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device.h"
#include "refs.h"
#include "simt/half.h"

enum { N_ROUNDS = 3 };

/* Every bit pattern survives the way to float and back; rounding goes to the nearer neighbour and,
 * half-way, to the even one (numpy's float16 and the definition of bfloat16 say the same). */
void check_half(void)
{
    int n_lost = 0;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const uint16_t half = (uint16_t)bits;
        const bool nan16 = (bits & 0x7fff) > 0x7c00, nan_b16 = (bits & 0x7fff) > 0x7f80;
        n_lost += !nan16 && half_to_fp16(half_from_fp16(half)) != half;
        n_lost += !nan_b16 && half_to_bf16(half_from_bf16(half)) != half;
        n_lost += nan16 && !isnan(half_from_fp16(half));
    }
    verdict(n_lost == 0, "16-bit floats survive widening, %d lost", n_lost);
    verdict(half_to_fp16(65504.0f) == 0x7bff && half_to_fp16(65519.0f) == 0x7bff &&
                half_to_fp16(65520.0f) == 0x7c00 && half_to_fp16(2049.0f) == 0x6800 &&
                half_to_fp16(2051.0f) == 0x6802 && half_to_fp16(0x1p-24f) == 1 &&
                half_to_fp16(0x1p-25f) == 0 && half_to_fp16(-0x1.8p-24f) == 0x8002,
            "fp16 rounds to nearest even");
    verdict(half_to_bf16(1.0f) == 0x3f80 && half_to_bf16(0x1.01p0f) == 0x3f80 &&
                half_to_bf16(0x1.03p0f) == 0x3f82 && half_to_bf16(INFINITY) == 0x7f80,
            "bf16 rounds to nearest even");
}

static void gather_round(enum element element)
{
    const int32_t n_rows = draw_between(1, 9), n_table = draw_between(2, 20);
    const int32_t width = 8 * draw_between(1, 300);
    struct tensor table = tensor_random(element, (size_t)n_table * width, 1.0);
    struct tensor out = tensor_poison(element, (size_t)n_rows * width);
    int32_t index[9];
    for (int32_t r = 0; r < n_rows; r++)
        index[r] = draw_between(-1, n_table); /* both ends lie outside */
    tensor_send(&table);
    tensor_send(&out);
    const struct gather_args args = {
        element, out.device, table.device, device_new(sizeof index, index), n_rows, n_table, width};
    device_check(gather_launch(&args, NULL), "gather");
    tensor_fetch(&out);
    double *expected = doubles_new(out.n);
    gather_ref(expected, table.value, index, n_rows, n_table, width);
    verdict(error_of(out.value, expected, out.n) == 0.0, "gather %s, %d rows of %d",
            element_name(element), n_rows, width);
    free(expected);
    tensor_free(&table);
    tensor_free(&out);
    device_free_all();
}

void check_gather(void)
{
    draw_seed(1);
    for (int i = 0; i < N_ROUNDS; i++) {
        gather_round(ELEMENT_BF16);
        gather_round(ELEMENT_FP16);
    }
}

static void norm_round(enum element element, int32_t width, bool has_delta)
{
    const int32_t n_rows = draw_between(1, 5);
    const size_t n = (size_t)n_rows * width;
    struct tensor hidden = tensor_random(element, n, 2.0), delta = tensor_random(element, n, 1.0);
    struct tensor weight = tensor_random(element, (size_t)width, 1.0);
    struct tensor out = tensor_poison(element, n);
    tensor_send(&hidden);
    tensor_send(&delta);
    tensor_send(&weight);
    tensor_send(&out);
    double *expected = doubles_new(n), *expected_hidden = doubles_new(n);
    memcpy(expected_hidden, hidden.value, n * sizeof *expected_hidden);
    norm_ref(expected, expected_hidden, has_delta ? delta.value : NULL, weight.value, 1e-5, n_rows,
             width);
    const struct norm_args args = {
        element,       out.device, hidden.device, has_delta ? delta.device : NULL,
        weight.device, 1e-5f,      n_rows,        width};
    device_check(norm_launch(&args, NULL), "norm");
    tensor_fetch(&out);
    tensor_fetch(&hidden);
    const double error = error_of(out.value, expected, n);
    const double hidden_error = error_of(hidden.value, expected_hidden, n);
    verdict(error < error_bound(element) && hidden_error < error_bound(element),
            "norm %s, %d rows of %d%s: error %.1e, of the sum %.1e", element_name(element), n_rows,
            width, has_delta ? " with residual" : "", error, hidden_error);
    free(expected);
    free(expected_hidden);
    tensor_free(&hidden);
    tensor_free(&delta);
    tensor_free(&weight);
    tensor_free(&out);
    device_free_all();
}

void check_norm(void)
{
    static const int32_t widths[] = {8, 256, 1000, 1024, 4096, 5120, 8200, 16384};
    draw_seed(2);
    for (size_t i = 0; i < (check_is_small ? 4 : sizeof widths / sizeof *widths); i++) {
        norm_round(ELEMENT_BF16, widths[i], true);
        norm_round(ELEMENT_FP16, widths[i], i % 2);
    }
    const struct norm_args too_wide = {.n_rows = 1, .width = 16392},
                           odd = {.n_rows = 1, .width = 12};
    verdict(norm_launch(&too_wide, NULL) && norm_launch(&odd, NULL),
            "norm refuses widths that it cannot hold");
}

static void swiglu_round(enum element element)
{
    const int32_t n_rows = draw_between(1, 4), width = 8 * draw_between(1, 400);
    struct tensor gate_up = tensor_random(element, (size_t)n_rows * width * 2, 2.0);
    struct tensor out = tensor_poison(element, (size_t)n_rows * width);
    tensor_set(&gate_up, 0, -200.0); /* exp(-x) overflows here */
    tensor_send(&gate_up);
    tensor_send(&out);
    const struct swiglu_args args = {element, out.device, gate_up.device, n_rows, width};
    device_check(swiglu_launch(&args, NULL), "swiglu");
    tensor_fetch(&out);
    double *expected = doubles_new(out.n);
    swiglu_ref(expected, gate_up.value, n_rows, width);
    const double error = error_of(out.value, expected, out.n);
    verdict(error < error_bound(element), "swiglu %s, %d rows of %d: error %.1e",
            element_name(element), n_rows, width, error);
    free(expected);
    tensor_free(&gate_up);
    tensor_free(&out);
    device_free_all();
}

void check_swiglu(void)
{
    draw_seed(3);
    for (int i = 0; i < N_ROUNDS; i++) {
        swiglu_round(ELEMENT_BF16);
        swiglu_round(ELEMENT_FP16);
    }
}

enum { ARGMAX_ROWS = 6 };

/* Few distinct values, so that ties are frequent; a row of NaN, one with a NaN, one of -infinity,
 * one with the largest value last. Infinity beyond the vocabulary must not win. */
static void logits_draw(float *logits, int32_t n_vocab, int32_t stride)
{
    float *all_nan = logits, *nan_first = all_nan + stride, *all_low = nan_first + stride;
    float *last_wins = all_low + stride;
    for (size_t i = 0; i < (size_t)ARGMAX_ROWS * stride; i++)
        logits[i] = i % stride >= (size_t)n_vocab
                        ? INFINITY
                        : (float)draw_between(-n_vocab / 3, n_vocab / 7) * 0.5f;
    for (int32_t i = 0; i < n_vocab; i++) {
        all_nan[i] = NAN;
        all_low[i] = -INFINITY;
    }
    nan_first[0] = NAN;
    last_wins[n_vocab - 1] = INFINITY;
}

static void argmax_round(int32_t n_vocab)
{
    const int32_t stride = (n_vocab + 3) / 4 * 4 + 4 * draw_between(0, 3);
    const size_t n_bytes = (size_t)ARGMAX_ROWS * stride * sizeof(float);
    float *logits = malloc(n_bytes);
    if (!logits)
        abort();
    logits_draw(logits, n_vocab, stride);
    int32_t token[ARGMAX_ROWS];
    const uint32_t none[ARGMAX_ROWS] = {0};
    const size_t n_parts = (size_t)argmax_parts(n_vocab);
    const struct argmax_args args = {
        device_new(sizeof token, NULL),
        device_new(n_bytes, logits),
        ARGMAX_ROWS,
        n_vocab,
        stride,
        device_new(ARGMAX_ROWS * n_parts * sizeof(uint64_t), NULL),
        device_new(sizeof none, none),
    };
    int n_wrong = 0;
    device_written((void *)(uintptr_t)args.logits, n_bytes);
    for (int again = 0; again < 2; again++) { /* the counts are as they were */
        device_check(argmax_launch(&args, NULL), "argmax");
        device_read(token, args.token, sizeof token);
        for (int r = 0; r < ARGMAX_ROWS; r++)
            n_wrong += token[r] != argmax_ref(logits + (size_t)r * stride, n_vocab);
    }
    size_t n_blocks;
    const bool is_told = device_products(&n_blocks);
    verdict(n_wrong == 0 && (!is_told || n_blocks >= (size_t)ARGMAX_ROWS * n_vocab / 5000),
            "argmax of %d logits by %zu blocks, %d rows wrong", n_vocab, n_blocks, n_wrong);
    free(logits);
    device_free_all();
}

void check_argmax(void)
{
    static const int32_t sizes[] = {1, 130, 1003, 9001, 3, 4096, 32000, 50257};
    draw_seed(4);
    for (size_t i = 0; i < (check_is_small ? 4 : sizeof sizes / sizeof *sizes); i++)
        argmax_round(sizes[i]);
}
