/* The tiles of paged attention, shared by prefill and decode.
 *
 * Algorithm: FlashAttention-2 (Dao 2023, algorithm 1): rows of Q meet K and V tile by tile, the
 * softmax runs online in base 2, sums are fp32. A row is a (token, head of the group) pair, so one
 * reading of K and V serves all query heads of a KV head.
 *
 * A tile in shared memory holds rows of HEAD_DIM elements in chunks of 16 bytes; chunk c of row r
 * lies at c ^ (r % 8), in rows of 64 bytes at c ^ (r / 2 % 4), so that neither the copies' rows nor
 * ldmatrix' columns collide in the banks. Fragments of mma.m16n8k16: lane 4 g + t holds columns 2
 * t, 2 t + 1 of rows g and g + 8.
 *
 * K and V in e4m3 (type KV; their products are of type P = KV::product) are copied to shared memory
 * as they are. Prefill widens a half tile there, once for all warps (tile_widen). In decode a warp
 * has its own K and V and widens fragments in registers. ldmatrix moves pairs of bytes, so a lane
 * finds
 * - of K: four neighbouring dims, 4 t to 4 t + 3 of sixteen, where an mma expects 2 t, 2 t + 1 and
 *   these plus 8. The order of dims is free within a product, and Q is read in K's order.
 * - of V: two neighbouring dims of one column. An mma takes the even dims of sixteen, the next the
 *   odd ones; so a lane's sums are of dims 4 t to 4 t + 3 (sums_pair). */
#ifndef GPU_CUDA_ATTN_TILE_CUH
#define GPU_CUDA_ATTN_TILE_CUH

#include <math.h>

#include "element.cuh"
#include "reduce.cuh"

enum { FRAGMENT_ROWS = 16, ATTN_WARPS = 4, ATTN_THREADS = ATTN_WARPS * WARP_LANES };

#define MINUS_INFINITY (-INFINITY)
/* The score of a token that a row does not see. It is finite, so that a row with a window that
 * begins in a later tile has finite sums until then; the first token that the row sees multiplies
 * them by exactly 0. It is a power of two: its product with any scale is exact, so hidden score
 * minus hidden maximum is 0 with and without a fused multiply-add. */
constexpr float HIDDEN = -0x1p100f;
enum { NO_WINDOW = 1 << 30 }; /* longer than any context */
constexpr float LOG2_E = 1.44269504088896f;

template <class T> constexpr int CHUNK = 16 / (int)sizeof(T); /* elements */

template <class T, int HEAD_DIM>
__device__ __forceinline__ T *tile_chunk(T *tile, int row, int chunk)
{
    const int turn = HEAD_DIM / CHUNK<T> < 8 ? row / 2 % 4 : row % 8;
    return tile + row * HEAD_DIM + (chunk ^ turn) * CHUNK<T>;
}

/* ---- copies ---- */

/* The warp starts to copy 16 rows; lane l < 16 names row l. A row < 0 is filled with zeros: the
 * pool may hold NaN there, and NaN times a weight of zero is NaN. */
template <class T, int HEAD_DIM>
__device__ __forceinline__ void rows_copy_async(T *tile, const T *rows, int row_of_lane)
{
    constexpr int CHUNKS = HEAD_DIM / CHUNK<T>, ROWS_AT_ONCE = WARP_LANES / CHUNKS;
    const int lane = threadIdx.x % WARP_LANES, chunk = lane % CHUNKS;
#pragma unroll
    for (int first = 0; first < FRAGMENT_ROWS; first += ROWS_AT_ONCE) {
        const int r = first + lane / CHUNKS;
        const int row = __shfl_sync(ALL_LANES, row_of_lane, r);
        const size_t at = (size_t)(row < 0 ? 0 : row) * HEAD_DIM + chunk * CHUNK<T>;
        copy_async(tile_chunk<T, HEAD_DIM>(tile, r, chunk), rows + at, row < 0 ? 0 : 16);
    }
}

/* Sixteen rows of e4m3, copied by this warp, become a tile of P. Eight lanes read and write two
 * rows at a time, so that what they write lies in different banks. */
