/* Safetensors: exact numbers, and every kind of damage named in one line. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "float_bits.h"
#include "safetensors.h"

#define PAIR "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"

static char path[64];
static struct safetensors file;
static struct ifl_error error;

static void write_file(const char *header, uint64_t n_header, const void *data, size_t n_data)
{
    unsigned char length[8];
    snprintf(path, sizeof path, "/tmp/inflight-XXXXXX");
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(n_header >> 8 * i);
    cr_assert_eq(write(fd, length, 8), 8);
    cr_assert_eq(write(fd, header, strlen(header)), (ssize_t)strlen(header));
    cr_assert_eq(write(fd, data, n_data), (ssize_t)n_data);
    close(fd);
}

static void expect_refused(const char *header, size_t n_data, const char *reason)
{
    static const char zeros[64];
    write_file(header, strlen(header), zeros, n_data);
    cr_expect_lt(safetensors_open(path, &file, &error), 0, "%s", header);
    cr_expect_str_eq(error.file, path);
    cr_expect_not_null(strstr(error.text, reason), "%s: %s", header, error.text);
    cr_expect_null(strchr(error.text, '\n'));
    safetensors_close(&file);
    unlink(path);
}

Test(safetensors, numbers_are_exact)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[12,18]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[18,18]}}";
    const float pair[2] = {1.5f, -0.1f};
    /* 1.0 and -3.140625 in bf16; 1.0, 2^-24 (the least subnormal) and -65504 in fp16 */
    const uint16_t halves[5] = {0x3f80, 0xc049, 0x3c00, 0x0001, 0xfbff};
    char data[18];
    float numbers[3];
    memcpy(data, pair, 8);
    memcpy(data + 8, halves, 10);
    write_file(header, strlen(header), data, sizeof data);
    cr_assert_eq(safetensors_open(path, &file, &error), 0, "%s", error.text);
    const struct tensor *a = safetensors_find(&file, "a");
    cr_assert_eq(safetensors_read(&file, a, numbers, 2, &error), 0);
    cr_expect_eq(memcmp(numbers, pair, 8), 0);
    cr_expect_eq(a->n_dims, 2);
    cr_assert_eq(safetensors_read(&file, safetensors_find(&file, "b"), numbers, 2, &error), 0);
    cr_expect(numbers[0] == 1.0f && numbers[1] == -3.140625f);
    cr_assert_eq(safetensors_read(&file, safetensors_find(&file, "h"), numbers, 3, &error), 0);
    cr_expect(numbers[0] == 1.0f && numbers[1] == 0x1p-24f && numbers[2] == -65504.0f);
    cr_expect_null(safetensors_find(&file, "__metadata__"));
    safetensors_close(&file);
    unlink(path);
}

/* Of 1, 2, 4 and 8 bytes a number. */
Test(safetensors, integers_are_an_error)
{
    static const char header[] =
        "{\"i8\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"i16\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[2,6]},"
        "\"i32\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[6,14]},"
        "\"i64\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[14,30]}}";
    const char *const names[] = {"i8", "i16", "i32", "i64"};
    const char data[30] = "";
    float numbers[2];
    write_file(header, strlen(header), data, sizeof data);
    cr_assert_eq(safetensors_open(path, &file, &error), 0, "%s", error.text);
    for (size_t i = 0; i < 4; i++) {
        const struct tensor *tensor = safetensors_find(&file, names[i]);
        cr_expect_eq(safetensors_read(&file, tensor, numbers, 2, &error), IFL_E_INPUT);
        cr_expect_not_null(strstr(error.text, "its type is no float"), "%s", error.text);
        cr_expect_not_null(strstr(error.text, names[i]), "%s", error.text);
    }
    safetensors_close(&file);
    unlink(path);
}

Test(safetensors, every_fp16_widens_as_ldexp_says)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const int exponent = bits >> 10 & 31;
        const double fraction = bits & 1023, sign = bits & 0x8000 ? -1 : 1;
        const float is = float_from_fp16((uint16_t)bits);
        if (exponent == 31)
            cr_assert(bits & 1023 ? isnan(is) : isinf(is));
        else
            cr_assert(is == (float)(sign * ldexp(exponent ? 1024 + fraction : fraction,
                                                 exponent ? exponent - 25 : -24)));
    }
}

