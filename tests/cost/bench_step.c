/* A million steps of a roofline: seconds on one core. The sum is printed so that the compiler keeps
 * every step. */
#include <stdio.h>
#include <time.h>

#include "cost/cost.h"

enum { N_STEPS = 1000000 };

int main(void)
{
    struct model model;
    struct platform platform;
    struct ifl_error error;
    int64_t sum_ns = 0;
    if (model_load("llama-2-7b", &model, &error) || hardware_load("h100-sxm", &platform, &error))
        return 1;
    const struct parallel one = model_tensor_parallel(1);
    struct cost *cost = cost_create_roofline(&model, &platform, &one, 16, &error);
    if (!cost)
        return 1;
    const clock_t begin = clock();
    for (int i = 0; i < N_STEPS; i++) {
        const int32_t n = 1 + i % 256, q = i % 3 ? 0 : 512;
        const struct ifl_step_totals totals = {.n_tokens = n + q,
                                               .n_prefill_tokens = q,
                                               .n_prefill_seqs = q > 0,
                                               .n_decode_seqs = n,
                                               .n_sampled = n,
                                               .decode_context = (int64_t)n * (i % 2000),
                                               .prefill_q_q = (int64_t)q * q,
                                               .max_prefill_kv = q};
        sum_ns += cost_step_ns(cost, &totals);
    }
    const double s = (double)(clock() - begin) / CLOCKS_PER_SEC;
    printf("%d steps in %.3f s, %lld simulated ns\n", N_STEPS, s, (long long)sum_ns);
    cost_destroy(cost);
    return s < 1 ? 0 : 1;
}