template <class P, int HEAD_DIM> __device__ __forceinline__ void tile_widen(P *to, e4m3 *from)
{
    constexpr int CHUNKS = HEAD_DIM / CHUNK<e4m3>, ROWS_AT_ONCE = WARP_LANES / CHUNKS;
    const int lane = threadIdx.x % WARP_LANES;
    const int chunk = lane % 4 + lane / 8 % (CHUNKS / 4) * 4;
#pragma unroll
    for (int first = 0; first < FRAGMENT_ROWS; first += ROWS_AT_ONCE) {
        const int row = first + lane / 4 % 2 + lane / (2 * CHUNKS) * 2;
        const uint4 in = *reinterpret_cast<uint4 *>(tile_chunk<e4m3, HEAD_DIM>(from, row, chunk));
        P *const row_to = to + row * HEAD_DIM;
        const int at = (2 * chunk ^ (row % 8)) * CHUNK<P>;
        *reinterpret_cast<uint4 *>(row_to + at) = {e4m3_widen<0, 1>(in.x), e4m3_widen<2, 3>(in.x),
                                                   e4m3_widen<0, 1>(in.y), e4m3_widen<2, 3>(in.y)};
        *reinterpret_cast<uint4 *>(row_to + (at ^ CHUNK<P>)) = {
            e4m3_widen<0, 1>(in.z), e4m3_widen<2, 3>(in.z), e4m3_widen<0, 1>(in.w),
            e4m3_widen<2, 3>(in.w)};
    }
}

/* Where a token's K lies. The block is as loaded from the block table: what is computed from it
 * waits for the load. */
struct kv_place {
    int block, offset; /* block < 0: past the end */
};

/* One head's K and V on their way through a ring of N_SLOTS half tiles, K0 V0 K1 V1 ..., of
 * N_TOKENS each, TILE_STRIDE apart in the context. Each warp copies sixteen rows of a half tile;
 * lane l looks up row l % 16 in the block table, a turn before it is needed. */
enum { TILE_STRIDE = 64 };

template <class KV, int HEAD_DIM, int N_SLOTS, int N_TOKENS> struct kv_ring {
    KV *slots;
    const KV *pool;
    const int32_t *blocks;
    int n_half_tiles, token, end; /* this lane's token of tile 0; where the context ends */
    int block_tokens, block_rows, head_row, v_rows;
    int warp_row; /* of a half tile, where this warp's rows begin */

    /* Loads; nothing is computed from what is loaded. */
    __device__ __forceinline__ kv_place look_up(int tile) const
    {
        const unsigned at = token + tile * TILE_STRIDE;
        kv_place place = {-1, (int)(at % block_tokens)};
        if ((int)at < end)
            place.block = blocks[at / block_tokens];
        return place;
    }
    /* The pool's row of K, < 0 past the end. */
    __device__ __forceinline__ int row(const kv_place &place) const
    {
        return place.block < 0 ? -1 : place.block * block_rows + head_row + place.offset;
    }
    __device__ __forceinline__ KV *half_tile(int half) const
    {
        return slots + half % N_SLOTS * N_TOKENS * HEAD_DIM;
    }
    /* Starts the copy of a half tile: K if `half` is even, V if odd. Commits one group in each
     * case, an empty one past the end. */
    __device__ __forceinline__ void ask(int half, const kv_place &place) const
    {
        const int k_row = row(place);
        if (half < n_half_tiles)
            rows_copy_async<KV, HEAD_DIM>(half_tile(half) + warp_row * HEAD_DIM, pool,
                                          k_row < 0 || half % 2 == 0 ? k_row : k_row + v_rows);
        copy_async_commit();
    }
};

/* A ring over tokens first .. end - 1 of one sequence; no copy has started. */
template <class Ring>
__device__ __forceinline__ Ring ring_open(const struct attn_args &attn, int seq, int kv_head,
                                          int first, int end, int warp_row)
{
    Ring ring;
    ring.pool = static_cast<decltype(ring.pool)>(attn.kv.rows);
    ring.blocks = attn.block_id + attn.block_indptr[seq];
    ring.n_half_tiles = (end - first + TILE_STRIDE - 1) / TILE_STRIDE * 2;
    ring.token = first + warp_row + threadIdx.x % FRAGMENT_ROWS;
    ring.end = end;
    ring.block_tokens = attn.kv.block_tokens;
    ring.block_rows = attn.kv.block_rows;
    ring.head_row = kv_head * attn.kv.block_tokens;
    ring.v_rows = attn.kv.n_kv_heads * attn.kv.block_tokens;
    ring.warp_row = warp_row;
    return ring;
}

/* ---- fragments ---- */

/* An ldmatrix of K or V takes 32 bytes of sixteen tokens, which hold so many fragments. */
template <class KV> constexpr int FRAGMENTS = 2 / (int)sizeof(KV);

/* Rows 0..15 of Q, dims 16 k .. 16 k + 15. */
template <class T, int HEAD_DIM>
__device__ __forceinline__ void q_fragment(uint32_t a[4], T *tile, int k)
{
    const int lane = threadIdx.x % WARP_LANES;
    ldmatrix(a, tile_chunk<T, HEAD_DIM>(tile, lane % 16, 2 * k + lane / 16));
}

