#include "keep_slots.cuh"

extern "C" int keep_slots_launch(const struct keep_slots_args *args, struct CUstream_st *stream)
{
    const size_t n_packs = args->row_bytes / sizeof(uint4);
    if (args->row_bytes % sizeof(uint4) || n_packs == 0 || n_packs > KEEP_THREADS)
        return cudaErrorInvalidValue;
    if (args->n_tables == 0 || args->n_layers == 0)
        return cudaSuccess;
    return launch_apart(keep_slots_kernel,
                        dim3(args->n_tables, 2 * args->n_kv_heads, args->n_layers),
                        dim3(KEEP_THREADS), 0, stream, *args, (int)n_packs);
}
