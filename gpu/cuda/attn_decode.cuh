/* Paged decode attention, split over context: one block per (share of the batch, KV head).
 *
 *   q    [seq][n_heads][dim]                          out [seq][n_heads][dim]
 *   pool [block][layer][K|V][kv_head][token][dim]     through block_id, ragged by block_indptr
 *   plan: share -> segments (seq, first_token, n_tokens, part), see attn_plan.h
 *   parts [part][n_heads][dim], part_logsum [part][n_heads]: segments of sequences that were cut
 *
 * Flash-decoding (Dao, Haziza, Massa, Sizov 2023) on FlashMLA's equal shares. The grid is fixed
 * and reads its work from device memory, so the launch is the same every step and may sit in a
 * captured graph. The heads of a group are the 16 rows of one mma fragment, padded with zeros:
 * tensor cores idle in either case, and K and V are read once.
 *
 * A warp takes every fourth run of 16 tokens and owns a ring of four half tiles, K0 V0 K1 V1 ...,
 * three of them in flight: 12 KiB a warp at dim 128, 144 KiB an H100 multiprocessor at its three
 * blocks, where latency times bandwidth asks for about 30. Warps meet once, at a segment's end.
 *
 * Registers by ptxas 13.0 for sm_80, sm_90, none spilled: dim 128: 168, 166; dim 64: 118, 128. At
 * dim 128, 64 KiB of shared memory: two blocks fit an A100 multiprocessor. With e4m3: 159, 162;
 * 115, 112; 35 KiB: three blocks. Speed is to be measured. */
#ifndef GPU_CUDA_ATTN_DECODE_CUH
#define GPU_CUDA_ATTN_DECODE_CUH

#include "attn_tile.cuh"

enum { DECODE_RING = 4, DECODE_WARP_TOKENS = ATTN_DECODE_TOKENS / ATTN_WARPS, DECODE_PAD = 8 };
static_assert(DECODE_WARP_TOKENS == 16 && (int)ATTN_DECODE_TOKENS == (int)TILE_STRIDE &&
                  (int)ATTN_GROUP_ROWS == (int)FRAGMENT_ROWS,
              "a warp's turn is one fragment");

/* A warp's result for the other warps, stored over its used ring: sums not yet divided, padded so
 * that the eight rows of one store lie in different banks. */
template <int HEAD_DIM> struct decode_result {
    float out[FRAGMENT_ROWS][HEAD_DIM + DECODE_PAD];
    float max[FRAGMENT_ROWS], sum[FRAGMENT_ROWS]; /* max in log2 units */
};

/* The ring, or the result where that is larger: it is beside a ring of e4m3. */
template <class KV, int HEAD_DIM>
constexpr int DECODE_RING_BYTES = DECODE_RING *DECODE_WARP_TOKENS *HEAD_DIM *(int)sizeof(KV);
template <class KV, int HEAD_DIM>
constexpr int DECODE_WARP_BYTES = DECODE_RING_BYTES<KV, HEAD_DIM> >
                                          (int)sizeof(decode_result<HEAD_DIM>)
                                      ? DECODE_RING_BYTES<KV, HEAD_DIM>
                                      : (int)sizeof(decode_result<HEAD_DIM>);
static_assert(DECODE_WARP_BYTES<bf16, 64> == 8192 && DECODE_WARP_BYTES<bf16, 128> == 16384,
              "16-bit rings hold the result");
static_assert(DECODE_WARP_BYTES<e4m3, 64> % 16 == 0 && DECODE_WARP_BYTES<e4m3, 128> % 16 == 0,
              "copies are of 16 bytes");

/* The heads that share one reading of K and V. */
struct decode_heads {
    int kv_head, first, n;
};

/* Groups of more than 16 heads take several blocks. */
__device__ __forceinline__ decode_heads decode_heads_find(const struct attn_args &attn, int tile)
{
    const int group = attn.n_heads / attn.kv.n_kv_heads;
    const int n_tiles = (group + FRAGMENT_ROWS - 1) / FRAGMENT_ROWS;
    const int skipped = tile % n_tiles * FRAGMENT_ROWS;
    const int left = group - skipped;
    return {tile / n_tiles, tile / n_tiles * group + skipped,
            left < FRAGMENT_ROWS ? left : FRAGMENT_ROWS};
}

