#include "vote.cuh"

template <class KV, int HEAD_DIM>
static int vote_run(const struct vote_args *args, cudaStream_t stream)
{
    const unsigned n_turns = (args->max_slots + VOTE_SLOTS<HEAD_DIM> - 1) / VOTE_SLOTS<HEAD_DIM>;
    const int failed = launch_apart(vote_logsum_kernel<KV, HEAD_DIM>,
                                    dim3(args->max_rows, args->n_heads, args->n_pieces),
                                    dim3(VOTE_THREADS), 0, stream, *args);
    return failed ? failed
                  : launch_apart(vote_sum_kernel<KV, HEAD_DIM>,
                                 dim3(n_turns, args->kv.n_kv_heads, args->n_pieces),
                                 dim3(VOTE_THREADS), 0, stream, *args);
}

extern "C" int vote_launch(const struct vote_args *args, struct CUstream_st *stream)
{
    if (args->n_pieces == 0)
        return cudaSuccess;
    return for_elements(args->element, args->kv, [&](auto, auto kv) {
        using KV = decltype(kv);
        return args->kv.head_dim == 64    ? vote_run<KV, 64>(args, stream)
               : args->kv.head_dim == 128 ? vote_run<KV, 128>(args, stream)
                                          : (int)cudaErrorInvalidValue;
    });
}
