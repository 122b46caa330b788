/* Loops over expf, compiled with -ffast-math: only then does glibc offer its vector variants, which
 * are four times as fast and err by four units in the last place at most. */
#include <math.h>

#include "engine.h"

/* The widest vectors that the processor has, found out when the module is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

WIDEST void cpu_exp_below(float *x, size_t n, float max)
{
    for (size_t i = 0; i < n; i++)
        x[i] = expf(x[i] - max);
}

WIDEST void cpu_swiglu(const float *gate_up, size_t n, float *out)
{
    const float *up = gate_up + n;
    for (size_t i = 0; i < n; i++)
        out[i] = gate_up[i] / (1 + expf(-gate_up[i])) * up[i];
}
