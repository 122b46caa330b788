#include "cost/collective.h"

#include <math.h>

#include "cost/kernels.h"

static const struct lines_profile *nearest(const struct platform *platform, int32_t n_gpus,
                                           int32_t *n)
{
    const bool eager = platform->deployment.host.eager;
    const int32_t most = 1 << HARDWARE_ALLREDUCES;
    for (*n = most; *n > 1; *n /= 2)
        if (*n <= n_gpus && hardware_allreduce(&platform->hardware, eager, *n))
            return hardware_allreduce(&platform->hardware, eager, *n);
    for (*n = 2; *n <= most; *n *= 2)
        if (hardware_allreduce(&platform->hardware, eager, *n))
            return hardware_allreduce(&platform->hardware, eager, *n);
    return NULL;
}

bool allreduce_lines(const struct platform *platform, int32_t n_gpus, struct lines_profile *lines)
{
    int32_t n = 0;
    const struct deployment_all_reduce *own = &platform->deployment.all_reduce;
    const struct lines_profile *of = nearest(platform, n_gpus, &n);
    if (own->gb_per_s > 0) {
        *lines =
            (struct lines_profile){own->latency_s * 1e6, own->gb_per_s, own->bulk_latency_s * 1e6,
                                   own->bulk_gb_per_s, own->bulk_from_bytes};
        return true;
    }
    if (!of)
        return false;
    *lines = *of;
    if (n == n_gpus)
        return true;
    const double slower = (n_gpus + 2.0) / (n + 2.0);
    const double rate = (n - 1.0) / n * n_gpus / (n_gpus - 1.0);
    lines->latency_us *= slower;
    lines->gb_per_s *= rate;
    lines->bulk_gb_per_s *= rate;
    return true;
}

double exchange_bytes(const struct deployment_exchange *exchange,
                      const struct exchange_shape *shape)
{
    const double dispatch =
        exchange->dispatch_bytes > 0 ? exchange->dispatch_bytes : shape->element_bytes;
    const double combine =
        exchange->combine_bytes > 0 ? exchange->combine_bytes : shape->element_bytes;
    const double n = shape->n_ranks;
    const double tokens = exchange->method == EXCHANGE_GATHER
                              ? (n - 1) / n * shape->all
                              : shape->own * fmin(shape->experts_per_token, n);
    return tokens * shape->d_model * (dispatch + combine);
}

double exchange_s(const struct deployment_exchange *exchange, const struct exchange_shape *shape)
{
    return 2 * exchange->latency_s + exchange_bytes(exchange, shape) / (exchange->gb_per_s * 1e9);
}