/* 32 bytes of tokens 0..15 of K as columns. */
template <class KV, int HEAD_DIM>
__device__ __forceinline__ void k_load(uint32_t r[4], KV *tile, int at)
{
    const int lane = threadIdx.x % WARP_LANES;
    ldmatrix(r, tile_chunk<KV, HEAD_DIM>(tile, lane / 16 * 8 + lane % 8, 2 * at + lane / 8 % 2));
}

/* Fragment f of what k_load loaded: b[0], b[1] serve tokens 0..7, b[2], b[3] tokens 8..15. */
template <class KV>
__device__ __forceinline__ void k_fragment(uint32_t b[4], const uint32_t r[4], int f)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        if constexpr (FRAGMENTS<KV> == 1)
            b[i] = r[i];
        else
            b[i] = i % 2 ? e4m3_widen<2, 3>(r[i / 2 * 2 + f]) : e4m3_widen<0, 1>(r[i / 2 * 2 + f]);
}

/* 32 bytes of tokens 0..15 of V. */
template <class KV, int HEAD_DIM>
__device__ __forceinline__ void v_load(uint32_t r[4], KV *tile, int at)
{
    const int lane = threadIdx.x % WARP_LANES;
    ldmatrix_transposed(r, tile_chunk<KV, HEAD_DIM>(tile, lane % 16, 2 * at + lane / 16));
}

/* Fragment f of what v_load loaded, sixteen dims: b[0], b[1] serve the lower eight of them, or the
 * even ones. */
template <class KV>
__device__ __forceinline__ void v_fragment(uint32_t b[4], const uint32_t r[4], int f)
{
    for (int i = 0; i < 4; i++)
        if constexpr (FRAGMENTS<KV> == 1)
            b[i] = r[i];
        else
            b[i] = i / 2 ? e4m3_widen<1, 3>(r[2 * f + i % 2]) : e4m3_widen<0, 2>(r[2 * f + i % 2]);
}

/* ---- what a warp carries from tile to tile ---- */

/* M fragments of 16 rows. Index [m][h] is row g + 8 h of fragment m; sums are of this lane's
 * columns until rows_finish. */
template <int HEAD_DIM, int M> struct attn_rows {
    float out[M][HEAD_DIM / 8][4];
    float max[M][2], sum[M][2];
};

/* Pair i of the sums that this lane holds of row h of fragment m: dims sums_first() + sums_dim(i)
 * and the next. */
template <class KV, int HEAD_DIM, int M>
__device__ __forceinline__ float2 sums_pair(const attn_rows<HEAD_DIM, M> &rows, int m, int h, int i)
{
    if constexpr (FRAGMENTS<KV> == 1)
        return {rows.out[m][i][2 * h], rows.out[m][i][2 * h + 1]};
    else
        return {rows.out[m][i / 2 * 2][2 * h + i % 2], rows.out[m][i / 2 * 2 + 1][2 * h + i % 2]};
}

template <class KV> __device__ __forceinline__ int sums_first()
{
    return (int)threadIdx.x % 4 * 2 * FRAGMENTS<KV>;
}

template <class KV> __device__ __forceinline__ int sums_dim(int i)
{
    return FRAGMENTS<KV> == 1 ? 8 * i : i / 2 * 16 + i % 2 * 2;
}

template <int HEAD_DIM, int M>
__device__ __forceinline__ void rows_clear(attn_rows<HEAD_DIM, M> &rows)
{
#pragma unroll
    for (int m = 0; m < M; m++) {
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; n++)
            for (int i = 0; i < 4; i++)
                rows.out[m][n][i] = 0.0f;
        for (int h = 0; h < 2; h++) {
            rows.max[m][h] = MINUS_INFINITY;
            rows.sum[m][h] = 0.0f;
        }
    }
}

/* Scores of the rows against N_TOKENS of K; q(m, k, a) loads the rows' Q fragments. */
template <class KV, int HEAD_DIM, int M, int N_TOKENS, class Q>
__device__ __forceinline__ void scores_compute(float s[M][N_TOKENS / 8][4], Q q, KV *k_tile)
{
    using P = typename KV::product;
    constexpr int F = FRAGMENTS<KV>;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N_TOKENS / 8; n++)
            for (int i = 0; i < 4; i++)
                s[m][n][i] = 0.0f;
