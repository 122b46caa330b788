/* What the forward pass does to one row at a time, apart from products and exponentials. */
#include <math.h>

#include "engine.h"
#include "float_bits.h"

float cpu_dot(const float *a, const float *b, size_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

void cpu_add_scaled(float *out, const float *x, float scale, size_t n)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        out[i] += scale * x[i];
}

void cpu_rms_norm(const float *x, const float *weight, double epsilon, size_t n, float *out)
{
    const double mean_square = (double)cpu_dot(x, x, n) / (double)n;
    const float scale = (float)(1 / sqrt(mean_square + epsilon));
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale * weight[i];
}

void cpu_add_bias(float *rows, size_t n_rows, size_t n, const float *bias)
{
    for (size_t row = 0; bias && row < n_rows; row++)
        cpu_add_scaled(rows + row * n, bias, 1, n);
}

void cpu_rotate(float *x, const float *cosines, const float *sines, size_t half)
{
#pragma omp simd
    for (size_t i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half];
        x[i] = a * cosines[i] - b * sines[i];
        x[i + half] = b * cosines[i] + a * sines[i];
    }
}

void cpu_narrow(const float *x, size_t n, uint8_t *e4m3)
{
    for (size_t i = 0; i < n; i++)
        e4m3[i] = e4m3_from_float(x[i]);
}

void cpu_widen(const float widened[256], const uint8_t *e4m3, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = widened[e4m3[i]];
}

int32_t cpu_argmax(const float *x, int32_t n)
{
    ifl_assert(n > 0);
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

void cpu_softmax(float *x, size_t n)
{
    ifl_assert(n > 0);
    float max = x[0], sum = 0;
#pragma omp simd reduction(max : max)
    for (size_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    cpu_exp_below(x, n, max);
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    const float scale = 1 / sum;
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
}
