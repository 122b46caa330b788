/* Every call of CUDA, cuBLAS or a kernel's launcher goes through TRY_CUDA or TRY_CUBLAS. The first
 * call that fails ends the function; `error` gets the call's name and the library's message. */
#ifndef GPU_CUDA_TRY_H
#define GPU_CUDA_TRY_H

#include "inflight/error.h"

/* `call` as written in the source; its arguments are left out of the message. */
int cuda_fail(struct ifl_error *error, const char *call, int cuda_error);
int cublas_fail(struct ifl_error *error, const char *call, int cublas_status);

#define TRY_CUDA(call)                                                                             \
    do {                                                                                           \
        const int failed_ = (int)(call);                                                           \
        if (failed_)                                                                               \
            return cuda_fail(error, #call, failed_);                                               \
    } while (0)

#define TRY_CUBLAS(call)                                                                           \
    do {                                                                                           \
        const int failed_ = (int)(call);                                                           \
        if (failed_)                                                                               \
            return cublas_fail(error, #call, failed_);                                             \
    } while (0)

/* For functions of the engine, which fill `error` themselves. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const int failed_ = (call);                                                                \
        if (failed_)                                                                               \
            return failed_;                                                                        \
    } while (0)

#endif
