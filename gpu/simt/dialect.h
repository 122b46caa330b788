/* CUDA C++ for the host: what a kernel needs to compile as plain C++ and run on simt.h.
 *
 * The counterpart of cuda/device.cuh: both offer the same functions under the same names, so that
 * one .cu file serves nvcc and the host's compiler. */
#ifndef GPU_SIMT_DIALECT_H
#define GPU_SIMT_DIALECT_H

#include <math.h>

#include "float_bits.h"
#include "half.h"
#include "simt.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

#define threadIdx simt_thread_index()
#define blockIdx simt_block_index()
#define blockDim simt_block_size()
#define gridDim simt_grid_size()

/* File and line of the caller: default arguments are evaluated at the call. */
#define SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz) {}
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(8) int2 {
    int x, y;
};

/* ---- launching ---- */

typedef struct CUstream_st *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1 };

template <class... P, class... A>
int launch_as(bool may_overlap, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
              A... args)
{
    auto call = [=] { kernel(args...); };
    simt_launch(
        {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, may_overlap,
        [](void *closure) { (*static_cast<decltype(call) *>(closure))(); }, &call);
    return cudaSuccess;
}

template <class... P, class... A>
int launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t,
           A... args)
{
    return launch_as(launches_may_overlap, kernel, grid, block, shared_bytes, args...);
}

template <class... P, class... A>
int launch_apart(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t,
                 A... args)
{
    return launch_as(false, kernel, grid, block, shared_bytes, args...);
}

/* Blocks that a device holds at a time: here a number small enough to make them loop. */
template <class... P> int resident_blocks(void (*)(P...), int, size_t, int *n_blocks)
{
    *n_blocks = 6;
    return cudaSuccess;
}

static inline void previous_kernel_wait()
{
    simt_previous_wait();
}

static inline void next_kernel_admit()
{
    simt_next_admit();
}

template <class T> static inline T *dynamic_shared()
{
    return static_cast<T *>(simt_shared());
}

/* ---- synchronisation and shuffles ---- */

static inline void __syncthreads(SIMT_HERE)
{
    simt_barrier({file, line});
}

static inline void __syncwarp(unsigned mask = ~0u, SIMT_HERE)
{
    simt_warp(SIMT_SYNCWARP, mask, nullptr, 0, nullptr, 0, {file, line});
}

template <class T> static T simt_shuffle_from(unsigned mask, T value, unsigned source, simt_site at)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "shuffles carry up to 8 bytes");
    union {
        T value;
        uint64_t bits;
    } post = {}, got = {};
    post.value = value;
    const simt_shuffle mine = {post.bits, source};
    simt_warp(SIMT_SHUFFLE, mask, &mine, sizeof mine, &got.bits, sizeof got.bits, at);
    return got.value;
}

template <class T> static inline T __shfl_sync(unsigned mask, T value, int source, SIMT_HERE)
{
    return simt_shuffle_from(mask, value, (unsigned)source % 32, {file, line});
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int flip, SIMT_HERE)
{
    return simt_shuffle_from(mask, value, simt_lane() ^ (unsigned)flip, {file, line});
}

static inline unsigned __ballot_sync(unsigned mask, int vote, SIMT_HERE)
{
    const uint32_t mine = vote != 0;
    uint32_t votes;
    simt_warp(SIMT_BALLOT, mask, &mine, sizeof mine, &votes, sizeof votes, {file, line});
    return votes;
}

static inline int __any_sync(unsigned mask, int vote, SIMT_HERE)
{
    return __ballot_sync(mask, vote, file, line) != 0;
}

/* ---- memory of other blocks, which run before or after this one ---- */

static inline void __threadfence() {}

static inline unsigned atomicInc(unsigned *count, unsigned most)
{
    const unsigned before = *count;
    *count = before >= most ? 0 : before + 1;
    return before;
}

static inline uint64_t load_past_l1(const uint64_t *from)
{
    return *from;
}

/* ---- arithmetic ---- */

