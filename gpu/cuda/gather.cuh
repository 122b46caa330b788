/* Row gather: one block copies one row, 16 bytes a thread and turn.
 *
 *   table [n_table][width]   index [n_rows]   ->   out [n_rows][width]
 *
 * Serves the embedding and the gather of last rows before the language-model head: a prompt of a
 * thousand tokens needs one row of logits (SwiftTransformer does the same). */
#ifndef GPU_CUDA_GATHER_CUH
#define GPU_CUDA_GATHER_CUH

#include "element.cuh"

enum { GATHER_THREADS = 128 };

/* Elements are moved, never read: both types are the same 16 bits here. */
static __global__ void __launch_bounds__(GATHER_THREADS)
    gather_kernel(uint4 *out, const uint4 *table, const int32_t *index, int n_table, int n_packs)
{
    previous_kernel_wait();
    const size_t row = blockIdx.x;
    const int from = index[row];
    const bool is_row = from >= 0 && from < n_table;
    const uint4 *source = table + (size_t)(is_row ? from : 0) * n_packs;
    for (int i = threadIdx.x; i < n_packs; i += GATHER_THREADS)
        out[row * n_packs + i] = is_row ? source[i] : uint4{0, 0, 0, 0};
}

#endif
