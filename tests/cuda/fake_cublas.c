/* cuBLASLt's products in double precision, one number after the other. Descriptions must be
 * - of 16-bit inputs and 16-bit or fp32 results;
 * - without sums in 16 bits;
 * - of memory with the alignment that the heuristic assumes by default. */
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "fake_queue.h"
#include "simt/half.h"
#include "simt/simt.h"

/* ---- descriptions, kept in the opaque structs ---- */

struct layout {
    uint64_t n_rows, n_columns;
    int64_t stride;
    cudaDataType type;
};

struct description {
    const void *bias;
    cublasLtEpilogue_t epilogue;
    cublasOperation_t op_a;
};

struct preference {
    size_t workspace_bytes;
    uint32_t reductions;
};

enum { ALIGNED_BYTES = 256 };

_Static_assert(sizeof(struct preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "fits");
_Static_assert(sizeof(struct layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "fits");
_Static_assert(sizeof(struct description) <= sizeof(cublasLtMatmulDescOpaque_t), "fits");

size_t cublasLtGetVersion(void)
{
    return 0;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    static int anything;
    if (fake_fails())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = (cublasLtHandle_t)(void *)&anything;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    (void)handle;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "the fake library failed";
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size,
                                                 cudaDataType type, uint64_t n_rows,
                                                 uint64_t n_columns, int64_t stride)
{
    const struct layout made = {n_rows, n_columns, stride, type};
    if (size != sizeof *layout || stride < (int64_t)n_rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(layout, &made, sizeof made);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale)
{
    memset(desc, 0, sizeof *desc);
    return size == sizeof *desc && compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t n_bytes)
{
    struct description *d = (void *)desc;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        memcpy(&d->op_a, value, n_bytes);
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        memcpy(&d->epilogue, value, n_bytes);
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        memcpy(&d->bias, value, n_bytes);
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t pref, size_t size)
{
    struct preference *p = (void *)pref;
    memset(pref, 0, size);
    p->reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t n_bytes)
{
    struct preference *p = (void *)pref;
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        memcpy(&p->workspace_bytes, value, n_bytes);
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        memcpy(&p->reductions, value, n_bytes);
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

/* An algorithm stores its shape: using it for another shape is an error. */
struct algorithm {
    uint64_t shape[4], number;
};
_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "fits");
int fake_n_algorithms = 1;

/* Its module is loaded when it is first launched. */
static void load_once(const struct algorithm *algorithm)
{
    enum { CAP = 4096 };
    static struct algorithm loaded[CAP];
    static size_t n;
    size_t i = 0;
    while (i < n && memcmp(&loaded[i], algorithm, sizeof *algorithm) != 0)
        i++;
    if (i < n)
        return;
    if (n == CAP)
        abort();
    loaded[n++] = *algorithm;
    fake_loads();
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int n_wanted,
                                              cublasLtMatmulHeuristicResult_t *found, int *n_found)
{
    const struct preference *p = (const void *)preference;
    (void)handle, (void)desc, (void)c;
    const struct layout *y = (const void *)d, *w = (const void *)a, *x = (const void *)b;
    const bool is_sound =
        p->workspace_bytes > 0 && p->reductions == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    fake_loads();
    for (*n_found = 0; is_sound && *n_found < n_wanted && *n_found < fake_n_algorithms;
         ++*n_found) {
        const struct algorithm algorithm = {{y->n_rows, y->n_columns, w->n_rows, (uint64_t)x->type},
                                            (uint64_t)*n_found};
        memset(found + *n_found, 0, sizeof *found);
        memcpy(&found[*n_found].algo, &algorithm, sizeof algorithm);
    }
    if (fake_fails())
        *n_found = 0;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

struct product {
    struct layout w, x, y;
    struct description desc;
    const char *from_w, *from_x;
    char *to;
    float alpha, beta;
    int slowness;
};

static double number_at(const char *memory, cudaDataType type, size_t i)
{
    uint16_t bits;
    float wide;
    if (type == CUDA_R_32F) {
        memcpy(&wide, memory + i * sizeof wide, sizeof wide);
        return (double)wide;
    }
    memcpy(&bits, memory + i * sizeof bits, sizeof bits);
    return (double)(type == CUDA_R_16BF ? half_from_bf16(bits) : half_from_fp16(bits));
}

static void number_put(char *memory, cudaDataType type, size_t i, double number)
{
    const float wide = (float)number;
    if (type == CUDA_R_32F) {
        memcpy(memory + i * sizeof wide, &wide, sizeof wide);
        return;
    }
    const uint16_t bits = type == CUDA_R_16BF ? half_to_bf16(wide) : half_to_fp16(wide);
    memcpy(memory + i * sizeof bits, &bits, sizeof bits);
}

enum { MOST_WEIGHTS = 1 << 18 };
static double w_wide[MOST_WEIGHTS], x_wide[MOST_WEIGHTS];

static void widen(const char *from, const struct layout *layout, size_t column, double *wide)
{
    for (size_t i = 0; i < layout->n_rows; i++)
        wide[i] = number_at(from, layout->type, column * (size_t)layout->stride + i);
}

/* Column `column` of the result: y = w^T x. */
static void multiply_column(const struct product *p, size_t column)
{
    const size_t k = (size_t)p->w.n_rows;
    widen(p->from_x, &p->x, column, x_wide);
    for (size_t row = 0; row < p->y.n_rows; row++) {
        const size_t at = column * (size_t)p->y.stride + row;
        const double *w = w_wide + row * k;
        double sum = 0;
        for (size_t i = 0; i < k; i++)
            sum += w[i] * x_wide[i];
        sum *= (double)p->alpha;
        if (p->beta != 0)
            sum += (double)p->beta * number_at(p->to, p->y.type, at);
        if (p->desc.epilogue == CUBLASLT_EPILOGUE_BIAS)
            sum += number_at(p->desc.bias, p->y.type, row);
        number_put(p->to, p->y.type, at, sum);
    }
}

static int product_run(const void *args)
{
    const struct product *p = args;
    simt_fence();
    const double products = (double)p->y.n_rows * (double)p->y.n_columns * (double)p->w.n_rows;
    fake_takes(2 * products / FAKE_FLOPS_PER_US * p->slowness);
    if (p->w.n_rows * p->w.n_columns > MOST_WEIGHTS)
        abort();
    for (size_t row = 0; row < p->w.n_columns; row++)
        widen(p->from_w, &p->w, row, w_wide + row * p->w.n_rows);
    for (size_t column = 0; column < p->y.n_columns; column++)
        multiply_column(p, column);
    return 0;
}

static bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % ALIGNED_BYTES == 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    struct product p = {.from_w = a,
                        .from_x = b,
                        .to = d,
                        .alpha = *(const float *)alpha,
                        .beta = *(const float *)beta};
    memcpy(&p.w, a_layout, sizeof p.w);
    memcpy(&p.x, b_layout, sizeof p.x);
    memcpy(&p.y, d_layout, sizeof p.y);
    memcpy(&p.desc, desc, sizeof p.desc);
    const uint64_t shape[] = {p.y.n_rows, p.y.n_columns, p.w.n_rows, (uint64_t)p.x.type};
    (void)handle;
    if (!is_aligned(a) || !is_aligned(b) || !is_aligned(d) || !is_aligned(workspace))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (p.desc.op_a != CUBLAS_OP_T || c != d || c_layout != d_layout || !workspace ||
        workspace_bytes == 0 || p.w.n_columns != p.y.n_rows || p.x.n_columns != p.y.n_columns ||
        p.w.n_rows != p.x.n_rows || memcmp(algo, shape, sizeof shape) != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct algorithm algorithm;
    memcpy(&algorithm, algo, sizeof algorithm);
    load_once(&algorithm);
    p.slowness = fake_n_algorithms - (int)algorithm.number;
    return fake_enqueue(stream, product_run, &p, sizeof p) ? CUBLAS_STATUS_ALLOC_FAILED
                                                           : CUBLAS_STATUS_SUCCESS;
}
