/* Matrix products of row-major arrays with a row stride of ld floats.
 *
 * They call BLAS by its Fortran names. The simulator loads GSL's own cblas, and the first
 * cblas_sgemm in a process serves every library in it. Fortran sees each array transposed, so the
 * operands change places. */
#ifndef GPU_CPU_BLAS_H
#define GPU_CPU_BLAS_H

#include <stddef.h>
#include <stdint.h>

struct matrix {
    const float *at;
    int32_t ld;
};

/* c[m][n] = scale a[m][k] b[n][k]^T + keep c. */
void blas_multiply_transposed(int32_t m, int32_t n, int32_t k, float scale, struct matrix a,
                              struct matrix b, float keep, float *c, int32_t ldc);
/* c[m][n] = a[m][k] b[k][n] + keep c. */
void blas_multiply(int32_t m, int32_t n, int32_t k, struct matrix a, struct matrix b, float keep,
                   float *c, int32_t ldc);
/* y[n] = w[n][k] x[k] + keep y. */
void blas_multiply_vector(int32_t n, int32_t k, const float *w, const float *x, float keep,
                          float *y);
void blas_set_threads(int32_t n);
/* Version, options and the kind of processor it chose its kernels for. */
void blas_describe(char *text, size_t n_bytes);

#endif
