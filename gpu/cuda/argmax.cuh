/* Argmax: one block per part of a row of logits, four logits a load. The block of a row that ends
 * last compares the parts: one launch does, and a row of a large vocabulary keeps many
 * multiprocessors busy.
 *
 *   logits [row][stride]   ->   part_keys [row][part]   ->   token [row]
 *
 * A candidate is one 64-bit key: the logit mapped to an unsigned number of the same order, then
 * the complement of its index, so that the larger key is the larger logit or the earlier index.
 * Maxima of keys need no tie-breaking and no order. */
#ifndef GPU_CUDA_ARGMAX_CUH
#define GPU_CUDA_ARGMAX_CUH

#include "element.cuh"
#include "reduce.cuh"

enum { ARGMAX_THREADS = 128 };

/* Negative numbers turn around, positive ones move above them; NaN becomes 0, below -infinity. */
__device__ __forceinline__ uint64_t argmax_key(float logit, unsigned index)
{
    union {
        float value;
        uint32_t bits;
    } as;
    as.value = logit;
    const uint32_t ordered = as.bits >> 31 ? ~as.bits : as.bits | 0x80000000u;
    return (uint64_t)(logit == logit ? ordered : 0u) << 32 | (uint32_t)~index;
}

__device__ __forceinline__ uint64_t larger_key(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

__device__ __forceinline__ uint64_t warp_max_key(uint64_t key)
{
#pragma unroll
    for (int flip = WARP_LANES / 2; flip > 0; flip /= 2)
        key = larger_key(key, __shfl_xor_sync(ALL_LANES, key, flip));
    return key;
}

/* The key of the largest logit that a thread meets. Most logits cost a comparison and two moves;
 * only a thread that meets none above -infinity looks again, for the first that is a number. */
__device__ __forceinline__ uint64_t argmax_part_key(const float *row, int first, int end)
{
    float most = -INFINITY;
    int at = -1;
#pragma unroll 8
    for (int i = first + 4 * (int)threadIdx.x; i + 3 < end; i += 4 * ARGMAX_THREADS) {
        const float4 four = *reinterpret_cast<const float4 *>(row + i);
        if (four.x > most)
            most = four.x, at = i;
        if (four.y > most)
            most = four.y, at = i + 1;
        if (four.z > most)
            most = four.z, at = i + 2;
        if (four.w > most)
            most = four.w, at = i + 3;
    }
    uint64_t key = at < 0 ? 0 : argmax_key(most, at);
    if (at < 0)
        for (int i = first + 4 * (int)threadIdx.x; i + 3 < end; i += 4 * ARGMAX_THREADS)
            for (int j = i; j < i + 4; j++)
                key = larger_key(key, argmax_key(row[j], j));
    const int rest = end - end % 4 + (int)threadIdx.x;
    return rest < end ? larger_key(key, argmax_key(row[rest], rest)) : key;
}

static __global__ void __launch_bounds__(ARGMAX_THREADS)
    argmax_kernel(const struct argmax_args args)
{
    __shared__ uint64_t of_warp[ARGMAX_THREADS / WARP_LANES];
    previous_kernel_wait();
    const int part = blockIdx.x, row = blockIdx.y, n_parts = gridDim.x;
    const int first = part * ARGMAX_PART, left = args.n_vocab - first;
    const uint64_t mine =
        warp_max_key(argmax_part_key(args.logits + (size_t)row * args.stride, first,
                                     first + (left < ARGMAX_PART ? left : ARGMAX_PART)));
    if (threadIdx.x % WARP_LANES == 0)
        of_warp[threadIdx.x / WARP_LANES] = mine;
    __syncthreads();
    if (threadIdx.x >= WARP_LANES)
        return;
    const int lane = threadIdx.x;
    uint64_t key = warp_max_key(lane < ARGMAX_THREADS / WARP_LANES ? of_warp[lane] : 0);
    if (n_parts > 1) {
        uint64_t *keys = args.part_keys + (size_t)row * n_parts;
        unsigned n_before = 0;
        if (lane == 0) {
            keys[part] = key;
            __threadfence();
            n_before = atomicInc(args.n_done + row, n_parts - 1); /* to 0 again behind the last */
        }
        __syncwarp(); /* the other lanes read what lane 0 wrote */
        if (__shfl_sync(ALL_LANES, n_before, 0) != (unsigned)n_parts - 1)
            return;
        __threadfence();
        key = 0;
        for (int p = lane; p < n_parts; p += WARP_LANES)
            key = larger_key(key, load_past_l1(keys + p));
        key = warp_max_key(key);
    }
    if (lane == 0)
        args.token[row] = (int32_t) ~(uint32_t)key;
}

#endif
