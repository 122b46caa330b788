#include "rope.h"

#include <math.h>

/* Llama 3.1:
 * - a wavelength beyond original / low_freq_factor is multiplied by `factor`;
 * - a wavelength below original / high_freq_factor is kept;
 * - between the two they are blended linearly in 1 / wavelength. */
static double scaled(const struct rope_scaling *s, double frequency)
{
    const double two_pi = 6.283185307179586476925;
    const double turns = s->original_tokens * frequency / two_pi; /* in the original context */
    if (s->factor <= 0 || turns > s->high_freq_factor)
        return frequency;
    if (turns < s->low_freq_factor)
        return frequency / s->factor;
    const double keep = (turns - s->low_freq_factor) / (s->high_freq_factor - s->low_freq_factor);
    return (1 - keep) * frequency / s->factor + keep * frequency;
}

/* Rounded to fp32, as in training: at position 100,000 the rounding error is a visible angle. */
void rope_frequencies(const struct architecture *a, float *frequency)
{
    const int32_t d_head = a->model.d_head;
    for (int32_t i = 0; i < d_head / 2; i++)
        frequency[i] = (float)scaled(&a->scaling, pow(a->rope_theta, -2.0 * i / d_head));
}

void rope_table(const struct architecture *a, int32_t n_tokens, float *cosines, float *sines)
{
    const size_t half = (size_t)a->model.d_head / 2;
    rope_frequencies(a, sines); /* row 0 first: its own angles are all 0 */
    for (size_t p = (size_t)n_tokens; p-- > 0;)
        for (size_t i = 0; i < half; i++) {
            const float angle = (float)p * sines[i];
            cosines[p * half + i] = (float)cos((double)angle);
            sines[p * half + i] = (float)sin((double)angle);
        }
}
