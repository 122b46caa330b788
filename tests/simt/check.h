/* The common steps of kernel tests: draw inputs, launch over poisoned outputs, compare norms. */
#ifndef TESTS_SIMT_CHECK_H
#define TESTS_SIMT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/kernels.h"

/* ---- random shapes and numbers, the same on every machine ---- */

void draw_seed(uint64_t seed);
/* In [low, high]. */
int32_t draw_between(int32_t low, int32_t high);
/* A random order of 0 .. n - 1. */
void draw_permutation(int32_t order[], int32_t n);

/* ---- arrays in three shapes: doubles, bits, device memory ---- */

struct tensor {
    enum element element;
    size_t n;
    double *value; /* the values of the bits; the reference's input */
    void *bits;    /* of element_bytes each */
    void *device;  /* copied from bits by tensor_send */
};

size_t element_bytes(enum element element);
/* Normally distributed values of this spread, rounded to the element, not yet on the device. */
struct tensor tensor_random(enum element element, size_t n, double spread);
/* NaN throughout. */
struct tensor tensor_poison(enum element element, size_t n);
void tensor_set(struct tensor *tensor, size_t i, double value);
/* As the result of the kernel before. */
void tensor_send(struct tensor *tensor);
/* Behind n_before bytes of other memory. */
void tensor_send_behind(struct tensor *tensor, size_t n_before);
/* Reads the device's bits back into value, as those of the tensor's element or of another. */
void tensor_fetch(struct tensor *tensor);
void tensor_fetch_as(struct tensor *tensor, enum element element);
void tensor_free(struct tensor *tensor);

double *doubles_new(size_t n);

/* ---- verdicts, in TAP ---- */

/* The e4m3 nearest to a number, by search among all of them: halfway the even code, beyond the last
 * one that one. */
double e4m3_nearest(double number);
/* The number of a code by the specification's formula. */
double e4m3_number(int code);

/* The norm of the difference over the norm of the expected values: NaN if an element was not
 * written, 0 if both norms are zero. */
double error_of(const double got[], const double expected[], size_t n);
/* fp16 keeps three bits more than bf16. */
double error_bound(enum element element);
void verdict(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *element_name(enum element element);

/* Elements in front of a pool's blocks in a test of addresses: element indices behind them do not
 * fit into 32 bits. A device without so much memory leaves these tests out (check_far). */
static const size_t FAR_ELEMENTS = (size_t)1 << 33;
bool check_far(void);

/* Small shapes only: for the race detector. */
extern bool check_is_small;

/* ---- the groups of tests ---- */

void check_gather(void);
void check_norm(void);
void check_swiglu(void);
void check_argmax(void);
void check_rope(void);
void check_block_copy(void);
void check_attn_prefill(void);
void check_attn_decode(void);
void check_attn_plan(void);
void check_half(void);
void check_e4m3_write(void);
void check_e4m3_prefill(void);
void check_e4m3_decode(void);
void check_vote(void);
void check_keep_slots(void);

#endif
