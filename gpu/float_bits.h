/* The 16-bit floats of checkpoints and the 8-bit one of K/V, widened to fp32 exactly.
 *
 *     bf16   1 sign, 8 exponent, 7 fraction bits: the upper half of an fp32
 *     fp16   1 sign, 5 exponent, 10 fraction bits (IEEE 754 binary16)
 *     e4m3   1 sign, 4 exponent (bias 7), 3 fraction bits: no infinity, all ones is NaN, 448 the
 *            greatest number, 2^-9 the least (OCP 8-bit Floating Point Specification 1.0, table 1)
 */
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

static inline float float_from_e4m3(uint8_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    if (magnitude == 0x7f)
        return float_of_bits(sign | 0x7fc00000u);
    if (magnitude < 8) { /* zero or subnormal: fraction x 2^-9 */
        const float of_fraction = (float)magnitude * 0x1p-9f;
        return sign ? -of_fraction : of_fraction;
    }
    return float_of_bits(sign | ((magnitude << 20) + 0x3c000000u));
}

/* To nearest, ties to even; beyond 448, infinity included, 448: the specification's saturating
 * conversion, as CUDA's __NV_SATFINITE. */
static inline uint8_t e4m3_from_float(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint32_t sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0x7f;
    if (magnitude >= 0x43e00000u)
        return (uint8_t)(sign | 0x7eu);
    if (magnitude < 0x3c800000u) { /* adding 2^14 leaves the fraction in units of 2^-9 */
        const float shifted = float_of_bits(magnitude) + 0x1p14f;
        memcpy(&bits, &shifted, sizeof bits);
        return (uint8_t)(sign | (bits - 0x46800000u));
    }
    const uint32_t rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1u);
    return (uint8_t)(sign | (rounded - 0x3c000000u) >> 20);
}

#endif
