/* SwiGLU: out = silu(gate) * up, sixteen bytes of each a thread.
 *
 *   gate_up [row][2][width]   ->   out [row][width]
 *
 * Shazeer 2020, "GLU Variants Improve Transformer". */
#ifndef GPU_CUDA_SWIGLU_CUH
#define GPU_CUDA_SWIGLU_CUH

#include "element.cuh"

enum { SWIGLU_THREADS = 256 };

__device__ __forceinline__ float silu(float x)
{
    constexpr float LOG2_E = 1.44269504088896f;
    return x / (1.0f + exp2_fast(-x * LOG2_E));
}

/* Grid: (rows, packs of a row). */
template <class T>
static __global__ void __launch_bounds__(SWIGLU_THREADS)
    swiglu_kernel(T *out, const T *gate_up, int width)
{
    previous_kernel_wait();
    const size_t row = blockIdx.x;
    const int at = (blockIdx.y * SWIGLU_THREADS + threadIdx.x) * PACK;
    if (at >= width)
        return;
    float gate[PACK], up[PACK];
    load_pack(gate_up + row * 2 * width + at, gate);
    load_pack(gate_up + row * 2 * width + width + at, up);
    for (int i = 0; i < PACK; i++)
        up[i] *= silu(gate[i]);
    store_pack(out + row * width + at, up);
}

#endif
