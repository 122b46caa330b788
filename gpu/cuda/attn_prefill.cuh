/* Ragged paged prefill attention: one block per (tile of rows, KV head).
 *
 *   q   [token][n_heads][dim], ragged by q_indptr     out [token][n_heads][dim]
 *   pool [block][layer][K|V][kv_head][token][dim]     through block_id, ragged by block_indptr
 *
 * A tile has 4 warps of M x 16 rows (attn_tile.cuh); each warp keeps its rows' sums in registers
 * and all share K and V, which pass through a ring of three half tiles, K0 V0 K1 V1 ..., 64 tokens
 * each: while one is used the next is in flight and the third is being asked for, with one barrier
 * a half tile. New tokens see the past and themselves: token i of q_len sees
 * kv_len - q_len + i + 1 tokens, so chunked prefill and prefix reuse are the same case.
 *
 * With M = 2 each K and V fragment read from shared memory feeds two mma: at M = 1 reading them
 * takes as long as multiplying them (128 bytes against 1024 FMA a clock on sm_80). */
#ifndef GPU_CUDA_ATTN_PREFILL_CUH
#define GPU_CUDA_ATTN_PREFILL_CUH

#include "attn_tile.cuh"

enum { PREFILL_TOKENS = 64, PREFILL_RING = 3 };

template <int HEAD_DIM, int M>
constexpr size_t PREFILL_SHARED_BYTES =
    (ATTN_WARPS * FRAGMENT_ROWS * M + PREFILL_RING * PREFILL_TOKENS) * HEAD_DIM * sizeof(uint16_t);

/* Which sequence, rows and head a block works for. */
struct prefill_tile {
    int q_first, q_len, kv_len; /* rows of q and out; lengths in tokens */
    int first_row, group, kv_head;
    const int32_t *blocks;
};

__device__ __forceinline__ prefill_tile prefill_tile_find(const struct attn_prefill_args &args,
                                                          const struct attn_prefill_item &item)
{
    prefill_tile tile;
    tile.q_first = args.q_indptr[item.seq];
    tile.q_len = args.q_indptr[item.seq + 1] - tile.q_first;
    tile.kv_len = args.attn.kv_len[item.seq];
    tile.first_row = item.first_row;
    tile.group = args.attn.n_heads / args.attn.kv.n_kv_heads;
    tile.kv_head = blockIdx.y;
    tile.blocks = args.attn.block_id + args.attn.block_indptr[item.seq];
    return tile;
}

/* Rows past the sequence's last exist in the last tile: Q is zero there, nothing is written. */
__device__ __forceinline__ bool row_exists(const prefill_tile &tile, int row)
{
    return row < tile.q_len * tile.group;
}

__device__ __forceinline__ int row_n_visible(const prefill_tile &tile, int row)
{
    return tile.kv_len - tile.q_len + row / tile.group + 1;
}

/* The row's place among rows of head_dim elements, n_row_heads of them to a token. */
__device__ __forceinline__ int row_place(const prefill_tile &tile, int row, int n_row_heads)
{
    const int token = row / tile.group;
    return (tile.q_first + token) * n_row_heads + tile.kv_head * tile.group + row % tile.group;
}

template <class T, int HEAD_DIM, int M>
__device__ __forceinline__ void prefill_q_copy(const struct attn_args &attn,
                                               const prefill_tile &tile, int warp_row, T *q_tile)
{
    const int lane = threadIdx.x % WARP_LANES;
#pragma unroll
    for (int m = 0; m < M; m++) {
        const int row = warp_row + m * FRAGMENT_ROWS + lane % FRAGMENT_ROWS;
        const int place =
            row_exists(tile, row) ? row_place(tile, row, attn.q_stride / HEAD_DIM) : -1;
        rows_copy_async<T, HEAD_DIM>(q_tile + m * FRAGMENT_ROWS * HEAD_DIM,
                                     static_cast<const T *>(attn.q), place);
    }
}

template <class T, int HEAD_DIM, int M>
__device__ __forceinline__ void prefill_write(const struct attn_args &attn,
                                              const prefill_tile &tile, int warp_row,
                                              const attn_rows<HEAD_DIM, M> &rows)
{
    const int lane = threadIdx.x % WARP_LANES;
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = warp_row + m * FRAGMENT_ROWS + h * 8 + lane / 4;
            if (!row_exists(tile, row))
                continue;
            T *out = static_cast<T *>(attn.out) +
                     (size_t)row_place(tile, row, attn.n_heads) * HEAD_DIM + lane % 4 * 2;
            const float scale = 1.0f / rows.sum[m][h];
#pragma unroll
            for (int n = 0; n < HEAD_DIM / 8; n++)
                *reinterpret_cast<uint32_t *>(out + n * 8) =
                    T::pack(rows.out[m][n][2 * h] * scale, rows.out[m][n][2 * h + 1] * scale);
        }
    }
}

