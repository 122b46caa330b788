/* Ragged paged prefill attention: one block per (tile of rows, KV head), or per part of its
 * context.
 *
 *   q   [token][n_heads][dim], ragged by q_indptr     out [token][n_heads][dim]
 *   pool [block][layer][K|V][kv_head][token][dim]     through block_id, ragged by block_indptr
 *
 * A tile has 4 warps of M x 16 rows (attn_tile.cuh); each warp keeps its rows' sums in registers
 * and all share K and V, which pass through a ring of three half tiles, K0 V0 K1 V1 ..., 64 tokens
 * each: while one is used the next is in flight and the third is being asked for, with one barrier
 * a half tile. K and V in e4m3 pass through a ring of two half tiles, which each warp widens to two
 * others of fp16 before the barrier: the same bytes in all. KV heads are the fastest in the grid,
 * so that the heaviest tiles of all heads start first. New tokens see the past and themselves:
 * token i of q_len sees kv_len - q_len + i + 1 tokens, so chunked prefill and prefix reuse are the
 * same case. Where a window ends before that, the first tile begins with the first token that any
 * of its rows sees.
 *
 * With M = 2 each K and V fragment read from shared memory feeds two mma: at M = 1 reading them
 * takes as long as multiplying them (128 bytes against 1024 FMA a clock on sm_80).
 *
 * Registers by ptxas 13.0 for sm_80, sm_90, none spilled: dim 128, M = 2: 255, 255; M = 1: 182,
 * 187; dim 64, M = 2: 220, 216; M = 1: 137, 143. Shared memory at dim 128: 80 KiB, 64 KiB; so two
 * blocks fit a multiprocessor of either. With e4m3: 255, 255; 182, 189; 220, 216; 145, 145, in the
 * same shared memory. Speed is to be measured. */
#ifndef GPU_CUDA_ATTN_PREFILL_CUH
#define GPU_CUDA_ATTN_PREFILL_CUH

#include "attn_tile.cuh"

enum { PREFILL_TOKENS = TILE_STRIDE, PREFILL_WIDE = 2 /* half tiles that e4m3 is widened to */ };

template <class KV> constexpr int PREFILL_RING = sizeof(KV) == 1 ? 2 : 3;
/* Q, a ring of K and V, and what e4m3 is widened to. */
template <int HEAD_DIM, int M>
constexpr size_t
    PREFILL_SHARED_BYTES = (ATTN_WARPS * FRAGMENT_ROWS * M + 3 * PREFILL_TOKENS) * HEAD_DIM *
                           sizeof(uint16_t);
static_assert(PREFILL_RING<bf16> * sizeof(bf16) == 3 * sizeof(uint16_t) &&
                  PREFILL_RING<e4m3> * sizeof(e4m3) + PREFILL_WIDE * sizeof(fp16) ==
                      3 * sizeof(uint16_t),
              "K and V have the room of three half tiles of 16 bits");

/* The sequence, rows and head of a thread block. */
struct prefill_tile {
    int q_first, q_len; /* rows of q and out; new tokens */
    int n_past;         /* tokens from the item's first to the first new one; may be negative */
    int group, kv_head;
};

/* Counted from the item's first token on, as all token indices below. */
__device__ __forceinline__ int row_n_visible(const prefill_tile &tile, int row)
{
    return tile.n_past + row / tile.group + 1;
}

__device__ __forceinline__ prefill_tile prefill_tile_find(const struct attn_prefill_args &args,
                                                          const struct attn_prefill_item &item)
{
    prefill_tile tile;
    tile.q_first = args.q_indptr[item.seq];
    tile.q_len = args.q_indptr[item.seq + 1] - tile.q_first;
    tile.n_past = args.attn.kv_len[item.seq] - tile.q_len - item.first_token;
    tile.group = args.attn.n_heads / args.attn.kv.n_kv_heads;
    tile.kv_head = blockIdx.x % args.attn.kv.n_kv_heads;
    return tile;
}

