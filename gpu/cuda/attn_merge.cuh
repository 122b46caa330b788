/* The merge of parts: of cut sequences after decode, one block per (merge, head), and of cut tiles
 * after prefill, one block per (merge, KV head, sixteen rows).
 *
 *   parts [part][n_heads][dim] fp32, each divided by its own sum
 *   part_logsum [part][n_heads], log2 of that sum     ->   out [seq][n_heads][dim]
 *
 * out = sum 2^(logsum_p - max) part_p / sum 2^(logsum_p - max): softmax' associativity (Milakov and
 * Gimelshein 2018, "Online normalizer calculation for softmax"). Warps take every fourth part. */
#ifndef GPU_CUDA_ATTN_MERGE_CUH
#define GPU_CUDA_ATTN_MERGE_CUH

#include "attn_tile.cuh"

__device__ __forceinline__ float merge_max(const float *logsum, int n_parts, int stride)
{
    float max = MINUS_INFINITY;
    for (int p = threadIdx.x % WARP_LANES; p < n_parts; p += WARP_LANES)
        max = fmaxf(max, logsum[(size_t)p * stride]);
#pragma unroll
    for (int flip = WARP_LANES / 2; flip > 0; flip /= 2)
        max = fmaxf(max, __shfl_xor_sync(ALL_LANES, max, flip));
    return max;
}

/* Lane l holds dims 2 l and 2 l + 1 of every 64. */
template <class T, int HEAD_DIM>
static __global__ void __launch_bounds__(ATTN_THREADS)
    attn_merge_kernel(const struct attn_decode_args args)
{
    constexpr int PAIRS = HEAD_DIM / 64;
    __shared__ float2 of_warp[ATTN_WARPS][PAIRS][WARP_LANES];
    __shared__ float sum_of_warp[ATTN_WARPS];
    previous_kernel_wait();
    if ((int)blockIdx.x >= *args.plan.n_merges)
        return;
    const struct attn_merge merge = args.plan.merges[blockIdx.x];
    const int lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
    const int n_heads = args.attn.n_heads;
    const size_t first = (size_t)merge.first_part * n_heads + blockIdx.y;
    const float max = merge_max(args.part_logsum + first, merge.n_parts, n_heads);

    float2 out[PAIRS] = {};
    float sum = 0.0f;
#pragma unroll 4
    for (int p = warp; p < merge.n_parts; p += ATTN_WARPS) {
        const size_t row = first + (size_t)p * n_heads;
        const float weight = exp2_fast(args.part_logsum[row] - max);
        const float2 *part = reinterpret_cast<const float2 *>(args.parts + row * HEAD_DIM);
        for (int i = 0; i < PAIRS; i++) {
            const float2 pair = part[i * WARP_LANES + lane];
            out[i].x += weight * pair.x;
            out[i].y += weight * pair.y;
        }
        sum += weight;
    }
    for (int i = 0; i < PAIRS; i++)
        of_warp[warp][i][lane] = out[i];
    if (lane == 0)
        sum_of_warp[warp] = sum;
    __syncthreads();
    if (warp >= PAIRS)
        return;
    float2 total = {0.0f, 0.0f};
    float whole = 0.0f;
    for (int w = 0; w < ATTN_WARPS; w++) {
        total.x += of_warp[w][warp][lane].x;
        total.y += of_warp[w][warp][lane].y;
        whole += sum_of_warp[w];
    }
    T *to = static_cast<T *>(args.attn.out) + ((size_t)merge.seq * n_heads + blockIdx.y) * HEAD_DIM;
    reinterpret_cast<uint32_t *>(to)[warp * WARP_LANES + lane] =
        T::pack(total.x / whole, total.y / whole);
}

/* A row a warp and turn. Parts [part][kv_head][row of the tile][dim], four rows a warp. */
template <class T, int HEAD_DIM>
static __global__ void __launch_bounds__(ATTN_THREADS)
    attn_tile_merge_kernel(const struct attn_prefill_args args)
{
    constexpr int PAIRS = HEAD_DIM / 64;
    previous_kernel_wait();
    const int n_kv_heads = args.attn.kv.n_kv_heads, group = args.attn.n_heads / n_kv_heads;
    const int kv_head = blockIdx.x % n_kv_heads;
    const struct attn_tile_merge merge = args.merges[blockIdx.x / n_kv_heads];
    const int q_first = args.q_indptr[merge.seq], q_end = args.q_indptr[merge.seq + 1];
    const int lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
    const size_t stride = (size_t)n_kv_heads * ATTN_LOW_TILE; /* rows from part to part */
    for (int r = warp; r < FRAGMENT_ROWS; r += ATTN_WARPS) {
        const int of_tile = blockIdx.y * FRAGMENT_ROWS + r, row = merge.first_row + of_tile;
        if (row >= (q_end - q_first) * group)
            return;
        const size_t first =
            ((size_t)merge.first_part * n_kv_heads + kv_head) * ATTN_LOW_TILE + of_tile;
        const float max = merge_max(args.part_logsum + first, merge.n_parts, (int)stride);
        float2 out[PAIRS] = {};
        float sum = 0.0f;
#pragma unroll 4
        for (int p = 0; p < merge.n_parts; p++) {
            const size_t at = first + p * stride;
            const float weight = exp2_fast(args.part_logsum[at] - max);
            const float2 *part = reinterpret_cast<const float2 *>(args.parts + at * HEAD_DIM);
            for (int i = 0; i < PAIRS; i++) {
                const float2 pair = part[i * WARP_LANES + lane];
                out[i].x += weight * pair.x;
                out[i].y += weight * pair.y;
            }
            sum += weight;
        }
        const size_t place =
            (size_t)(q_first + row / group) * args.attn.n_heads + kv_head * group + row % group;
        T *to = static_cast<T *>(args.attn.out) + place * HEAD_DIM;
        for (int i = 0; i < PAIRS; i++)
            reinterpret_cast<uint32_t *>(to)[i * WARP_LANES + lane] =
                T::pack(out[i].x / sum, out[i].y / sum);
    }
}

#endif
