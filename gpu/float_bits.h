/* The 16-bit floats of checkpoints, widened to fp32 exactly.
 *
 *     bf16   1 sign, 8 exponent, 7 fraction bits: the upper half of an fp32
 *     fp16   1 sign, 5 exponent, 10 fraction bits (IEEE 754 binary16) */
#ifndef GPU_FLOAT_BITS_H
#define GPU_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static inline float float_from_bf16(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

static inline float float_from_fp16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t exponent = bits >> 10 & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 0x1f) /* infinity or NaN */
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { /* zero or subnormal: fraction x 2^-24 */
        const float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

#endif