/* Rows past the sequence's last exist in the last tile: Q is zero there, nothing is written. */
__device__ __forceinline__ bool row_exists(const prefill_tile &tile, int row)
{
    return row < tile.q_len * tile.group;
}

/* The row's place among rows of head_dim elements, n_row_heads of them to a token. */
__device__ __forceinline__ int row_place(const prefill_tile &tile, int row, int n_row_heads)
{
    const int token = row / tile.group;
    return (tile.q_first + token) * n_row_heads + tile.kv_head * tile.group + row % tile.group;
}

template <class P, int HEAD_DIM, int M>
__device__ __forceinline__ void prefill_q_copy(const struct attn_args &attn,
                                               const prefill_tile &tile, int warp_row, P *q_tile)
{
    const int lane = threadIdx.x % WARP_LANES;
#pragma unroll
    for (int m = 0; m < M; m++) {
        const int row = warp_row + m * FRAGMENT_ROWS + lane % FRAGMENT_ROWS;
        const int place =
            row_exists(tile, row) ? row_place(tile, row, attn.q_stride / HEAD_DIM) : -1;
        rows_copy_async<P, HEAD_DIM>(q_tile + m * FRAGMENT_ROWS * HEAD_DIM,
                                     static_cast<const P *>(attn.q), place);
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

/* The rows of a part: sums divided by their total, and its logarithm. */
template <int HEAD_DIM>
__device__ __forceinline__ void prefill_part_write(const struct attn_prefill_args &args, int part,
                                                   int kv_head, const attn_rows<HEAD_DIM, 1> &rows)
{
    const int lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
    const float scale = args.attn.scale * LOG2_E;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const size_t row = ((size_t)part * args.attn.kv.n_kv_heads + kv_head) * ATTN_LOW_TILE +
                           warp * FRAGMENT_ROWS + h * 8 + lane / 4;
        float *out = args.parts + row * HEAD_DIM + lane % 4 * 2;
        const float share = 1.0f / rows.sum[0][h];
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; n++)
            *reinterpret_cast<float2 *>(out + n * 8) = {rows.out[0][n][2 * h] * share,
                                                        rows.out[0][n][2 * h + 1] * share};
        if (lane % 4 == 0)
            args.part_logsum[row] = rows.max[0][h] * scale + log2f(rows.sum[0][h]);
    }
}

/* The number of tokens from `first` on that each of the warp's rows sees. */
template <int M>
__device__ __forceinline__ void prefill_limits(int limit[M][2], const prefill_tile &tile,
                                               int warp_row, int first)
{
    const int g = threadIdx.x % WARP_LANES / 4;
#pragma unroll
    for (int m = 0; m < M; m++)
        for (int h = 0; h < 2; h++)
            limit[m][h] = row_n_visible(tile, warp_row + m * FRAGMENT_ROWS + h * 8 + g) - first;
}

/* Hides from each row the tokens of tile i that it does not see:
 * - tokens after its own, if the warp's first row does not see the tile's end;
 * - tokens before its window, if the warp's last row does not see the tile's beginning.
 * Both at once would need more registers than a thread has. */
template <int M>
__device__ __forceinline__ void prefill_mask(float s[M][PREFILL_TOKENS / 8][4],
                                             const prefill_tile &tile, int window, int warp_row,
                                             int i)
{
    const int first = i * PREFILL_TOKENS, last_row = warp_row + M * FRAGMENT_ROWS - 1;
    int limit[M][2];
    if (first + PREFILL_TOKENS > row_n_visible(tile, warp_row)) {
        prefill_limits<M>(limit, tile, warp_row, first);
        scores_mask<FROM_THERE_ON, M, PREFILL_TOKENS>(s, limit);
    }
    if (first + window < row_n_visible(tile, last_row)) {
        prefill_limits<M>(limit, tile, warp_row, first + window);
        scores_mask<BEFORE, M, PREFILL_TOKENS>(s, limit);
    }
}

