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
    const cudaError_t failed = (cudaError_t)cuda_error;
    if (failed == cudaErrorECCUncorrectable || failed == cudaErrorHardwareStackError ||
        failed == cudaErrorDeviceUninitialized || failed == cudaErrorUnknown)
        return ifl_fail(error, IFL_E_DEVICE,
                        "%.*s: %s: the device is lost; it needs a reset (nvidia-smi) before a run",
                        (int)strcspn(call, "("), call, cudaGetErrorString(failed));
    return fail(error, failed == cudaErrorMemoryAllocation ? IFL_E_NOMEM : IFL_E_DEVICE, call,
                cudaGetErrorString(failed));
}

int cublas_fail(struct ifl_error *error, const char *call, int cublas_status)
{
    const int code = cublas_status == CUBLAS_STATUS_ALLOC_FAILED ? IFL_E_NOMEM : IFL_E_DEVICE;
    return fail(error, code, call, cublasLtGetStatusString((cublasStatus_t)cublas_status));
}