Test(safetensors, damage_is_named)
{
    expect_refused("{", 0, "no JSON object");
    expect_refused("[1]", 0, "no JSON object");
    expect_refused("{\"a\":1}", 0, "dtype is missing");
    expect_refused("{\"a\":{\"dtype\":\"F33\"}}", 0, "dtype is F33");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":3}}", 0, "shape");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1]}}", 0, "dimension 1");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296]}}", 0,
                   "dimension 2");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1]}}", 0, "shape");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "data_offsets");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
                   "data_offsets");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
                   "expected 8 for its shape");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
                   "starts at byte 4, expected 0");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
                   8, "starts at byte 0, expected 8");
    expect_refused("{\"a\":{},\"a\":{}}", 0, "no JSON object");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}", 0, "no JSON object");
    expect_refused("{\"a\\u0000b\":{}}", 0, "no JSON object");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8,
                   "dimension 1");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,1e19]}}", 8,
                   "data_offsets");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8,
                   "data_offsets");
    expect_refused(PAIR, 7, "ends at byte 8 of 7");
    expect_refused(PAIR, 9, "9 bytes of data, expected 8");
}

/* Far deeper than the parser's limit: it must use neither the stack nor the time. */
Test(safetensors, depth_is_bounded, .timeout = 10)
{
    enum { DEPTH = 1 << 20 };
    char *header = calloc(1, 5 * DEPTH + 1);
    memset(header, '[', DEPTH);
    expect_refused(header, 0, "no JSON object");
    for (size_t i = 0; i < DEPTH; i++)
        memcpy(header + 5 * i, "{\"a\":", 5);
    expect_refused(header, 0, "no JSON object");
    free(header);
}

Test(safetensors, lengths_are_not_believed)
{
    const uint64_t lengths[] = {UINT64_MAX, UINT64_C(1) << 63, 100000001, sizeof PAIR + 8};
    for (size_t i = 0; i < 4; i++) {
        write_file(PAIR, lengths[i], "12345678", 8);
        cr_expect_eq(safetensors_open(path, &file, &error), IFL_E_INPUT);
        cr_expect_not_null(strstr(error.text, "a header of"), "%s", error.text);
        safetensors_close(&file);
        unlink(path);
    }
    cr_expect_lt(safetensors_open("/nonexistent", &file, &error), 0);
    safetensors_close(&file);
    cr_expect_lt(safetensors_open("/tmp", &file, &error), 0);
    safetensors_close(&file);
}

/* Without the bound a header of a million tensors took 7 s and 1.1 GB. */
Test(safetensors, headers_are_bounded, .timeout = 10)
{
    enum { N_BYTES = SAFETENSORS_MAX_HEADER_BYTES };
    char *header = malloc(N_BYTES + 2);
    memset(header, ' ', N_BYTES + 1);
    memcpy(header, "{}", 2);
    header[N_BYTES + 1] = '\0';
    expect_refused(header, 0, "a header of 8388609 bytes, expected at most 8388608");
    header[N_BYTES] = '\0';
    write_file(header, N_BYTES, "", 0);
    cr_expect_eq(safetensors_open(path, &file, &error), 0, "%s", error.text);
    safetensors_close(&file);
    unlink(path);
    free(header);
}

/* A pipe without a writer. */
Test(safetensors, a_pipe_is_not_waited_for, .timeout = 10)
{
    write_file("", 0, "", 0);
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(safetensors_open(path, &file, &error), IFL_E_INPUT);
    cr_expect_not_null(strstr(error.text, "not a regular file"), "%s", error.text);
    safetensors_close(&file);
    unlink(path);
}

/* The file shrinks between its opening and its reading. */
Test(safetensors, a_short_read_is_an_error)
{
    float numbers[2];
    write_file(PAIR, strlen(PAIR), "12345678", 8);
    cr_assert_eq(safetensors_open(path, &file, &error), 0, "%s", error.text);
    cr_assert_eq(truncate(path, (off_t)(8 + strlen(PAIR) + 3)), 0);
    cr_expect_eq(safetensors_read(&file, &file.of[0], numbers, 2, &error), IFL_E_IO);
    cr_expect_not_null(strstr(error.text, "the file ends"), "%s", error.text);
    safetensors_close(&file);
    unlink(path);
}
