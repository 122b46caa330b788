#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "simt/half.h"

bool check_is_small;

static uint64_t dice;

void draw_seed(uint64_t seed)
{
    dice = seed;
}

/* Steele, Lea and Flood 2014: SplitMix64. */
static uint64_t draw(void)
{
    uint64_t z = dice += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int32_t draw_between(int32_t low, int32_t high)
{
    return low + (int32_t)(draw() % (uint64_t)(high - low + 1));
}

void draw_permutation(int32_t order[], int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t j = draw_between(0, i);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Twelve uniforms minus six: unit variance, tails to six. */
static double draw_normal(void)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += (double)(draw() >> 11) * 0x1p-53;
    return sum;
}

/* ---- tensors ---- */

static void *must_have(void *memory)
{
    if (!memory) {
        fprintf(stderr, "no memory for a test\n");
        exit(1);
    }
    return memory;
}

double *doubles_new(size_t n)
{
    return must_have(calloc(n ? n : 1, sizeof(double)));
}

size_t element_bytes(enum element element)
{
    return element == ELEMENT_E4M3 ? 1 : 2;
}

/* OCP 8-bit Floating Point Specification 1.0, section 5.3. */
double e4m3_number(int code)
{
    const int exponent = code >> 3 & 15, fraction = code & 7;
    const double sign = code & 0x80 ? -1.0 : 1.0;
    if (exponent == 15 && fraction == 7)
        return (double)NAN;
    return sign * (exponent ? ldexp(1.0 + fraction / 8.0, exponent - 7) : fraction * 0x1p-9);
}

static int e4m3_code(double number)
{
    static double numbers[0x7f];
    int best = 0;
    for (int code = 1; numbers[1] == 0.0 && code < 0x7f; code++)
        numbers[0x7f - code] = e4m3_number(0x7f - code);
    for (int code = 1; code < 0x7f; code++) {
        const double is = fabs(numbers[code] - fabs(number));
        const double was = fabs(numbers[best] - fabs(number));
        if (is < was || (is == was && code % 2 == 0))
            best = code;
    }
    return best | (signbit(number) ? 0x80 : 0);
}

double e4m3_nearest(double number)
{
    if (isinf(number))
        return number > 0 ? 448.0 : -448.0;
    return isnan(number) ? number : e4m3_number(e4m3_code(number));
}

static double widened(enum element element, const void *bits, size_t i)
{
    if (element == ELEMENT_E4M3)
        return e4m3_number(((const uint8_t *)bits)[i]);
    const uint16_t half = ((const uint16_t *)bits)[i];
    return (double)(element == ELEMENT_BF16 ? half_from_bf16(half) : half_from_fp16(half));
}

void tensor_set(struct tensor *tensor, size_t i, double value)
{
    const float narrow = (float)value;
    if (tensor->element == ELEMENT_E4M3)
        ((uint8_t *)tensor->bits)[i] = (uint8_t)e4m3_code(value);
    else
        ((uint16_t *)tensor->bits)[i] =
            tensor->element == ELEMENT_BF16 ? half_to_bf16(narrow) : half_to_fp16(narrow);
    tensor->value[i] = widened(tensor->element, tensor->bits, i);
}

struct tensor tensor_poison(enum element element, size_t n)
{
    struct tensor tensor = {.element = element, .n = n, .value = doubles_new(n)};
    tensor.bits = must_have(malloc((n ? n : 1) * element_bytes(element)));
    memset(tensor.bits, 0xff, n * element_bytes(element));
    for (size_t i = 0; i < n; i++)
        tensor.value[i] = (double)NAN;
    return tensor;
}

struct tensor tensor_random(enum element element, size_t n, double spread)
{
    struct tensor tensor = tensor_poison(element, n);
    for (size_t i = 0; i < n; i++)
        tensor_set(&tensor, i, spread * draw_normal());
    return tensor;
}

void tensor_send_behind(struct tensor *tensor, size_t n_before)
{
    const size_t n_bytes = tensor->n * element_bytes(tensor->element);
    tensor->device = device_new_behind(n_before, n_bytes, tensor->bits);
    device_written(tensor->device, n_bytes);
}

void tensor_send(struct tensor *tensor)
{
    tensor_send_behind(tensor, 0);
}

void tensor_fetch_as(struct tensor *tensor, enum element element)
{
    device_read(tensor->bits, tensor->device, tensor->n * element_bytes(element));
    for (size_t i = 0; i < tensor->n; i++)
        tensor->value[i] = widened(element, tensor->bits, i);
}

void tensor_fetch(struct tensor *tensor)
{
    tensor_fetch_as(tensor, tensor->element);
}

void tensor_free(struct tensor *tensor)
{
    free(tensor->value);
    free(tensor->bits);
}

bool check_far(void)
{
    return !check_is_small && device_has(FAR_ELEMENTS * sizeof(uint16_t));
}

/* ---- verdicts ---- */

static int n_verdicts, n_failed;

double error_of(const double got[], const double expected[], size_t n)
{
    double wrong = 0.0, norm = 0.0;
    for (size_t i = 0; i < n; i++) {
        wrong += (got[i] - expected[i]) * (got[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    return wrong == 0.0 ? 0.0 : sqrt(wrong / norm);
}

double error_bound(enum element element)
{
    return element == ELEMENT_BF16 ? 1e-2 : 2e-3;
}

void verdict(bool ok, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    printf("%s %d - ", ok ? "ok" : "not ok", ++n_verdicts);
    vprintf(format, values);
    printf("\n");
    va_end(values);
    n_failed += !ok;
}

const char *element_name(enum element element)
{
    return element == ELEMENT_BF16 ? "bf16" : element == ELEMENT_FP16 ? "fp16" : "e4m3";
}

/* ---- the program ---- */

static const struct group {
    const char *name;
    void (*check)(void);
} groups[] = {
    {"half", check_half},
    {"gather", check_gather},
    {"norm", check_norm},
    {"swiglu", check_swiglu},
    {"argmax", check_argmax},
    {"rope", check_rope},
    {"block_copy", check_block_copy},
    {"attn_plan", check_attn_plan},
    {"attn_prefill", check_attn_prefill},
    {"attn_decode", check_attn_decode},
    {"e4m3_write", check_e4m3_write},
    {"e4m3_prefill", check_e4m3_prefill},
    {"e4m3_decode", check_e4m3_decode},
    {"vote", check_vote},
    {"keep_slots", check_keep_slots},
};

static bool is_asked_for(const char *name, int n_names, char *names[])
{
    bool asked = n_names == 0;
    for (int i = 0; i < n_names; i++)
        asked = asked || !strcmp(names[i], name);
    return asked;
}

/* Usage: kernels [--small] [--leave-out N] [group...]. With --leave-out, the N-th synchronising
 * call does nothing, and its line is printed. */
int main(int argc, char *argv[])
{
    int at = 1;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* verdicts before a crash must be visible */
    if (at < argc && !strcmp(argv[at], "--small")) {
        check_is_small = true;
        at++;
    }
    if (at + 1 < argc && !strcmp(argv[at], "--leave-out")) {
        if (!device_leave_out(atoi(argv[at + 1])))
            return 2;
        at += 2;
    }
    if (!device_open())
        return 77;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (is_asked_for(groups[i].name, argc - at, argv + at))
            groups[i].check();
    printf("1..%d\n", n_verdicts);
    device_report();
    return n_failed > 0 || n_verdicts == 0;
}