/* Q goes from global memory to the fragments that stay in registers for the whole segment, in the
 * order of dims that K's fragments have. */
template <class KV, int HEAD_DIM>
__device__ __forceinline__ void decode_q_load(uint32_t q[HEAD_DIM / 16][4],
                                              const struct attn_args &attn,
                                              const decode_heads &heads, int seq)
{
    using P = typename KV::product;
    constexpr bool IS_WIDE = FRAGMENTS<KV> == 1;
    const int g = threadIdx.x % WARP_LANES / 4, t = threadIdx.x % 4;
    const P *row = static_cast<const P *>(attn.q) + (size_t)seq * attn.q_stride +
                   (size_t)(heads.first + g) * HEAD_DIM + (IS_WIDE ? 2 * t : 4 * t);
#pragma unroll
    for (int k = 0; k < HEAD_DIM / 16; k++)
        for (int i = 0; i < 4; i++) {
            const P *at = row + i % 2 * 8 * HEAD_DIM + k * 16 + i / 2 * (IS_WIDE ? 8 : 2);
            const bool is_head = g + i % 2 * 8 < heads.n;
            q[k][i] = is_head ? *reinterpret_cast<const uint32_t *>(at) : 0;
        }
}

/* One warp's runs of a segment: sixteen tokens of every 64. */
template <class KV, int HEAD_DIM>
__device__ __forceinline__ void
decode_segment_read(attn_rows<HEAD_DIM, 1> &rows, const struct attn_args &attn,
                    const struct attn_segment &segment, const decode_heads &heads, KV *slots)
{
    using Ring = kv_ring<KV, HEAD_DIM, DECODE_RING, DECODE_WARP_TOKENS>;
    const int first = segment.first_token + (int)threadIdx.x / WARP_LANES * DECODE_WARP_TOKENS;
    const int end = segment.first_token + segment.n_tokens;
    uint32_t q_held[HEAD_DIM / 16][4];
    auto q = [&](int, int k, uint32_t a[4]) {
        for (int i = 0; i < 4; i++)
            a[i] = q_held[k][i];
    };
    Ring ring = ring_open<Ring>(attn, segment.seq, heads.kv_head, first, end, 0);
    ring.slots = slots;

    kv_place place = ring.look_up(0);
    previous_kernel_wait();
    ring.ask(0, place);
    ring.ask(1, place);
    place = ring.look_up(1);
    ring.ask(2, place);
    kv_place next = ring.look_up(2);
    decode_q_load<KV, HEAD_DIM>(q_held, attn, heads, segment.seq);
    for (int run = 0; 2 * run < ring.n_half_tiles; run++) {
        float s[1][DECODE_WARP_TOKENS / 8][4];
        copy_async_wait<DECODE_RING - 2>();
        __syncwarp();
        ring.ask(2 * run + 3, place);
        scores_compute<KV, HEAD_DIM, 1, DECODE_WARP_TOKENS>(s, q, ring.half_tile(2 * run));
        const int left = end - first - run * TILE_STRIDE;
        if (left < DECODE_WARP_TOKENS) {
            const int end_of_run[1][2] = {{left, left}};
            scores_mask<FROM_THERE_ON, 1, DECODE_WARP_TOKENS>(s, end_of_run);
        }
        softmax_advance<HEAD_DIM, 1, DECODE_WARP_TOKENS>(rows, s, attn.scale * LOG2_E);
        copy_async_wait<DECODE_RING - 2>();
        __syncwarp();
        ring.ask(2 * run + 4, next);
        place = next;
        next = ring.look_up(run + 3);
        values_add<KV, HEAD_DIM, 1, DECODE_WARP_TOKENS>(rows, s, ring.half_tile(2 * run + 1));
    }
    rows_finish(rows); /* the groups still pending are empty */
}

template <class KV, int HEAD_DIM>
__device__ __forceinline__ void decode_result_leave(decode_result<HEAD_DIM> &result,
                                                    const attn_rows<HEAD_DIM, 1> &rows, float scale)
{
    const int g = threadIdx.x % WARP_LANES / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
        for (int i = 0; i < HEAD_DIM / 8; i++)
            *reinterpret_cast<float2 *>(
                &result.out[g + 8 * h][sums_first<KV>() + sums_dim<KV>(i)]) =
                sums_pair<KV>(rows, 0, h, i);
        if (t == 0) {
            result.max[g + 8 * h] = rows.max[0][h] * scale;
            result.sum[g + 8 * h] = rows.sum[0][h];
        }
    }
}

