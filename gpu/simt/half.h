/* The two 16-bit floats as bit patterns, for compilers without these types.
 *
 * bf16 is the upper half of a float: 1 sign, 8 exponent, 7 fraction bits. fp16 is IEEE 754
 * binary16: 1, 5, 10. Rounding is to nearest, ties to even; NaN stays NaN. */
#ifndef GPU_SIMT_HALF_H
#define GPU_SIMT_HALF_H

#include <stdint.h>

union half_float {
    uint32_t bits;
    float value;
};

static inline float half_from_bf16(uint16_t bf16)
{
    const union half_float wide = {(uint32_t)bf16 << 16};
    return wide.value;
}

static inline uint16_t half_to_bf16(float value)
{
    union half_float wide;
    wide.value = value;
    if ((wide.bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (uint16_t)((wide.bits + 0x7fffu + (wide.bits >> 16 & 1u)) >> 16);
}

static inline float half_from_fp16(uint16_t fp16)
{
    const uint32_t sign = (uint32_t)(fp16 & 0x8000u) << 16;
    const uint32_t magnitude = fp16 & 0x7fffu;
    union half_float wide;
    if (magnitude < 0x0400u) { /* subnormal: units of 2^-24 */
        wide.value = (float)magnitude * 0x1p-24f;
        wide.bits |= sign;
    } else if (magnitude < 0x7c00u) {
        wide.bits = sign | ((magnitude << 13) + 0x38000000u);
    } else {
        wide.bits = sign | 0x7f800000u | (magnitude & 0x3ffu) << 13;
    }
    return wide.value;
}

static inline uint16_t half_to_fp16(float value)
{
    union half_float wide;
    wide.value = value;
    const uint32_t sign = wide.bits >> 16 & 0x8000u;
    const uint32_t magnitude = wide.bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0x7fff;
    if (magnitude >= 0x47800000u)
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* adding 0.5 leaves the fraction in units of 2^-24 */
        wide.bits = magnitude;
        wide.value += 0.5f;
        return (uint16_t)(sign | (wide.bits - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}

#endif
