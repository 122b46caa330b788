/* Corrections: measured times of one machine over the times of the parametric form.
 *
 * A profile names a CSV with the columns `op,n,k,size,factor`. A cost multiplies the parametric
 * form by the factor and never replaces it, so that sizes between two rows keep the form's shape.
 *
 *     op               of which n, k                     size
 *     gemm, gemm_fp8   the product's; empty: all         rows
 *     prefill          empty                             new tokens of the step
 *     decode           empty                             K/V tokens read, in a step without prefill
 *     elementwise      empty                             bytes of a launch
 *
 * Between two sizes the factor is interpolated over the logarithm of the size. Below the first size
 * and above the last it is the factor of that size. */
#ifndef SIM_COST_CORRECTION_H
#define SIM_COST_CORRECTION_H

#include "inflight/error.h"

enum correction_op {
    CORRECT_GEMM,
    CORRECT_GEMM_FP8,
    CORRECT_PREFILL,
    CORRECT_DECODE,
    CORRECT_ELEMENTWISE,
    CORRECTION_OPS
};

struct correction {
    int op;
    double n, k; /* 0: the row is for all products */
    double size, factor;
};

enum { MAX_CORRECTIONS = 512 };

struct corrections {
    struct correction of[MAX_CORRECTIONS]; /* by op, n, k, size */
    int n_of;
};

int corrections_read(const char *path, struct corrections *corrections, struct ifl_error *error);

/* A comparison for qsort: by op, n, k and size. */
int correction_order(const void *a, const void *b);

const char *correction_op_name(enum correction_op op);

/* Returns the factor of an operation; 1 if there is no row. A product uses the rows with its own n
 * and k if there are any, else those for all products. */
double correction_factor(const struct corrections *corrections, enum correction_op op, double n,
                         double k, double size);

#endif