/* The weights that bring the warps' sums of one row to a common maximum and divide them; returns
 * log2 of the row's whole sum. A warp that had no tokens has maximum -infinity: weight zero. */
template <int HEAD_DIM>
__device__ __forceinline__ float decode_weigh(float weight[ATTN_WARPS],
                                              const decode_result<HEAD_DIM> *(&results)[ATTN_WARPS],
                                              int row)
{
    float max = MINUS_INFINITY, sum = 0.0f;
#pragma unroll
    for (int w = 0; w < ATTN_WARPS; w++)
        max = fmaxf(max, results[w]->max[row]);
#pragma unroll
    for (int w = 0; w < ATTN_WARPS; w++) {
        weight[w] = exp2_fast(results[w]->max[row] - max);
        sum += weight[w] * results[w]->sum[row];
    }
#pragma unroll
    for (int w = 0; w < ATTN_WARPS; w++)
        weight[w] /= sum;
    return max + log2f(sum);
}

/* Two dims a thread, whole rows a turn. */
template <class T, int HEAD_DIM>
__device__ __forceinline__ void
decode_write(const struct attn_decode_args &args, const struct attn_segment &segment,
             const decode_heads &heads, const decode_result<HEAD_DIM> *(&results)[ATTN_WARPS])
{
    constexpr int THREADS_A_ROW = HEAD_DIM / 2;
    const int dim = (int)threadIdx.x % THREADS_A_ROW * 2;
    for (int r = threadIdx.x / THREADS_A_ROW; r < heads.n; r += ATTN_THREADS / THREADS_A_ROW) {
        float weight[ATTN_WARPS];
        const float logsum = decode_weigh(weight, results, r);
        float2 out = {0.0f, 0.0f};
#pragma unroll
        for (int w = 0; w < ATTN_WARPS; w++) {
            out.x += weight[w] * results[w]->out[r][dim];
            out.y += weight[w] * results[w]->out[r][dim + 1];
        }
        const bool is_part = segment.part >= 0;
        const size_t row =
            (size_t)(is_part ? segment.part : segment.seq) * args.attn.n_heads + heads.first + r;
        if (!is_part)
            *reinterpret_cast<uint32_t *>(static_cast<T *>(args.attn.out) + row * HEAD_DIM + dim) =
                T::pack(out.x, out.y);
        else
            *reinterpret_cast<float2 *>(args.parts + row * HEAD_DIM + dim) = out;
        if (is_part && dim == 0)
            args.part_logsum[row] = logsum;
    }
}

template <class T, class KV, int HEAD_DIM>
static __global__ void __launch_bounds__(ATTN_THREADS, HEAD_DIM == 64 ? 4 : 3)
    attn_decode_kernel(const struct attn_decode_args args, int n_head_tiles)
{
    constexpr int WARP_BYTES = DECODE_WARP_BYTES<KV, HEAD_DIM>;
    char *shared = dynamic_shared<char>();
    char *mine = shared + threadIdx.x / WARP_LANES * WARP_BYTES;
    const decode_result<HEAD_DIM> *results[ATTN_WARPS];
    for (int w = 0; w < ATTN_WARPS; w++)
        results[w] = reinterpret_cast<decode_result<HEAD_DIM> *>(shared + w * WARP_BYTES);
    const int share = blockIdx.x / n_head_tiles;
    const decode_heads heads = decode_heads_find(args.attn, blockIdx.x % n_head_tiles);
    const int end = args.plan.share_indptr[share + 1];
    next_kernel_admit();
    for (int i = args.plan.share_indptr[share]; i < end; i++) {
        const struct attn_segment segment = args.plan.segments[i];
        attn_rows<HEAD_DIM, 1> rows;
        rows_clear(rows);
        decode_segment_read<KV, HEAD_DIM>(rows, args.attn, segment, heads,
                                          reinterpret_cast<KV *>(mine));
        __syncwarp();
        decode_result_leave<KV>(*reinterpret_cast<decode_result<HEAD_DIM> *>(mine), rows,
                                args.attn.scale * LOG2_E);
        __syncthreads();
        decode_write<T, HEAD_DIM>(args, segment, heads, results);
        __syncthreads();
    }
    previous_kernel_wait(); /* those without a segment */
}

#endif
