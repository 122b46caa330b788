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
