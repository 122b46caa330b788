#include "gemm.h"

#include <string.h>

#include "inflight/minmax.h"
#include "wait.h"

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
    TRY_CUDA(cudaEventCreateWithFlags(&gemm->began, cudaEventDefault));
    TRY_CUDA(cudaEventCreateWithFlags(&gemm->ended, cudaEventDefault));
    TRY_CUBLAS(cublasLtCreate(&gemm->handle));
    TRY(describe(&gemm->plain, CUBLASLT_EPILOGUE_DEFAULT, error));
    return describe(&gemm->biased, CUBLASLT_EPILOGUE_BIAS, error);
}

void gemm_finish(struct gemm *gemm)
{
    if (gemm->handle)
        cublasLtDestroy(gemm->handle);
    if (gemm->began)
        cudaEventDestroy(gemm->began);
    if (gemm->ended)
        cudaEventDestroy(gemm->ended);
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

/* ---- one of several ---- */

static int multiply(const struct gemm *gemm, const struct gemm_call *call, const void *w,
                    struct gemm_choice *choice, const cublasLtMatmulAlgo_t *algorithm,
                    cudaStream_t stream)
{
    const float one = 1, beta = call->accumulates;
    union { /* the library takes descriptions it does not change as not const */
        const cublasLtMatmulDescOpaque_t *given;
        cublasLtMatmulDesc_t taken;
    } desc = {call->bias ? &gemm->biased : &gemm->plain};
    return cublasLtMatmul(gemm->handle, desc.taken, &one, w, &choice->w, call->x, &choice->x, &beta,
                          call->y, &choice->y, call->y, &choice->y, algorithm, gemm->workspace,
                          GEMM_WORKSPACE_BYTES, stream);
}

enum { TIMED_RUNS = 3 };

/* The time of TIMED_RUNS products; *ms stays as it is where the algorithm refuses. */
static int time_one(struct gemm *gemm, const struct gemm_call *call, struct gemm_choice *choice,
                    const cublasLtMatmulAlgo_t *algorithm, int32_t first_w, cudaStream_t stream,
                    float *ms, struct ifl_error *error)
{
    const int32_t n_w = ifl_max(call->n_w, 1);
    if (multiply(gemm, call, call->w, choice, algorithm, stream)) /* loads its module, too */
        return 0;
    TRY_CUDA(cudaEventRecord(gemm->began, stream));
    for (int32_t i = 0; i < TIMED_RUNS; i++) {
        const char *w = (const char *)call->w + (size_t)((first_w + i) % n_w) * call->w_bytes;
        TRY_CUBLAS(multiply(gemm, call, w, choice, algorithm, stream));
    }
    TRY_CUDA(cudaEventRecord(gemm->ended, stream));
    TRY(wait_event(gemm->ended, gemm->is_lost, error));
    TRY_CUDA(cudaEventElapsedTime(ms, gemm->began, gemm->ended));
    return 0;
}

static int choose_fastest(struct gemm *gemm, const struct gemm_call *call,
                          struct gemm_choice *choice, const cublasLtMatmulHeuristicResult_t *found,
                          int n_found, cudaStream_t stream, struct ifl_error *error)
{
    float least_ms = -1;
    for (int i = 0; i < n_found; i++) {
        float ms = -1;
        if (found[i].state)
            continue;
        TRY(time_one(gemm, call, choice, &found[i].algo, i * TIMED_RUNS, stream, &ms, error));
        if (ms >= 0 && (least_ms < 0 || ms < least_ms)) {
            least_ms = ms;
            choice->algorithm = found[i].algo;
        }
    }
    return 0;
}

/* By default cuBLASLt may add the parts of a sum that is split over K in 16 bits. */
static int ask(struct gemm *gemm, cublasLtMatmulDesc_t desc, const struct gemm_call *call,
               struct gemm_choice *choice, cudaStream_t stream, struct ifl_error *error)
{
    const size_t workspace_bytes = GEMM_WORKSPACE_BYTES;
    const uint32_t in_fp32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const bool times = gemm->times && choice->shape.m <= GEMM_TIMED_ROWS;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t found[GEMM_TIMED];
    int n_found = 0;
    TRY_CUBLAS(cublasLtMatmulPreferenceInit(&preference));
    TRY_CUBLAS(cublasLtMatmulPreferenceSetAttribute(&preference,
                                                    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &workspace_bytes, sizeof workspace_bytes));
    TRY_CUBLAS(cublasLtMatmulPreferenceSetAttribute(
        &preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_fp32, sizeof in_fp32));
    TRY_CUBLAS(cublasLtMatmulAlgoGetHeuristic(gemm->handle, desc, &choice->w, &choice->x,
                                              &choice->y, &choice->y, &preference,
                                              times ? GEMM_TIMED : 1, found, &n_found));
    if (n_found == 0)
        return ifl_fail(error, IFL_E_DEVICE, "cuBLAS knows no way to multiply %d x %d by %d x %d",
                        choice->shape.m, choice->shape.k, choice->shape.k, choice->shape.n);
    choice->algorithm = found[0].algo;
    return n_found > 1 ? choose_fastest(gemm, call, choice, found, n_found, stream, error) : 0;
}

static int choose(struct gemm *gemm, cublasLtMatmulDesc_t desc, const struct gemm_shape *shape,
                  const struct gemm_call *call, struct gemm_choice *choice, cudaStream_t stream,
                  struct ifl_error *error)
{
    const uint64_t m = (uint64_t)shape->m, n = (uint64_t)shape->n, k = (uint64_t)shape->k;
    const cudaDataType_t element = type_of(gemm, false), out = type_of(gemm, shape->is_fp32);
    choice->shape = *shape;
    TRY_CUBLAS(cublasLtMatrixLayoutInit(&choice->w, element, k, n, shape->k));
    TRY_CUBLAS(cublasLtMatrixLayoutInit(&choice->x, element, k, m, shape->k));
    TRY_CUBLAS(cublasLtMatrixLayoutInit(&choice->y, out, n, m,
                                        call->y_stride ? call->y_stride : shape->n));
    return ask(gemm, desc, call, choice, stream, error);
}

/* Empties the table when it is three quarters full. No model has so many shapes; a full table must
 * not fail a step. */
static int choice_of(struct gemm *gemm, cublasLtMatmulDesc_t desc, const struct gemm_shape *shape,
                     const struct gemm_call *call, cudaStream_t stream, struct gemm_choice **choice,
                     struct ifl_error *error)
{
    struct gemm_choice *at = find(gemm, shape);
    *choice = at;
    if (at->shape.m)
        return 0;
    struct gemm_choice made;
    TRY(choose(gemm, desc, shape, call, &made, stream, error));
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
    const struct gemm_shape shape = {
        gemm_rows(call->n_rows), call->n,           call->k, call->accumulates,
        call->bias != NULL,      call->y_stride > 0};
    const cublasLtMatmulDesc_t desc = call->bias ? &gemm->biased : &gemm->plain;
    struct gemm_choice *choice;
    if (call->n_rows == 0)
        return 0;
    if (call->bias)
        TRY_CUBLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                  &call->bias, sizeof call->bias));
    TRY(choice_of(gemm, desc, &shape, call, stream, &choice, error));
    TRY_CUBLAS(multiply(gemm, call, call->w, choice, &choice->algorithm, stream));
    return 0;
}
