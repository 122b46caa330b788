/* Votes: attention probabilities of some rows, summed over the rows and over the query heads of a
 * KV head. Attention itself does not write its probabilities down, so they are computed once more:
 *
 *   logsum [row][n_heads]   log2 of the sum of a row's exponentials
 *   votes [kv_head][slot]   sum over rows and heads of 2^(score - logsum)
 *
 * A slot's K is spread over as many lanes as it has packs of eight. Both kernels read K once a
 * block; products are of fp32. Each vote is written by one group of lanes, in one order: the same
 * step gives the same bits. SnapKV needs windows of some tens of rows; H2O's rows are a whole
 * prompt, for which this is slow: tensor cores idle. */
#ifndef GPU_CUDA_VOTE_CUH
#define GPU_CUDA_VOTE_CUH

#include "element.cuh"
#include "reduce.cuh"

enum { VOTE_THREADS = 128, VOTE_WARPS = VOTE_THREADS / WARP_LANES };

template <int HEAD_DIM> constexpr int VOTE_LANES = HEAD_DIM / PACK; /* of a slot */
template <int HEAD_DIM> constexpr int VOTE_SLOTS = VOTE_THREADS / VOTE_LANES<HEAD_DIM>; /* a turn */

/* What a lane has of a slot's K. */
template <class KV, int HEAD_DIM>
__device__ __forceinline__ void vote_load_k(const struct vote_args &args,
                                            const struct vote_piece &piece, int kv_head, int slot,
                                            float k[PACK])
{
    const int block_tokens = args.kv.block_tokens;
    const int block = args.block_id[piece.block + slot / block_tokens];
    const size_t row =
        (size_t)block * args.kv.block_rows + (size_t)kv_head * block_tokens + slot % block_tokens;
    const KV *at = static_cast<const KV *>(args.kv.rows) + row * HEAD_DIM +
                   threadIdx.x % VOTE_LANES<HEAD_DIM> * PACK;
    if constexpr (sizeof(KV) == sizeof(uint8_t)) {
        const uint2 eight = *reinterpret_cast<const uint2 *>(at);
        widen<fp16>({e4m3_widen<0, 1>(eight.x), e4m3_widen<2, 3>(eight.x),
                     e4m3_widen<0, 1>(eight.y), e4m3_widen<2, 3>(eight.y)},
                    k);
    } else {
        load_pack(at, k);
    }
}

/* The score in log2 units, returned to all lanes of the slot. */
template <class KV, int HEAD_DIM>
__device__ __forceinline__ float vote_score(const struct vote_args &args, int row, int head,
                                            const float k[PACK])
{
    using Q = typename KV::product;
    const Q *at = static_cast<const Q *>(args.q) + (size_t)row * args.q_stride + head * HEAD_DIM +
                  threadIdx.x % VOTE_LANES<HEAD_DIM> * PACK;
    constexpr float LOG2_E = 1.4426950408889634f;
    float q[PACK], sum = 0.0f;
    load_pack(at, q);
    for (int i = 0; i < PACK; i++)
        sum += q[i] * k[i];
    return lanes_sum<VOTE_LANES<HEAD_DIM>>(sum) * args.scale * LOG2_E;
}

/* Grid: (rows of the longest piece, query heads, pieces). */
template <class KV, int HEAD_DIM>
static __global__ void __launch_bounds__(VOTE_THREADS) vote_logsum_kernel(struct vote_args args)
{
    __shared__ float most_of[VOTE_SLOTS<HEAD_DIM>], sum_of[VOTE_SLOTS<HEAD_DIM>];
    previous_kernel_wait();
    const struct vote_piece piece = args.pieces[blockIdx.z];
    const int row = blockIdx.x, head = blockIdx.y;
    const int kv_head = head / (args.n_heads / args.kv.n_kv_heads);
    const int own = threadIdx.x / VOTE_LANES<HEAD_DIM>;
    if (row >= piece.n_rows)
        return;
    const int n_seen = piece.n_seen + row;
    float most = -INFINITY, sum = 0.0f;
    for (int first = 0; first < n_seen; first += VOTE_SLOTS<HEAD_DIM>) {
        float k[PACK] = {};
        if (first + own < n_seen)
            vote_load_k<KV, HEAD_DIM>(args, piece, kv_head, first + own, k);
        const float score = vote_score<KV, HEAD_DIM>(args, piece.row + row, head, k);
        if (first + own < n_seen) {
            const float higher = fmaxf(most, score);
            sum = sum * exp2_fast(most - higher) + exp2_fast(score - higher);
            most = higher;
        }
    }
    if (threadIdx.x % VOTE_LANES<HEAD_DIM> == 0) {
        most_of[own] = most;
        sum_of[own] = sum;
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < VOTE_SLOTS<HEAD_DIM> && i < n_seen; i++) {
        const float higher = fmaxf(most, most_of[i]);
        sum = sum * exp2_fast(most - higher) + sum_of[i] * exp2_fast(most_of[i] - higher);
        most = higher;
    }
    args.logsum[(size_t)(piece.row + row) * args.n_heads + head] = most + log2f(sum);
}

/* Grid: (turns of slots of the longest piece, KV heads, pieces). */
template <class KV, int HEAD_DIM>
static __global__ void __launch_bounds__(VOTE_THREADS) vote_sum_kernel(struct vote_args args)
{
    previous_kernel_wait();
    const struct vote_piece piece = args.pieces[blockIdx.z];
    const int group = args.n_heads / args.kv.n_kv_heads, kv_head = blockIdx.y;
    const int slot = blockIdx.x * VOTE_SLOTS<HEAD_DIM> + threadIdx.x / VOTE_LANES<HEAD_DIM>;
    const int n_seen = piece.n_seen + piece.n_rows - 1; /* by the last row */
    float k[PACK] = {}, sum = 0.0f;
    if (slot < n_seen)
        vote_load_k<KV, HEAD_DIM>(args, piece, kv_head, slot, k);
    for (int row = 0; row < piece.n_rows; row++)
        for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
            const float score = vote_score<KV, HEAD_DIM>(args, piece.row + row, head, k);
            const float logsum = args.logsum[(size_t)(piece.row + row) * args.n_heads + head];
            sum += slot < piece.n_seen + row ? exp2_fast(score - logsum) : 0.0f;
        }
    if (slot < piece.n_slots && threadIdx.x % VOTE_LANES<HEAD_DIM> == 0)
        args.votes[(size_t)piece.at + (size_t)kv_head * piece.n_slots + slot] = sum;
}

#endif
