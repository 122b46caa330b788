/* Measured times over parametric ones: what a table of one machine knows better than the form.
 *
 * A profile names a CSV with the columns `op,n,k,size,factor`; a cost multiplies the parametric
 * form by the factor and never replaces it, so that sizes between the table's keep the form's
 * shape.
 *
 *     op               of which n, k                     size
 *     gemm, gemm_fp8   of the product, or empty: of all  rows
 *     prefill          empty                             new tokens of the step
 *     decode           empty                             K/V tokens read, in a step without prefill
 *     elementwise      empty                             bytes of a launch
 *
 * Between two sizes the factor is interpolated over the logarithm of the size; below the first and
 * above the last it is theirs. */
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
    double n, k; /* 0: of all products */
    double size, factor;
};

enum { MAX_CORRECTIONS = 512 };

struct corrections {
    struct correction of[MAX_CORRECTIONS]; /* by op, n, k, size */
    int n_of;
};

int corrections_read(const char *path, struct corrections *corrections, struct ifl_error *error);

/* As qsort wants it: by op, n, k and size. */
int correction_order(const void *a, const void *b);

const char *correction_op_name(enum correction_op op);

/* 1 where there is no row. A product takes the rows of its own n and k if there are any. */
double correction_factor(const struct corrections *corrections, enum correction_op op, double n,
                         double k, double size);

#endif
