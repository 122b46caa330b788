#include "gemm.h"

#include <string.h>

static int32_t round_up(int32_t n, int32_t unit)
{
    return (n + unit - 1) / unit * unit;
}

int32_t gemm_rows(int32_t n_rows)
{
    if (n_rows <= 2)
        return n_rows;
    if (n_rows <= 4)
        return 4;
    return round_up(n_rows, n_rows <= 256 ? 8 : n_rows <= 1024 ? 64 : 128);
}

static cudaDataType_t type_of(const struct gemm *gemm, bool is_fp32)
{
    return is_fp32 ? CUDA_R_32F : gemm->element == ELEMENT_BF16 ? CUDA_R_16BF : CUDA_R_16F;
}

/* ---- creating and destroying ---- */

/* cuBLAS sees columns where we see rows: y^T = (w^T)^T x^T. */
static int describe(cublasLtMatmulDesc_t desc, cublasLtEpilogue_t epilogue, struct ifl_error *error)
{
    const cublasOperation_t transposed = CUBLAS_OP_T;
    TRY_CUBLAS(cublasLtMatmulDescInit(desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    TRY_CUBLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                              sizeof transposed));
    TRY_CUBLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                              sizeof epilogue));
    return 0;
}

int gemm_create(struct gemm *gemm, enum element element, struct ifl_error *error)
{
    gemm->element = element;
    gemm->choices = calloc(GEMM_CAP_SHAPES, sizeof *gemm->choices);
    if (!gemm->choices)
        return ifl_fail_nomem(error);
    TRY_CUBLAS(cublasLtCreate(&gemm->handle));
    TRY(describe(&gemm->plain, CUBLASLT_EPILOGUE_DEFAULT, error));
    return describe(&gemm->biased, CUBLASLT_EPILOGUE_BIAS, error);
}

void gemm_finish(struct gemm *gemm)
{
    if (gemm->handle)
        cublasLtDestroy(gemm->handle);
    free(gemm->choices);
    *gemm = (struct gemm){0};
}

/* ---- what cuBLASLt chooses ---- */

static bool same_shape(const struct gemm_shape *a, const struct gemm_shape *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->accumulates == b->accumulates &&
           a->has_bias == b->has_bias && a->is_fp32 == b->is_fp32;
}

static uint32_t place_of(const struct gemm_shape *shape)
{
    uint32_t hash = (uint32_t)shape->m;
    hash = hash * 0x9e3779b1u + (uint32_t)shape->n;
    hash = hash * 0x9e3779b1u + (uint32_t)shape->k;
    hash = hash * 0x9e3779b1u + (uint32_t)(shape->accumulates * 4 + shape->has_bias * 2);
    return (hash + shape->is_fp32) * 0x9e3779b1u >> 16;
}

/* The shape's entry in the table, or the empty entry where it belongs. */
static struct gemm_choice *find(struct gemm *gemm, const struct gemm_shape *shape)
{
    uint32_t at = place_of(shape) % GEMM_CAP_SHAPES;
    while (gemm->choices[at].shape.m && !same_shape(&gemm->choices[at].shape, shape))
        at = (at + 1) % GEMM_CAP_SHAPES;
    return &gemm->choices[at];
}

/* By default cuBLASLt may add the parts of a sum that is split over K in 16 bits. */
static int ask(struct gemm *gemm, cublasLtMatmulDesc_t desc, struct gemm_choice *choice,
               struct ifl_error *error)
{
    const size_t workspace_bytes = GEMM_WORKSPACE_BYTES;
    const uint32_t in_fp32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t found;
    int n_found = 0;
    TRY_CUBLAS(cublasLtMatmulPreferenceInit(&preference));
    TRY_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof workspace_bytes));
    TRY_CUBLAS(cublasLtMatmulPreferenceSetAttribute(
        &preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_fp32, sizeof in_fp32));
    TRY_CUBLAS(cublasLtMatmulAlgoGetHeuristic(gemm->handle, desc, &choice->w, &choice->x,
                                              &choice->y, &choice->y, &preference, 1, &found,
                                              &n_found));
    if (n_found == 0)
        return ifl_fail(error, IFL_E_DEVICE, "cuBLAS knows no way to multiply %d x %d by %d x %d",
                        choice->shape.m, choice->shape.k, choice->shape.k, choice->shape.n);
    choice->algorithm = found.algo;
    return 0;
}

static int choose(struct gemm *gemm, cublasLtMatmulDesc_t desc, const struct gemm_shape *shape,
                  int32_t y_stride, struct gemm_choice *choice, struct ifl_error *error)
{
    const uint64_t m = (uint64_t)shape->m, n = (uint64_t)shape->n, k = (uint64_t)shape->k;
    const cudaDataType_t element = type_of(gemm, false), out = type_of(gemm, shape->is_fp32);
    choice->shape = *shape;
    TRY_CUBLAS(cublasLtMatrixLayoutInit(&choice->w, element, k, n, shape->k));
    TRY_CUBLAS(cublasLtMatrixLayoutInit(&choice->x, element, k, m, shape->k));
    TRY_CUBLAS(cublasLtMatrixLayoutInit(&choice->y, out, n, m, y_stride ? y_stride : shape->n));
    return ask(gemm, desc, choice, error);
}

/* Empties the table when it is three quarters full. No model has so many shapes; a full table must
 * not fail a step. */
static int choice_of(struct gemm *gemm, cublasLtMatmulDesc_t desc, const struct gemm_shape *shape,
                     int32_t y_stride, const struct gemm_choice **choice, struct ifl_error *error)
{
    struct gemm_choice *at = find(gemm, shape);
    *choice = at;
    if (at->shape.m)
        return 0;
    struct gemm_choice made;
    TRY(choose(gemm, desc, shape, y_stride, &made, error));
    if (gemm->n_choices == GEMM_CAP_SHAPES / 4 * 3) {
        memset(gemm->choices, 0, GEMM_CAP_SHAPES * sizeof *gemm->choices);
        gemm->n_choices = 0;
        *choice = at = find(gemm, shape);
    }
    *at = made;
    gemm->n_choices++;
    return 0;
}

int gemm_run(struct gemm *gemm, const struct gemm_call *call, cudaStream_t stream,
             struct ifl_error *error)
{
    const float one = 1, beta = call->accumulates;
    const struct gemm_shape shape = {
        gemm_rows(call->n_rows), call->n,           call->k, call->accumulates,
        call->bias != NULL,      call->y_stride > 0};
    const cublasLtMatmulDesc_t desc = call->bias ? &gemm->biased : &gemm->plain;
    const struct gemm_choice *choice;
    if (call->n_rows == 0)
        return 0;
    if (call->bias)
        TRY_CUBLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                  &call->bias, sizeof call->bias));
    TRY(choice_of(gemm, desc, &shape, call->y_stride, &choice, error));
    TRY_CUBLAS(cublasLtMatmul(gemm->handle, desc, &one, call->w, (void *)(uintptr_t)&choice->w,
                              call->x, (void *)(uintptr_t)&choice->x, &beta, call->y,
                              (void *)(uintptr_t)&choice->y, call->y, (void *)(uintptr_t)&choice->y,
                              &choice->algorithm, gemm->workspace, GEMM_WORKSPACE_BYTES, stream));
    return 0;
}
