#include "argmax.cuh"

extern "C" int argmax_launch(const struct argmax_args *args, struct CUstream_st *stream)
{
    if (args->stride % 4 || args->n_vocab <= 0 || args->n_vocab > args->stride)
        return cudaErrorInvalidValue;
    if (args->n_rows == 0)
        return cudaSuccess;
    return launch(argmax_kernel, dim3(argmax_parts(args->n_vocab), args->n_rows),
                  dim3(ARGMAX_THREADS), 0, stream, *args);
}
