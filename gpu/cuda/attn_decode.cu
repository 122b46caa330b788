#include "attn_decode.cuh"

static int head_tiles(const struct attn_args *attn)
{
    const int group = attn->n_heads / attn->kv.n_kv_heads;
    return attn->kv.n_kv_heads * ((group + FRAGMENT_ROWS - 1) / FRAGMENT_ROWS);
}

static bool is_supported(const struct attn_args *attn)
{
    return (attn->kv.head_dim == 64 || attn->kv.head_dim == 128) &&
           attn->n_heads % attn->kv.n_kv_heads == 0 && attn->q_stride % 2 == 0;
}

/* run(kernel, bytes of shared memory) for the elements and the head dim. */
template <class F> static int for_kernel(const struct attn_args *attn, F run)
{
    return for_elements(attn->element, attn->kv, [&](auto type, auto kv) {
        using T = decltype(type);
        using KV = decltype(kv);
        if (attn->kv.head_dim == 64)
            return run(attn_decode_kernel<T, KV, 64>, ATTN_WARPS * DECODE_WARP_BYTES<KV, 64>);
        return run(attn_decode_kernel<T, KV, 128>, ATTN_WARPS * DECODE_WARP_BYTES<KV, 128>);
    });
}

extern "C" int attn_decode_launch(const struct attn_decode_args *args, struct CUstream_st *stream)
{
    if (!is_supported(&args->attn))
        return cudaErrorInvalidValue;
    const int n_head_tiles = head_tiles(&args->attn);
    return for_kernel(&args->attn, [&](auto *kernel, size_t shared_bytes) {
        return launch(kernel, dim3(args->n_shares * n_head_tiles), dim3(ATTN_THREADS), shared_bytes,
                      stream, *args, n_head_tiles);
    });
}

extern "C" int attn_decode_shares(const struct attn_args *attn, int32_t *n_shares)
{
    if (!is_supported(attn))
        return cudaErrorInvalidValue;
    return for_kernel(attn, [&](auto *kernel, size_t shared_bytes) {
        int n_blocks;
        const int failed = resident_blocks(kernel, ATTN_THREADS, shared_bytes, &n_blocks);
        if (!failed)
            *n_shares = n_blocks > head_tiles(attn) ? n_blocks / head_tiles(attn) : 1;
        return failed;
    });
}
