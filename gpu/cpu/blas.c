#include "blas.h"

#include <openblas_config.h>
#include <stdio.h>

#include <cblas.h>
#include <f77blas.h>

/* The Fortran prototypes lack const; nothing of a, b, w, x is written. */
static float *unconst(const float *numbers)
{
    const union {
        const float *in;
        float *out;
    } same = {numbers};
    return same.out;
}

void blas_multiply_transposed(int32_t m, int32_t n, int32_t k, float scale, struct matrix a,
                              struct matrix b, float keep, float *c, int32_t ldc)
{
    char transposed = 'T', plain = 'N';
    sgemm_(&transposed, &plain, &n, &m, &k, &scale, unconst(b.at), &b.ld, unconst(a.at), &a.ld,
           &keep, c, &ldc);
}

void blas_multiply(int32_t m, int32_t n, int32_t k, struct matrix a, struct matrix b, float keep,
                   float *c, int32_t ldc)
{
    char plain = 'N';
    float scale = 1;
    sgemm_(&plain, &plain, &n, &m, &k, &scale, unconst(b.at), &b.ld, unconst(a.at), &a.ld, &keep, c,
           &ldc);
}

void blas_multiply_vector(int32_t n, int32_t k, const float *w, const float *x, float keep,
                          float *y)
{
    char transposed = 'T';
    float scale = 1;
    blasint step = 1;
    sgemv_(&transposed, &k, &n, &scale, unconst(w), &k, unconst(x), &step, &keep, y, &step);
}

void blas_set_threads(int32_t n)
{
    openblas_set_num_threads_(&n);
}

void blas_describe(char *text, size_t n_bytes)
{
    snprintf(text, n_bytes, "%s, kernels for %s", openblas_get_config(), openblas_get_corename());
}
