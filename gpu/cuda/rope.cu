#include "rope.cuh"

template <class T, class KV> static int rope_run(const struct rope_args *args, cudaStream_t stream)
{
    const int head_dim = args->kv.head_dim;
    const int heads_per_block = ROPE_THREADS * 16 / head_dim;
    const int n_all = args->n_heads + 2 * args->kv.n_kv_heads;
    return launch(head_dim == 64 ? rope_kernel<T, KV, 64> : rope_kernel<T, KV, 128>,
                  dim3(args->n_tokens, (n_all + heads_per_block - 1) / heads_per_block),
                  dim3(ROPE_THREADS), 0, stream, *args);
}

extern "C" int rope_launch(const struct rope_args *args, struct CUstream_st *stream)
{
    const int head_dim = args->kv.head_dim;
    if ((head_dim != 64 && head_dim != 128) || !args->q_norm != !args->k_norm)
        return cudaErrorInvalidValue;
    if (args->n_tokens == 0)
        return cudaSuccess;
    return for_elements(args->element, args->kv, [&](auto type, auto kv) {
        return rope_run<decltype(type), decltype(kv)>(args, stream);
    });
}
