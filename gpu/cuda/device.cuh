/* The machine under the kernels: under nvcc the GPU, through inline PTX; for the host's compiler
 * the shim of simt/dialect.h, which offers the same functions.
 *
 * Instructions are those of sm_80, so that one path serves Ampere and Hopper. Names, fragments
 * and the meaning of operands: PTX ISA 8.x, "Warp-level Matrix Instructions" and "cp.async". */
#ifndef GPU_CUDA_DEVICE_CUH
#define GPU_CUDA_DEVICE_CUH

#include <stddef.h>
#include <stdint.h>

#include "overlap.h"

#ifndef __CUDACC__
#include "simt/dialect.h"
#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

/* ---- launching ---- */

enum { SHARED_BYTES_WITHOUT_ASKING = 48 * 1024 };

/* Kernels with much shared memory are to have as many blocks on a multiprocessor as fit: the driver
 * would leave a larger part of the memory to L1. */
template <class... P> static int shared_memory_allow(void (*kernel)(P...), size_t shared_bytes)
{
    int failed = cudaSuccess;
    if (shared_bytes > 0)
        failed = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                      cudaSharedmemCarveoutMaxShared);
    if (!failed && shared_bytes > SHARED_BYTES_WITHOUT_ASKING)
        failed = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)shared_bytes);
    return failed;
}

/* Whether a kernel may start beside the tail of the previous one. That needs
 * - a toolkit and a driver that can capture such launches in a graph;
 * - code compiled for sm_90 or later: previous_kernel_wait() is empty below, on every device. */
template <class... P> static bool launches_overlap(void (*kernel)(P...))
{
    enum { FIRST_TO_CAPTURE = 12030, FIRST_TO_WAIT = 90 };
    int driver;
    cudaFuncAttributes compiled;
    return CUDART_VERSION >= FIRST_TO_CAPTURE && !cudaDriverGetVersion(&driver) &&
           driver >= FIRST_TO_CAPTURE && !cudaFuncGetAttributes(&compiled, kernel) &&
           compiled.ptxVersion >= FIRST_TO_WAIT;
}

template <class... P, class... A>
static int launch_as(bool overlaps, void (*kernel)(P...), dim3 grid, dim3 block,
                     size_t shared_bytes, cudaStream_t stream, A... args)
{
    const int refused = shared_memory_allow(kernel, shared_bytes);
    if (refused)
        return refused;
    cudaLaunchAttribute overlap = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = overlaps;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

/* Launches a kernel behind another kernel on the same stream; the two may overlap. */
template <class... P, class... A>
static int launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                  cudaStream_t stream, A... args)
{
    static const bool overlaps = launches_overlap(kernel);
    return launch_as(overlaps && launches_may_overlap, kernel, grid, block, shared_bytes, stream,
                     args...);
}

/* Launches a kernel that starts when all previous work on the stream has ended, copies included. */
template <class... P, class... A>
static int launch_apart(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                        cudaStream_t stream, A... args)
{
    return launch_as(false, kernel, grid, block, shared_bytes, stream, args...);
}

/* How many blocks of this kernel the current device holds at a time. */
template <class... P>
static int resident_blocks(void (*kernel)(P...), int n_threads, size_t shared_bytes, int *n_blocks)
{
    int device, n_processors, n_each;
    int failed = shared_memory_allow(kernel, shared_bytes);
    if (!failed)
        failed = cudaGetDevice(&device);
    if (!failed)
        failed = cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount, device);
    if (!failed)
        failed =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_each, kernel, n_threads, shared_bytes);
    if (!failed)
        *n_blocks = n_processors * n_each;
    return failed;
}

/* Waits for the previous kernel: from here on its results can be read and its inputs overwritten.
 * Before the wait a kernel may read only the step's plan. Every thread of every kernel must wait,
 * idle threads too: the next kernel waits for this one alone, so this one must not end before the
 * previous one. */
__device__ __forceinline__ void previous_kernel_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Once all blocks have called this, blocks of the next kernel may start where there is room. */
__device__ __forceinline__ void next_kernel_admit()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* A load that sees what other blocks wrote before their __threadfence. */
__device__ __forceinline__ uint64_t load_past_l1(const uint64_t *from)
{
    return __ldcg(reinterpret_cast<const unsigned long long *>(from));
}

template <class T> __device__ __forceinline__ T *dynamic_shared()
{
    extern __shared__ uint4 dynamic_shared_memory[];
    return reinterpret_cast<T *>(dynamic_shared_memory);
}

/* ---- arithmetic ---- */

__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ uint32_t pack_bf16(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

__device__ __forceinline__ uint32_t pack_fp16(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

__device__ __forceinline__ float2 unpack_bf16(uint32_t pair)
{
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}

__device__ __forceinline__ float2 unpack_fp16(uint32_t pair)
{
    return __half22float2(*reinterpret_cast<const __half2 *>(&pair));
}

__device__ __forceinline__ uint32_t byte_permute(uint32_t low, uint32_t high, uint32_t selector)
{
    return __byte_perm(low, high, selector);
}

__device__ __forceinline__ uint32_t multiply_fp16(uint32_t a, uint32_t b)
{
    uint32_t product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

__device__ __forceinline__ uint32_t multiply_add_fp16(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t sum;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

/* Whether the device has instructions that convert e4m3 (PTX ISA 8.1, "cvt": sm_89 and later). */
#if __CUDA_ARCH__ >= 890
constexpr bool HAS_E4M3 = true;
#else
constexpr bool HAS_E4M3 = false;
#endif

/* Two e4m3 to two fp16. */
__device__ __forceinline__ uint32_t unpack_e4m3(uint32_t pair)
{
    const __half2_raw two = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)pair, __NV_E4M3);
    return (uint32_t)two.x | (uint32_t)two.y << 16;
}

/* To nearest even; beyond 448 it is 448. */
__device__ __forceinline__ uint32_t pack_e4m3(float low, float high)
{
    return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

/* ---- matrix fragments: D (16x8, fp32) += A (16x16) B (16x8) ---- */

#define MMA_M16N8K16(name, type)                                                                   \
    __device__ __forceinline__ void name(float d[4], const uint32_t a[4], uint32_t b0,             \
                                         uint32_t b1)                                              \
    {                                                                                              \
        asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                         \
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                      \
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                       \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                       \
    }
MMA_M16N8K16(mma_bf16, "bf16")
MMA_M16N8K16(mma_fp16, "f16")
#undef MMA_M16N8K16

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four 8x8 matrices; lane 8 m + r names row r of matrix m. */
__device__ __forceinline__ void ldmatrix(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_transposed(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* ---- asynchronous copies: 16 bytes past L1, those beyond n_bytes filled with zeros ---- */

__device__ __forceinline__ void copy_async(void *to, const void *from, unsigned n_bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(n_bytes)
                 : "memory");
}

__device__ __forceinline__ void copy_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N_GROUPS> __device__ __forceinline__ void copy_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N_GROUPS) : "memory");
}

#endif
#endif
