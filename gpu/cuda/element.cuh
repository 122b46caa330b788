/* The two storage types, bf16 and fp16, as seen by a kernel: sixteen bits that are widened to
 * fp32 for every sum, in packs of eight (16 bytes, the widest load). */
#ifndef GPU_CUDA_ELEMENT_CUH
#define GPU_CUDA_ELEMENT_CUH

#include "device.cuh"
#include "kernels.h"

struct bf16 {
    uint16_t bits;
    static __device__ __forceinline__ uint32_t pack(float low, float high)
    {
        return pack_bf16(low, high);
    }
    static __device__ __forceinline__ float2 unpack(uint32_t pair) { return unpack_bf16(pair); }
    static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], uint32_t b0,
                                               uint32_t b1)
    {
        mma_bf16(d, a, b0, b1);
    }
};

struct fp16 {
    uint16_t bits;
    static __device__ __forceinline__ uint32_t pack(float low, float high)
    {
        return pack_fp16(low, high);
    }
    static __device__ __forceinline__ float2 unpack(uint32_t pair) { return unpack_fp16(pair); }
    static __device__ __forceinline__ void mma(float d[4], const uint32_t a[4], uint32_t b0,
                                               uint32_t b1)
    {
        mma_fp16(d, a, b0, b1);
    }
};

enum { PACK = 8 }; /* elements of a 16-byte access */

template <class T> __device__ __forceinline__ void widen(const uint4 &packed, float v[PACK])
{
    const uint32_t pairs[4] = {packed.x, packed.y, packed.z, packed.w};
    for (int i = 0; i < 4; i++) {
        const float2 two = T::unpack(pairs[i]);
        v[2 * i] = two.x;
        v[2 * i + 1] = two.y;
    }
}

template <class T> __device__ __forceinline__ uint4 narrow(const float v[PACK])
{
    return {T::pack(v[0], v[1]), T::pack(v[2], v[3]), T::pack(v[4], v[5]), T::pack(v[6], v[7])};
}

template <class T> __device__ __forceinline__ void load_pack(const T *from, float v[PACK])
{
    widen<T>(*reinterpret_cast<const uint4 *>(from), v);
}

template <class T> __device__ __forceinline__ void store_pack(T *to, const float v[PACK])
{
    *reinterpret_cast<uint4 *>(to) = narrow<T>(v);
}

/* run(T{}) for the element type T. */
template <class F> static int for_element(enum element element, F run)
{
    if (element == ELEMENT_BF16)
        return run(bf16{});
    return element == ELEMENT_FP16 ? run(fp16{}) : (int)cudaErrorInvalidValue;
}

#endif
