/* K and V in e4m3: the conversion against the specification's formula, and the CPU engine's logits
 * against those with K and V in fp32. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"
#include "float_bits.h"

/* ---- conversion ---- */

/* OCP 8-bit Floating Point Specification 1.0, section 5.3: S EEEE MMM, bias 7; 1111 111 is NaN. */
static double by_formula(int code)
{
    const int exponent = code >> 3 & 15, fraction = code & 7;
    const double sign = code & 0x80 ? -1 : 1;
    if (exponent == 15 && fraction == 7)
        return (double)NAN;
    return exponent ? sign * ldexp(1 + fraction / 8.0, exponent - 7)
                    : sign * ldexp(fraction / 8.0, -6);
}

Test(fp8, widens_every_code_by_the_formula)
{
    for (int code = 0; code < 256; code++) {
        const double expected = by_formula(code), got = (double)float_from_e4m3((uint8_t)code);
        cr_expect(isnan(expected) ? isnan(got) : got == expected, "code %02x: %g, expected %g",
                  (unsigned)code, got, expected);
        cr_expect(isnan(expected) || !signbit(got) == !(code & 0x80), "code %02x: sign", code);
        if (!isnan(expected))
            cr_expect_eq(e4m3_from_float((float)expected), code);
    }
    cr_expect_eq(by_formula(0x7e), 448);
    cr_expect_eq(by_formula(0x01), 0x1p-9);
}

static void expect_code(float number, int code)
{
    cr_expect_eq(e4m3_from_float(number), code, "%a: %02x, expected %02x", (double)number,
                 (unsigned)e4m3_from_float(number), (unsigned)code);
    cr_expect_eq(e4m3_from_float(-number), code | 0x80, "%a: %02x", (double)-number,
                 (unsigned)e4m3_from_float(-number));
}

/* Halfway between two neighbours the even code, beside it the nearer one. */
Test(fp8, rounds_to_nearest_even_and_saturates)
{
    for (int code = 0; code < 0x7e; code++) {
        const float half = (float)((by_formula(code) + by_formula(code + 1)) / 2);
        expect_code(half, code + code % 2);
        expect_code(nextafterf(half, 0), code);
        expect_code(nextafterf(half, INFINITY), code + 1);
    }
    expect_code(464, 0x7e);
    expect_code(480, 0x7e);
    expect_code(3e38f, 0x7e);
    expect_code(INFINITY, 0x7e);
    expect_code(0x1p-149f, 0);
    cr_expect(isnan(float_from_e4m3(e4m3_from_float(NAN))));
    cr_expect(isnan(float_from_e4m3(e4m3_from_float(-NAN))));
}

/* ---- the engine ---- */

/* |logits - those with K and V in fp32| / |the latter|, of all rows of a run. To keep three
 * fraction bits is a relative error of 2.65% in the root mean square: 2^-4 / sqrt 3 of the power of
 * two, which is 0.735 of the number where its logarithm is uniform. A row that attends to itself
 * alone shows all of it, and a single row may be further off, with any engine: the reference says
 * how far. */
static const double BOUND = 3e-2;
/* Between the engine and the reference, both of which store e4m3. */
static const double SAME = 1e-4;

static uint32_t blocks[2][128];

static void open_as(struct driver *driver, const struct fixture_model *f,
                    enum ifl_engine_dtype kv_dtype)
{
    for (uint32_t i = 0; i < 2 * 128; i++)
        blocks[i / 128][i % 128] = i * 211 % 512;
    const struct ifl_engine_options options = {
        .model = f->model, .weights_dir = f->dir, .kv_dtype = kv_dtype};
    cr_assert_eq(driver_open(driver, &ifl_engine_v1, &options), 0, "%s", driver->error.text);
}

/* All rows of the sequence, in chunks. */
static void run_chunks(struct driver *driver, const struct fixture_model *f, int32_t chunk,
                       float *logits)
{
    struct driven seq = {.tokens = f->tokens, .blocks = blocks[0]};
    while (seq.n_computed < f->n_tokens) {
        const int32_t left = f->n_tokens - seq.n_computed, n_new = left < chunk ? left : chunk;
        driver->step.n_rows = &n_new;
        cr_assert_eq(driver_step(driver, &seq, &n_new, 1,
                                 logits + (size_t)seq.n_computed * (size_t)f->model.n_vocab),
                     0, "%s", driver->error.text);
    }
}

static const int32_t chunks[] = {1, 3, 7, 16, 33, 80}; /* by queries, and by tiles */
enum { N_CHUNKS = sizeof chunks / sizeof *chunks };

Test(fp8, leaves_logits_within_three_hundredths)
{
    for (const char *const *name = fixture_names; *name; name++) {
        struct driver wide, narrow;
        struct fixture_model f;
        fixture_model_load(&f, *name);
        const size_t n = (size_t)f.n_tokens * (size_t)f.model.n_vocab;
        float *got = calloc(n, sizeof *got), *expected = calloc(n, sizeof *expected);
        open_as(&wide, &f, IFL_DTYPE_AUTO);
        open_as(&narrow, &f, IFL_DTYPE_FP8);
        for (int i = 0; i < N_CHUNKS; i++) {
            run_chunks(&wide, &f, chunks[i], expected);
            run_chunks(&narrow, &f, chunks[i], got);
            const double error = relative_error(got, expected, n);
            cr_expect(error < BOUND, "%s, chunks of %d: error %.4f", *name, chunks[i], error);
            cr_expect(error > 1e-3, "%s, chunks of %d: as if nothing were rounded", *name,
                      chunks[i]);
        }
        driver_close(&wide);
        driver_close(&narrow);
        free(got);
        free(expected);
        fixture_model_free(&f);
    }
}

