/* The storage types as seen by a kernel. bf16 and fp16: sixteen bits that are widened to fp32 for
 * every sum, in packs of eight (16 bytes, the widest load). e4m3: eight bits of K and V, which the
 * tensor cores multiply as fp16, where each of its numbers has a place. */
#ifndef GPU_CUDA_ELEMENT_CUH
#define GPU_CUDA_ELEMENT_CUH

#include "device.cuh"
#include "kernels.h"

struct bf16 {
    using product = bf16; /* what the tensor cores multiply it as */
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
    using product = fp16;
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

struct e4m3 {
    using product = fp16;
    uint8_t bits;
};

enum { PACK = 8 }; /* 16-bit elements of a 16-byte access */

/* Bytes LOW and HIGH of four e4m3 as a pair of fp16. Without an instruction for it: the bits of an
 * e4m3 in the places of an fp16's are 2^-8 of its number, subnormal numbers included, and those of
 * its NaN are 480. 480 x 140 is infinite in fp16, 448 x 140 is not, and infinity x 0 is NaN. */
template <int LOW, int HIGH>
__device__ __forceinline__ uint32_t e4m3_widen_in_software(uint32_t four)
{
    constexpr uint32_t TIMES_256 = 0x5c005c00u, TIMES_140 = 0x58605860u;
    const uint32_t upper = byte_permute(four, 0, HIGH << 12 | 4 << 8 | LOW << 4 | 4);
    const uint32_t scaled = (upper >> 1 & 0x3f803f80u) | (upper & 0x80008000u);
    const uint32_t number = multiply_fp16(scaled, TIMES_256);
    return multiply_add_fp16(multiply_fp16(number, TIMES_140), 0, number);
}

template <int LOW, int HIGH> __device__ __forceinline__ uint32_t e4m3_widen(uint32_t four)
{
    if constexpr (HAS_E4M3)
        return unpack_e4m3(byte_permute(four, 0, HIGH << 4 | LOW));
    else
        return e4m3_widen_in_software<LOW, HIGH>(four);
}

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

__device__ __forceinline__ void store_pack(e4m3 *to, const float v[PACK])
{
    *reinterpret_cast<uint2 *>(to) = {
        pack_e4m3(v[0], v[1]) | pack_e4m3(v[2], v[3]) << 16,
        pack_e4m3(v[4], v[5]) | pack_e4m3(v[6], v[7]) << 16,
    };
}

/* run(T{}) for the element type T. */
template <class F> static int for_element(enum element element, F run)
{
    if (element == ELEMENT_BF16)
        return run(bf16{});
    return element == ELEMENT_FP16 ? run(fp16{}) : (int)cudaErrorInvalidValue;
}

/* run(T{}, KV{}) for the element type T and the type of K and V. */
template <class F> static int for_elements(enum element element, const struct kv_layer &kv, F run)
{
    return for_element(element,
                       [&](auto type) { return kv.is_e4m3 ? run(type, e4m3{}) : run(type, type); });
}

#endif
