#include "attn_prefill.cuh"

template <class T, class KV, int HEAD_DIM, int M>
static int prefill_run(struct attn_prefill_args args, cudaStream_t stream)
{
    if (args.attn.window_tokens == 0)
        args.attn.window_tokens = NO_WINDOW;
    return launch(attn_prefill_kernel<T, KV, HEAD_DIM, M>,
                  dim3(args.n_items * args.attn.kv.n_kv_heads), dim3(ATTN_THREADS),
                  PREFILL_SHARED_BYTES<HEAD_DIM, M>, stream, args);
}

template <class T, class KV>
static int prefill_choose(const struct attn_prefill_args *args, cudaStream_t stream)
{
    const bool is_tall = args->tile_rows == ATTN_TALL_TILE;
    if (args->attn.kv.head_dim == 64)
        return is_tall ? prefill_run<T, KV, 64, 2>(*args, stream)
                       : prefill_run<T, KV, 64, 1>(*args, stream);
    return is_tall ? prefill_run<T, KV, 128, 2>(*args, stream)
                   : prefill_run<T, KV, 128, 1>(*args, stream);
}

extern "C" int attn_prefill_launch(const struct attn_prefill_args *args, struct CUstream_st *stream)
{
    const struct attn_args *attn = &args->attn;
    const int head_dim = attn->kv.head_dim;
    if ((head_dim != 64 && head_dim != 128) || attn->n_heads % attn->kv.n_kv_heads ||
        attn->q_stride % head_dim ||
        (args->tile_rows != ATTN_LOW_TILE && args->tile_rows != ATTN_TALL_TILE))
        return cudaErrorInvalidValue;
    if (args->n_items == 0)
        return cudaSuccess;
    return for_elements(attn->element, attn->kv, [&](auto type, auto kv) {
        return prefill_choose<decltype(type), decltype(kv)>(args, stream);
    });
}

template <class T, class KV, int HEAD_DIM> static int slots_of(struct attn_prefill_slots *slots)
{
    const int failed = resident_blocks(attn_prefill_kernel<T, KV, HEAD_DIM, 1>, ATTN_THREADS,
                                       PREFILL_SHARED_BYTES<HEAD_DIM, 1>, &slots->low);
    return failed ? failed
                  : resident_blocks(attn_prefill_kernel<T, KV, HEAD_DIM, 2>, ATTN_THREADS,
                                    PREFILL_SHARED_BYTES<HEAD_DIM, 2>, &slots->tall);
}

extern "C" int attn_prefill_slots(const struct attn_args *attn, struct attn_prefill_slots *slots)
{
    if (attn->kv.head_dim != 64 && attn->kv.head_dim != 128)
        return cudaErrorInvalidValue;
    return for_elements(attn->element, attn->kv, [&](auto type, auto kv) {
        using T = decltype(type);
        using KV = decltype(kv);
        return attn->kv.head_dim == 64 ? slots_of<T, KV, 64>(slots) : slots_of<T, KV, 128>(slots);
    });
}
