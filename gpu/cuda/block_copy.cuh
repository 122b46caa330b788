/* Block copy within a KV pool: pair y of the grid, sixteen bytes a thread.
 *
 *   pool [block][block_bytes]: block pair.from  ->  block pair.to
 *
 * A block of an 8B model is 2 MiB: each thread moves four packs, all loads before all stores. */
#ifndef GPU_CUDA_BLOCK_COPY_CUH
#define GPU_CUDA_BLOCK_COPY_CUH

#include "element.cuh"

enum { BLOCK_COPY_THREADS = 256, BLOCK_COPY_PACKS = 4 };

/* Grid: (pieces of a block, pairs). Blocks may be of any size; pairs are few, as y is limited. */
static __global__ void __launch_bounds__(BLOCK_COPY_THREADS)
    block_copy_kernel(uint4 *pool, const struct block_pair *pairs, size_t n_packs)
{
    previous_kernel_wait();
    const struct block_pair pair = pairs[blockIdx.y];
    const uint4 *from = pool + pair.from * n_packs;
    uint4 *to = pool + pair.to * n_packs, held[BLOCK_COPY_PACKS];
    const size_t first = (size_t)blockIdx.x * BLOCK_COPY_PACKS * BLOCK_COPY_THREADS + threadIdx.x;
#pragma unroll
    for (int p = 0; p < BLOCK_COPY_PACKS; p++)
        if (first + p * BLOCK_COPY_THREADS < n_packs)
            held[p] = from[first + p * BLOCK_COPY_THREADS];
#pragma unroll
    for (int p = 0; p < BLOCK_COPY_PACKS; p++)
        if (first + p * BLOCK_COPY_THREADS < n_packs)
            to[first + p * BLOCK_COPY_THREADS] = held[p];
}

#endif
