/* Residual addition and RMSNorm in one pass: one block per row, the row stays in registers.
 *
 *   hidden [row][width] += delta [row][width]
 *   out    [row][width]  = hidden / sqrt(mean(hidden^2) + epsilon) * weight [width]
 *
 * Zhang and Sennrich 2019, "Root Mean Square Layer Normalization". Each thread holds N_PACKS
 * packs of eight, all loaded before the first is used; bytes moved: three reads, two writes. */
#ifndef GPU_CUDA_NORM_CUH
#define GPU_CUDA_NORM_CUH

#include "element.cuh"
#include "reduce.cuh"

enum { NORM_MAX_THREADS = 512 };

template <class T, int N_PACKS>
static __global__ void __launch_bounds__(NORM_MAX_THREADS)
    norm_kernel(T *out, T *hidden, const T *delta, const T *weight, float epsilon, int width)
{
    previous_kernel_wait();
    const size_t row = (size_t)blockIdx.x * width;
    const int first = threadIdx.x * PACK, stride = blockDim.x * PACK;
    float v[N_PACKS][PACK] = {}, squares = 0.0f; /* zeros past the row's end add nothing */

#pragma unroll
    for (int p = 0; p < N_PACKS; p++)
        if (first + p * stride < width)
            load_pack(hidden + row + first + p * stride, v[p]);
    if (delta) {
#pragma unroll
        for (int p = 0; p < N_PACKS; p++) {
            const int at = first + p * stride;
            if (at >= width)
                continue;
            float add[PACK];
            load_pack(delta + row + at, add);
            for (int i = 0; i < PACK; i++)
                v[p][i] += add[i];
            const uint4 stored = narrow<T>(v[p]);
            *reinterpret_cast<uint4 *>(hidden + row + at) = stored;
            widen<T>(stored, v[p]);
        }
    }
#pragma unroll
    for (int p = 0; p < N_PACKS; p++)
        for (int i = 0; i < PACK; i++)
            squares += v[p][i] * v[p][i];
    const float scale = rsqrtf(block_sum(squares) / (float)width + epsilon);
#pragma unroll
    for (int p = 0; p < N_PACKS; p++) {
        const int at = first + p * stride;
        if (at >= width)
            continue;
        float w[PACK];
        load_pack(weight + at, w);
        for (int i = 0; i < PACK; i++)
            v[p][i] *= scale * w[i];
        store_pack(out + row + at, v[p]);
    }
}

#endif
