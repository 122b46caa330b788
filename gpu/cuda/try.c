#include "try.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <string.h>

static int fail(struct ifl_error *error, int code, const char *call, const char *reason)
{
    return ifl_fail(error, code, "%.*s: %s", (int)strcspn(call, "("), call, reason);
}

int cuda_fail(struct ifl_error *error, const char *call, int cuda_error)
{
    const int code = cuda_error == cudaErrorMemoryAllocation ? IFL_E_NOMEM : IFL_E_DEVICE;
    return fail(error, code, call, cudaGetErrorString((cudaError_t)cuda_error));
}

int cublas_fail(struct ifl_error *error, const char *call, int cublas_status)
{
    return fail(error, IFL_E_DEVICE, call, cublasLtGetStatusString((cublasStatus_t)cublas_status));
}
