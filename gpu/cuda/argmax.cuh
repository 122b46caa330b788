/* Argmax: one block per row of logits, four logits a load.
 *
 *   logits [row][stride]   ->   token [row]
 *
 * A candidate is one 64-bit key: the logit mapped to an unsigned number of the same order, then
 * the complement of its index, so that the larger key is the larger logit or the earlier index.
 * Maxima of keys need no tie-breaking and no order. */
#ifndef GPU_CUDA_ARGMAX_CUH
#define GPU_CUDA_ARGMAX_CUH

#include "element.cuh"
#include "reduce.cuh"

enum { ARGMAX_THREADS = 512 };

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

template <int N_THREADS>
static __global__ void __launch_bounds__(N_THREADS)
    argmax_kernel(int32_t *token, const float *logits, int n_vocab, int stride)
{
    __shared__ uint64_t of_warp[N_THREADS / WARP_LANES];
    previous_kernel_wait();
    const float *row = logits + (size_t)blockIdx.x * stride;
    const int n_fours = n_vocab / 4;
    uint64_t key = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < n_fours; i += N_THREADS) {
        const float4 four = reinterpret_cast<const float4 *>(row)[i];
        key = larger_key(key, argmax_key(four.x, 4 * i));
        key = larger_key(key, argmax_key(four.y, 4 * i + 1));
        key = larger_key(key, argmax_key(four.z, 4 * i + 2));
        key = larger_key(key, argmax_key(four.w, 4 * i + 3));
    }
    const int rest = 4 * n_fours + (int)threadIdx.x;
    if (rest < n_vocab)
        key = larger_key(key, argmax_key(row[rest], rest));
    key = warp_max_key(key);
    if (threadIdx.x % WARP_LANES == 0)
        of_warp[threadIdx.x / WARP_LANES] = key;
    __syncthreads();
    if (threadIdx.x >= WARP_LANES)
        return;
    key = warp_max_key(threadIdx.x < N_THREADS / WARP_LANES ? of_warp[threadIdx.x] : 0);
    if (threadIdx.x == 0)
        token[blockIdx.x] = (int32_t) ~(uint32_t)key;
}

#endif