/* Of all 253 numbers the nearest; halfway the even code. */
static double nearest(double number)
{
    int best = 0;
    const double magnitude = fabs(number);
    for (int code = 1; code < 0x7f; code++) {
        const double is = fabs(by_formula(code) - magnitude),
                     was = fabs(by_formula(best) - magnitude);
        if (is < was || (is == was && code % 2 == 0))
            best = code;
    }
    return copysign(by_formula(best), number);
}

Test(fp8, gives_the_logits_of_a_reference_that_stores_the_nearest_numbers)
{
    static const char *const plain[] = {"qwen2", "qwen3"};
    for (int m = 0; m < 2; m++) {
        struct driver driver;
        struct fixture_model f;
        struct dense dense;
        fixture_model_load(&f, plain[m]);
        dense_run_stored(&dense, &f, NULL, NULL, nearest);
        const size_t n_vocab = (size_t)f.model.n_vocab, n = (size_t)f.n_tokens * n_vocab;
        float *got = calloc(n, sizeof *got);
        open_as(&driver, &f, IFL_DTYPE_FP8);
        for (int i = 0; i < N_CHUNKS; i++) {
            run_chunks(&driver, &f, chunks[i], got);
            for (size_t at = 0; at < n; at += n_vocab) {
                const double error = relative_error(got + at, dense.logits + at, n_vocab);
                cr_expect(error < SAME, "%s, chunks of %d, row %zu: error %g", plain[m], chunks[i],
                          at / n_vocab, error);
            }
        }
        driver_close(&driver);
        dense_free(&dense);
        free(got);
        fixture_model_free(&f);
    }
}

/* ---- blocks ---- */

/* A prompt's blocks are swapped out and in again elsewhere, and exported and imported to a third
 * place: a quarter of fp32's bytes, and the same logits. */
Test(fp8, moves_blocks_of_a_quarter)
{
    struct ifl_engine_options options = small_options;
    struct driver driver;
    struct driven seq;
    float straight[SMALL_VOCAB], moved[SMALL_VOCAB];
    struct ifl_copy outs[SMALL_HOME], ins[SMALL_HOME];
    const int32_t one = 1, prompt = SMALL_PROMPT;
    cr_assert_eq(small_open(&driver, &ifl_engine_v1, &seq, NULL), 0);
    const size_t wide_bytes = driver.engine->block_bytes(driver.self);
    driver_close(&driver);
    options.kv_dtype = IFL_DTYPE_FP8;
    cr_assert_eq(driver_open(&driver, &ifl_engine_v1, &options), 0, "%s", driver.error.text);
    const size_t n_bytes = driver.engine->block_bytes(driver.self);
    cr_assert_eq(wide_bytes, 4 * n_bytes);
    seq = (struct driven){small_tokens(), 0, small_home};
    cr_assert_eq(driver_step(&driver, &seq, &prompt, 1, NULL), 0);
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, straight), 0);
    for (uint32_t i = 0; i < SMALL_HOME; i++) {
        outs[i] = (struct ifl_copy){small_home[i], 7 - i};
        ins[i] = (struct ifl_copy){7 - i, small_other_home[i]};
    }
    driver.step = (struct ifl_engine_step){.outs = outs, .n_outs = SMALL_HOME};
    cr_assert_eq(driver_step(&driver, NULL, NULL, 0, NULL), 0);
    driver.step = (struct ifl_engine_step){.spoilt = small_home, .n_spoilt = SMALL_HOME};
    cr_assert_eq(driver_step(&driver, NULL, NULL, 0, NULL), 0);
    uint8_t *bytes = malloc(n_bytes);
    cr_assert_eq(driver.engine->read_block(driver.self, IFL_DEVICE_POOL, small_home[0], bytes,
                                           &driver.error),
                 0);
    cr_expect(isnan(float_from_e4m3(bytes[0])) && isnan(float_from_e4m3(bytes[n_bytes - 1])));
    driver.step = (struct ifl_engine_step){.ins = ins, .n_ins = SMALL_HOME};
    seq = (struct driven){small_tokens(), SMALL_PROMPT, small_other_home};
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, moved), 0);
    cr_expect_arr_eq(moved, straight, sizeof straight);
    for (uint32_t i = 0; i < SMALL_HOME; i++) {
        cr_assert_eq(driver.engine->read_block(driver.self, IFL_DEVICE_POOL, small_other_home[i],
                                               bytes, &driver.error),
                     0);
        cr_assert_eq(driver.engine->write_block(driver.self, IFL_DEVICE_POOL, small_home[i], bytes,
                                                &driver.error),
                     0);
    }
    seq = (struct driven){small_tokens(), SMALL_PROMPT, small_home};
    cr_assert_eq(driver_step(&driver, &seq, &one, 1, moved), 0);
    cr_expect_arr_eq(moved, straight, sizeof straight);
    free(bytes);
    driver_close(&driver);
}
