/* Sums over lanes: butterflies within a warp, one word per warp across a block. */
#ifndef GPU_CUDA_REDUCE_CUH
#define GPU_CUDA_REDUCE_CUH

#include "device.cuh"

enum { WARP_LANES = 32 };
constexpr unsigned ALL_LANES = 0xffffffffu;

/* The sum over an aligned group of N_LANES neighbours, returned to each lane. */
template <int N_LANES> __device__ __forceinline__ float lanes_sum(float v)
{
#pragma unroll
    for (int flip = N_LANES / 2; flip > 0; flip /= 2)
        v += __shfl_xor_sync(ALL_LANES, v, flip);
    return v;
}

/* The sum over a block of at most 32 warps, returned to each lane. One call per kernel: a second
 * one would overwrite the words while other warps read them. */
__device__ __forceinline__ float block_sum(float v)
{
    __shared__ float of_warp[WARP_LANES];
    const unsigned lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
    v = lanes_sum<WARP_LANES>(v);
    if (lane == 0)
        of_warp[warp] = v;
    __syncthreads();
    return lanes_sum<WARP_LANES>(lane < blockDim.x / WARP_LANES ? of_warp[lane] : 0.0f);
}

#endif