static inline float exp2_fast(float x)
{
    return exp2f(x);
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

template <class T> static inline T __ldg(const T *p)
{
    return *p;
}

static inline uint32_t pack_bf16(float low, float high)
{
    return (uint32_t)half_to_bf16(low) | (uint32_t)half_to_bf16(high) << 16;
}

static inline uint32_t pack_fp16(float low, float high)
{
    return (uint32_t)half_to_fp16(low) | (uint32_t)half_to_fp16(high) << 16;
}

static inline float2 unpack_bf16(uint32_t pair)
{
    return {half_from_bf16((uint16_t)pair), half_from_bf16((uint16_t)(pair >> 16))};
}

static inline float2 unpack_fp16(uint32_t pair)
{
    return {half_from_fp16((uint16_t)pair), half_from_fp16((uint16_t)(pair >> 16))};
}

static inline uint32_t byte_permute(uint32_t low, uint32_t high, uint32_t selector)
{
    const uint64_t both = (uint64_t)high << 32 | low;
    uint32_t bytes = 0;
    for (unsigned i = 0; i < 4; i++)
        bytes |= (uint32_t)(both >> (selector >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
    return bytes;
}

/* A product of two fp16 is exact in fp32. */
static inline uint32_t multiply_fp16(uint32_t a, uint32_t b)
{
    const float2 x = unpack_fp16(a), y = unpack_fp16(b);
    return pack_fp16(x.x * y.x, x.y * y.y);
}

/* Rounded twice. */
static inline uint32_t multiply_add_fp16(uint32_t a, uint32_t b, uint32_t c)
{
    const float2 x = unpack_fp16(a), y = unpack_fp16(b), z = unpack_fp16(c);
    return pack_fp16(x.x * y.x + z.x, x.y * y.y + z.y);
}

constexpr bool HAS_E4M3 = false; /* as on sm_80 */

static inline uint32_t unpack_e4m3(uint32_t pair)
{
    return pack_fp16(float_from_e4m3((uint8_t)pair), float_from_e4m3((uint8_t)(pair >> 8)));
}

static inline uint32_t pack_e4m3(float low, float high)
{
    return (uint32_t)e4m3_from_float(low) | (uint32_t)e4m3_from_float(high) << 8;
}

/* ---- matrix fragments ---- */

static inline void simt_mma_run(simt_op op, float d[4], const uint32_t a[4], uint32_t b0,
                                uint32_t b1, simt_site at)
{
    const simt_mma mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}, {d[0], d[1], d[2], d[3]}};
    simt_warp(op, ~0u, &mine, sizeof mine, d, 4 * sizeof *d, at);
}

static inline void mma_bf16(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1, SIMT_HERE)
{
    simt_mma_run(SIMT_MMA_BF16, d, a, b0, b1, {file, line});
}

static inline void mma_fp16(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1, SIMT_HERE)
{
    simt_mma_run(SIMT_MMA_FP16, d, a, b0, b1, {file, line});
}

/* The row is read here, by the lane that names it, in the sanitizers' sight. */
static inline void simt_ldmatrix(simt_op op, uint32_t r[4], const void *row, simt_site at)
{
    const uint32_t *words = static_cast<const uint32_t *>(row);
    const uint32_t mine[4] = {words[0], words[1], words[2], words[3]};
    simt_warp(op, ~0u, mine, sizeof mine, r, 4 * sizeof *r, at);
}

static inline void ldmatrix(uint32_t r[4], const void *row, SIMT_HERE)
{
    simt_ldmatrix(SIMT_LDMATRIX, r, row, {file, line});
}

static inline void ldmatrix_transposed(uint32_t r[4], const void *row, SIMT_HERE)
{
    simt_ldmatrix(SIMT_LDMATRIX_TR, r, row, {file, line});
}

/* ---- asynchronous copies ---- */

static inline void copy_async(void *to, const void *from, unsigned n_bytes)
{
    for (int i = 0; i < 4; i++)
        static_cast<uint32_t *>(to)[i] = ~0u;
    simt_copy_issue({to, from, n_bytes});
}

static inline void copy_async_commit()
{
    simt_copy_commit();
}

template <int N_GROUPS> static inline void copy_async_wait(SIMT_HERE)
{
    simt_copy copy;
    if (!simt_copy_waits({file, line}))
        return;
    while (simt_copy_due(N_GROUPS, &copy))
        for (unsigned i = 0; i < 4; i++)
            static_cast<uint32_t *>(copy.to)[i] =
                4 * i < copy.n_bytes ? static_cast<const uint32_t *>(copy.from)[i] : 0;
}

#endif
