/* Matrix products by cuBLASLt: y[m][n] = x[m][k] w[n][k]^T, sums in fp32.
 *
 * cuBLASLt is asked once for the algorithms of a shape. Its first answer is taken, or the fastest
 * of several while gemm->times is set: for few rows its estimates are often wrong. To have few
 * shapes, the number of rows is rounded up to whole tiles of the tensor cores, which compute the
 * padding in any case. Padding rows hold no result; all arrays have room for them. */
#ifndef GPU_CUDA_GEMM_H
#define GPU_CUDA_GEMM_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "kernels.h"
#include "try.h"

enum {
    GEMM_WORKSPACE_BYTES = 32 << 20,
    GEMM_CAP_SHAPES = 2048, /* a power of two */
    GEMM_TIMED = 8,         /* algorithms of a shape that are timed */
    GEMM_TIMED_ROWS = 256   /* more rows are bound by arithmetic: the first answer is good */
};

struct gemm_shape {
    int32_t m, n, k;
    bool accumulates; /* the product is added to y */
    bool has_bias, is_fp32;
};

struct gemm_choice {
    struct gemm_shape shape; /* m 0: empty */
    cublasLtMatrixLayoutOpaque_t w, x, y;
    cublasLtMatmulAlgo_t algorithm;
};

struct gemm {
    cublasLtHandle_t handle;
    cublasLtMatmulDescOpaque_t plain, biased;
    enum element element;
    void *workspace;             /* [GEMM_WORKSPACE_BYTES] on the device */
    struct gemm_choice *choices; /* [GEMM_CAP_SHAPES], open addressing */
    int32_t n_choices;
    bool times;               /* shapes not seen before */
    cudaEvent_t began, ended; /* begin and end of a timed run */
    atomic_bool *is_lost;     /* see wait.h */
};

struct gemm_call {
    const void *x, *w, *bias; /* bias [n] or NULL */
    void *y;                  /* rows of n elements, or of y_stride fp32 numbers */
    int32_t n_rows, n, k;
    bool accumulates;
    int32_t y_stride; /* 0: elements */
    /* While algorithms are timed: further weights of the shape, w_bytes apart, are read in turn, as
     * a step does: one alone might stay in the cache. */
    size_t w_bytes;
    int32_t n_w;
};

/* 1, 2, 4, multiples of 8 up to 256, of 64 up to 1024, of 128 beyond. */
int32_t gemm_rows(int32_t n_rows);

/* The workspace is the caller's, set before the first run. Zeroed memory may be finished. */
int gemm_create(struct gemm *gemm, enum element element, struct ifl_error *error);
void gemm_finish(struct gemm *gemm);
int gemm_run(struct gemm *gemm, const struct gemm_call *call, cudaStream_t stream,
             struct ifl_error *error);

#endif
