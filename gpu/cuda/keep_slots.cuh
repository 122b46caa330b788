/* K/V that is kept: in each layer and KV head of a table, slot kept[i] goes to slot i.
 *
 * kept[i] is at least i. A block goes through the rows of one head upwards, some at a time, all of
 * a turn read before any is written: no row that is still to be read has been written over. Turns
 * need not be kept apart: a later one reads no row that an earlier one writes. */
#ifndef GPU_CUDA_KEEP_SLOTS_CUH
#define GPU_CUDA_KEEP_SLOTS_CUH

#include "element.cuh"

enum { KEEP_THREADS = 256 };

/* Grid: (tables, K and V of each KV head, layers). n_packs: of 16 bytes in a row, at most
 * KEEP_THREADS. */
static __global__ void __launch_bounds__(KEEP_THREADS)
    keep_slots_kernel(struct keep_slots_args args, int n_packs)
{
    previous_kernel_wait();
    const struct keep_table table = args.tables[blockIdx.x];
    const int kv_head = blockIdx.y % args.n_kv_heads, layer = blockIdx.z;
    const int n_turn = KEEP_THREADS / n_packs, pack = threadIdx.x % n_packs;
    const int *kept =
        args.kept + table.at + ((size_t)layer * args.n_kv_heads + kv_head) * table.n_kept;
    const int *blocks = args.block_id + table.block;
    uint4 *head = static_cast<uint4 *>(args.rows) +
                  ((size_t)layer * 2 * args.n_kv_heads + blockIdx.y) * args.block_tokens * n_packs;
    auto at = [&](int slot) {
        return head +
               ((size_t)blocks[slot / args.block_tokens] * args.block_rows +
                slot % args.block_tokens) *
                   n_packs +
               pack;
    };
    for (int first = 0; first < table.n_kept; first += n_turn) {
        const int slot = first + threadIdx.x / n_packs;
        const bool moves = slot < first + n_turn && slot < table.n_kept && kept[slot] != slot;
        uint4 held = {0, 0, 0, 0};
        if (moves)
            held = *at(kept[slot]);
        __syncthreads();
        if (moves)
            *at(slot) = held;
    }
}

#endif