#pragma unroll
    for (int at = 0; at < HEAD_DIM / (16 * F); at++) {
        uint32_t a[F][M][4];
#pragma unroll
        for (int f = 0; f < F; f++)
#pragma unroll
            for (int m = 0; m < M; m++)
                q(m, at * F + f, a[f][m]);
#pragma unroll
        for (int n = 0; n < N_TOKENS / 16; n++) {
            uint32_t r[4], b[4];
            k_load<KV, HEAD_DIM>(r, k_tile + n * 16 * HEAD_DIM, at);
#pragma unroll
            for (int f = 0; f < F; f++) {
                k_fragment<KV>(b, r, f);
#pragma unroll
                for (int i = 0; i < 2; i++)
#pragma unroll
                    for (int m = 0; m < M; m++)
                        P::mma(s[m][2 * n + i], a[f][m], b[2 * i], b[2 * i + 1]);
            }
        }
    }
}

enum side { BEFORE, FROM_THERE_ON };

/* Hides the tokens of this tile on one side of each row's limit[m][h]. */
template <side SIDE, int M, int N_TOKENS>
__device__ __forceinline__ void scores_mask(float s[M][N_TOKENS / 8][4], const int limit[M][2])
{
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N_TOKENS / 8; n++)
            for (int i = 0; i < 4; i++)
                if ((8 * n + 2 * t + i % 2 < limit[m][i / 2]) == (SIDE == BEFORE))
                    s[m][n][i] = HIDDEN;
}

/* The maximum over the four lanes that hold a row's columns. */
__device__ __forceinline__ float row_max(float v)
{
    v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, 1));
    return fmaxf(v, __shfl_xor_sync(ALL_LANES, v, 2));
}

/* Turns one row's scores into weights 2^(scale (s - max)) and rescales the row's sums to the new
 * maximum, which is finite from the first tile on. */
template <int HEAD_DIM, int M, int N_TOKENS>
__device__ __forceinline__ void row_rescale(attn_rows<HEAD_DIM, M> &rows,
                                            float s[M][N_TOKENS / 8][4], int m, int h, float scale)
{
    float max = rows.max[m][h];
#pragma unroll
    for (int n = 0; n < N_TOKENS / 8; n++)
        max = fmaxf(max, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
    max = row_max(max);
    const float before = exp2_fast((rows.max[m][h] - max) * scale);
    float sum = rows.sum[m][h] * before;
#pragma unroll
    for (int n = 0; n < N_TOKENS / 8; n++) {
        for (int i = 2 * h; i < 2 * h + 2; i++) {
            s[m][n][i] = exp2_fast(fmaf(s[m][n][i], scale, -(max * scale)));
            sum += s[m][n][i];
        }
    }
    rows.max[m][h] = max;
    rows.sum[m][h] = sum;
#pragma unroll
    for (int n = 0; n < HEAD_DIM / 8; n++) {
        rows.out[m][n][2 * h] *= before;
        rows.out[m][n][2 * h + 1] *= before;
    }
}

template <int HEAD_DIM, int M, int N_TOKENS>
__device__ __forceinline__ void softmax_advance(attn_rows<HEAD_DIM, M> &rows,
                                                float s[M][N_TOKENS / 8][4], float scale)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            row_rescale<HEAD_DIM, M, N_TOKENS>(rows, s, m, h, scale);
}

/* out += weights V. Two neighbouring score fragments are the A fragment of sixteen tokens. */
template <class KV, int HEAD_DIM, int M, int N_TOKENS>
__device__ __forceinline__ void values_add(attn_rows<HEAD_DIM, M> &rows,
                                           const float p[M][N_TOKENS / 8][4], KV *v_tile)
{
    using P = typename KV::product;
    constexpr int F = FRAGMENTS<KV>;
#pragma unroll
    for (int k = 0; k < N_TOKENS / 16; k++) {
        uint32_t a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
            for (int i = 0; i < 4; i++)
                a[m][i] =
                    P::pack(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int at = 0; at < HEAD_DIM / (16 * F); at++) {
            uint32_t r[4], b[4];
            v_load<KV, HEAD_DIM>(r, v_tile + k * 16 * HEAD_DIM, at);
#pragma unroll
            for (int f = 0; f < F; f++) {
                const int n = at * F + f;
                v_fragment<KV>(b, r, f);
#pragma unroll
                for (int m = 0; m < M; m++) {
                    P::mma(rows.out[m][2 * n], a[m], b[0], b[1]);
                    P::mma(rows.out[m][2 * n + 1], a[m], b[2], b[3]);
                }
            }
        }
    }
}

/* Completes the rows' sums over their columns. */
template <int HEAD_DIM, int M>
__device__ __forceinline__ void rows_finish(attn_rows<HEAD_DIM, M> &rows)
{
#pragma unroll
    for (int m = 0; m < M; m++)
        for (int h = 0; h < 2; h++)
            rows.sum[m][h] = lanes_sum<4>(rows.sum[m][h]);
}

#endif
