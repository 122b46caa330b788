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

static double widened(enum element element, uint16_t bits)
{
    return (double)(element == ELEMENT_BF16 ? half_from_bf16(bits) : half_from_fp16(bits));
}

void tensor_set(struct tensor *tensor, size_t i, double value)
{
    const float narrow = (float)value;
    tensor->bits[i] = tensor->element == ELEMENT_BF16 ? half_to_bf16(narrow) : half_to_fp16(narrow);
    tensor->value[i] = widened(tensor->element, tensor->bits[i]);
}

struct tensor tensor_poison(enum element element, size_t n)
{
    struct tensor tensor = {.element = element, .n = n, .value = doubles_new(n)};
    tensor.bits = must_have(malloc((n ? n : 1) * sizeof *tensor.bits));
    memset(tensor.bits, 0xff, n * sizeof *tensor.bits);
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
    tensor->device = device_new_behind(n_before, tensor->n * sizeof *tensor->bits, tensor->bits);
    device_written(tensor->device, tensor->n * sizeof *tensor->bits);
}

void tensor_send(struct tensor *tensor)
{
    tensor_send_behind(tensor, 0);
}

void tensor_fetch(struct tensor *tensor)
{
    device_read(tensor->bits, tensor->device, tensor->n * sizeof *tensor->bits);
    for (size_t i = 0; i < tensor->n; i++)
        tensor->value[i] = widened(tensor->element, tensor->bits[i]);
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
    return element == ELEMENT_BF16 ? "bf16" : "fp16";
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