template <class T, class KV, int HEAD_DIM, int M>
static __global__ void __launch_bounds__(ATTN_THREADS, 2)
    attn_prefill_kernel(const struct attn_prefill_args args)
{
    using P = typename KV::product;
    using Ring = kv_ring<KV, HEAD_DIM, PREFILL_RING<KV>, PREFILL_TOKENS>;
    const struct attn_prefill_item item = args.items[blockIdx.x / args.attn.kv.n_kv_heads];
    const prefill_tile tile = prefill_tile_find(args, item);
    const int warp = threadIdx.x / WARP_LANES, warp_row = item.first_row + warp * M * FRAGMENT_ROWS;
    const int n_tiles = (item.end - item.first_token + PREFILL_TOKENS - 1) / PREFILL_TOKENS;
    const float scale = args.attn.scale * LOG2_E;

    P *q_tile = dynamic_shared<P>() + warp * M * FRAGMENT_ROWS * HEAD_DIM;
    auto q = [&](int m, int k, uint32_t a[4]) {
        q_fragment<P, HEAD_DIM>(a, q_tile + m * FRAGMENT_ROWS * HEAD_DIM, k);
    };
    Ring ring = ring_open<Ring>(args.attn, item.seq, tile.kv_head, item.first_token, item.end,
                                warp * FRAGMENT_ROWS);
    P *const tiles = dynamic_shared<P>() + ATTN_WARPS * M * FRAGMENT_ROWS * HEAD_DIM;
    if constexpr (sizeof(KV) == sizeof(P))
        ring.slots = tiles;
    else
        ring.slots = reinterpret_cast<KV *>(tiles + PREFILL_WIDE * PREFILL_TOKENS * HEAD_DIM);
    /* What products read of a half tile that has arrived: as it is, or widened. */
    auto used = [&](int half) {
        if constexpr (sizeof(KV) == sizeof(P))
            return ring.half_tile(half);
        else
            return tiles + half % PREFILL_WIDE * PREFILL_TOKENS * HEAD_DIM;
    };
    /* This warp's rows of it. */
    auto widen = [&](int half) {
        if constexpr (sizeof(KV) != sizeof(P)) {
            __syncwarp();
            tile_widen<P, HEAD_DIM>(used(half) + ring.warp_row * HEAD_DIM,
                                    ring.half_tile(half) + ring.warp_row * HEAD_DIM);
        }
    };

    kv_place place = ring.look_up(0);
    previous_kernel_wait();
    prefill_q_copy<P, HEAD_DIM, M>(args.attn, tile, warp_row, q_tile);
    ring.ask(0, place);
    ring.ask(1, place);
    place = ring.look_up(1);
    attn_rows<HEAD_DIM, M> rows;
    rows_clear(rows);
    for (int i = 0; i < n_tiles; i++) {
        float s[M][PREFILL_TOKENS / 8][4];
        copy_async_wait<1>();
        widen(2 * i);
        __syncthreads();
        ring.ask(2 * i + 2, place);
        scores_compute<P, HEAD_DIM, M, PREFILL_TOKENS>(s, q, used(2 * i));
        prefill_mask<M>(s, tile, args.attn.window_tokens, warp_row, i);
        softmax_advance<HEAD_DIM, M, PREFILL_TOKENS>(rows, s, scale);
        copy_async_wait<1>();
        widen(2 * i + 1);
        __syncthreads();
        ring.ask(2 * i + 3, place);
        place = ring.look_up(i + 2);
        values_add<P, HEAD_DIM, M, PREFILL_TOKENS>(rows, s, used(2 * i + 1));
    }
    rows_finish(rows); /* the groups still pending are empty */
    if constexpr (M == 1) {
        const int part = args.items[blockIdx.x / args.attn.kv.n_kv_heads].part;
        if (part >= 0) {
            prefill_part_write<HEAD_DIM>(args, part, tile.kv_head, rows);
            return;
        }
    }
    prefill_write<T, HEAD_DIM, M>(args.attn, tile, warp_row, rows);
}

#endif
