#include "attn_merge.cuh"

template <class T> static int merge_run(const struct attn_decode_args *args, cudaStream_t stream)
{
    return launch(args->attn.kv.head_dim == 64 ? attn_merge_kernel<T, 64>
                                               : attn_merge_kernel<T, 128>,
                  dim3(args->n_shares, args->attn.n_heads), dim3(ATTN_THREADS), 0, stream, *args);
}

extern "C" int attn_merge_launch(const struct attn_decode_args *args, struct CUstream_st *stream)
{
    if (args->attn.kv.head_dim != 64 && args->attn.kv.head_dim != 128)
        return cudaErrorInvalidValue;
    return for_element(args->attn.element,
                       [&](auto type) { return merge_run<decltype(type)>(args, stream); });
}

template <class T>
static int tile_merge_run(const struct attn_prefill_args *args, cudaStream_t stream)
{
    return launch(args->attn.kv.head_dim == 64 ? attn_tile_merge_kernel<T, 64>
                                               : attn_tile_merge_kernel<T, 128>,
                  dim3(args->n_merges * args->attn.kv.n_kv_heads, ATTN_LOW_TILE / FRAGMENT_ROWS),
                  dim3(ATTN_THREADS), 0, stream, *args);
}

extern "C" int attn_prefill_merge_launch(const struct attn_prefill_args *args,
                                         struct CUstream_st *stream)
{
    if (args->attn.kv.head_dim != 64 && args->attn.kv.head_dim != 128)
        return cudaErrorInvalidValue;
    if (args->n_merges == 0)
        return cudaSuccess;
    return for_element(args->attn.element,
                       [&](auto type) { return tile_merge_run<decltype(type)>(args, stream); });
}
