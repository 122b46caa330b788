#include "block_copy.cuh"

extern "C" int block_copy_launch(const struct block_copy_args *args, struct CUstream_st *stream)
{
    constexpr size_t PIECE = BLOCK_COPY_THREADS * BLOCK_COPY_PACKS;
    const size_t n_packs = args->block_bytes / sizeof(uint4);
    if (args->block_bytes % sizeof(uint4) || n_packs == 0)
        return cudaErrorInvalidValue;
    if (args->n_pairs == 0)
        return cudaSuccess;
    return launch_apart(block_copy_kernel,
                        dim3((unsigned)((n_packs + PIECE - 1) / PIECE), args->n_pairs),
                        dim3(BLOCK_COPY_THREADS), 0, stream, static_cast<uint4 *>(args->pool),
                        args->pairs, n_packs);
}
