#include "gather.cuh"

extern "C" int gather_launch(const struct gather_args *args, struct CUstream_st *stream)
{
    if (args->width % PACK)
        return cudaErrorInvalidValue;
    if (args->n_rows == 0)
        return cudaSuccess;
    return launch_apart(gather_kernel, dim3(args->n_rows), dim3(GATHER_THREADS), 0, stream,
                        static_cast<uint4 *>(args->out), static_cast<const uint4 *>(args->table),
                        args->index, args->n_table, args->width / PACK);
}