template <class T, int HEAD_DIM, int M>
static __global__ void __launch_bounds__(ATTN_THREADS, 2)
    attn_prefill_kernel(const struct attn_prefill_args args)
{
    constexpr int HALF_TILE = PREFILL_TOKENS * HEAD_DIM;
    const struct attn_args &attn = args.attn;
    const struct attn_prefill_item item = args.items[blockIdx.x];
    const prefill_tile tile = prefill_tile_find(args, item);
    const int lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
    const int warp_row = item.first_row + warp * M * FRAGMENT_ROWS;
    const int n_tokens = item.n_visible;
    const int n_tiles = (n_tokens + PREFILL_TOKENS - 1) / PREFILL_TOKENS;
    const int v_rows = attn.kv.n_kv_heads * attn.kv.block_tokens; /* from K's row to V's */
    const float scale = attn.scale * 1.44269504088896f;           /* log2(e) */

    T *q_tile = dynamic_shared<T>() + warp * M * FRAGMENT_ROWS * HEAD_DIM;
    T *ring = dynamic_shared<T>() + ATTN_WARPS * M * FRAGMENT_ROWS * HEAD_DIM;
    const T *pool = static_cast<const T *>(attn.kv.rows);

    /* Each warp copies sixteen tokens of every half tile; a lane knows the pool's row of one. */
    auto row_find = [&](int i_tile) {
        const int token = i_tile * PREFILL_TOKENS + warp * FRAGMENT_ROWS + lane % FRAGMENT_ROWS;
        return kv_row(attn.kv, tile.blocks, token, n_tokens, tile.kv_head);
    };
    auto half_tile = [&](int i_half) { return ring + i_half % PREFILL_RING * HALF_TILE; };
    auto half_tile_ask = [&](int i_half, int row) {
        if (i_half < 2 * n_tiles)
            rows_copy_async<T, HEAD_DIM>(half_tile(i_half) + warp * FRAGMENT_ROWS * HEAD_DIM, pool,
                                         row);
        copy_async_commit();
    };
    auto v_row = [&](int row) { return row < 0 ? row : row + v_rows; };
    auto q = [&](int m, int k, uint32_t a[4]) {
        q_fragment<T, HEAD_DIM>(a, q_tile + m * FRAGMENT_ROWS * HEAD_DIM, k);
    };

    int row = row_find(0);
    prefill_q_copy<T, HEAD_DIM, M>(attn, tile, warp_row, q_tile);
    half_tile_ask(0, row);
    half_tile_ask(1, v_row(row));
    row = row_find(1);

    attn_rows<HEAD_DIM, M> rows;
    rows_clear(rows);
    for (int i = 0; i < n_tiles; i++) {
        float s[M][PREFILL_TOKENS / 8][4];
        copy_async_wait<1>();
        __syncthreads();
        half_tile_ask(2 * i + 2, row);
        scores_compute<T, HEAD_DIM, M, PREFILL_TOKENS>(s, q, half_tile(2 * i));
        if ((i + 1) * PREFILL_TOKENS > row_n_visible(tile, warp_row)) {
            int n_visible[M][2];
#pragma unroll
            for (int m = 0; m < M; m++)
                for (int h = 0; h < 2; h++)
                    n_visible[m][h] =
                        row_n_visible(tile, warp_row + m * FRAGMENT_ROWS + h * 8 + lane / 4) -
                        i * PREFILL_TOKENS;
            scores_mask<M, PREFILL_TOKENS>(s, n_visible);
        }
        softmax_advance<HEAD_DIM, M, PREFILL_TOKENS>(rows, s, scale);
        copy_async_wait<1>();
        __syncthreads();
        half_tile_ask(2 * i + 3, v_row(row));
        row = row_find(i + 2);
        values_add<T, HEAD_DIM, M, PREFILL_TOKENS>(rows, s, half_tile(2 * i + 1));
    }
    rows_finish(rows); /* the groups still pending are empty */
    prefill_write<T, HEAD_DIM, M>(attn, tile, warp_row, rows);
}

#endif
