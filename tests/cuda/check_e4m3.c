/* float_bits.h against the conversions of the toolkit's cuda_fp8.h on the host: those that a device
 * without instructions for e4m3 runs. */
#include <cuda_fp8.h>
#include <math.h>
#include <string.h>

#include "float_bits.h"
#include "verdict.h"

static float number_of(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static bool both_nan(float a, float b)
{
    return isnan(a) && isnan(b);
}

/* Each code to fp16, which holds them all. */
static void every_code(void)
{
    int n_wrong = 0;
    for (int code = 0; code < 256; code++) {
        const __half_raw half = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, __NV_E4M3);
        const float theirs = float_from_fp16(half.x), ours = float_from_e4m3((uint8_t)code);
        n_wrong += !both_nan(theirs, ours) && memcmp(&theirs, &ours, sizeof ours) != 0;
    }
    verdict(n_wrong == 0, "256 codes of e4m3 widen as in cuda_fp8.h, %d do not", n_wrong);
}

/* Every sign, every exponent, every fraction of 12 bits, and such a one with a lowest bit set. */
static void every_exponent(void)
{
    int n_wrong = 0, n = 0;
    for (uint32_t upper = 0; upper < 1u << 21; upper++)
        for (uint32_t sticky = 0; sticky < 2; sticky++, n++) {
            const float number = number_of(upper << 11 | sticky);
            const uint8_t theirs = __nv_cvt_float_to_fp8(number, __NV_SATFINITE, __NV_E4M3);
            const uint8_t ours = e4m3_from_float(number);
            n_wrong += theirs != ours && !both_nan(float_from_e4m3(theirs), float_from_e4m3(ours));
        }
    verdict(n_wrong == 0, "%d numbers round to e4m3 as in cuda_fp8.h, %d do not", n, n_wrong);
}

int main(void)
{
    every_code();
    every_exponent();
    return verdicts_end();
}
