#include "norm.cuh"

template <class T> static int norm_run(const struct norm_args *args, cudaStream_t stream)
{
    const int n_packs = args->width / PACK;
    const int wanted = (n_packs + WARP_LANES - 1) / WARP_LANES * WARP_LANES;
    const int n_threads = wanted < NORM_MAX_THREADS ? wanted : NORM_MAX_THREADS;
    const int each = (n_packs + n_threads - 1) / n_threads;
    auto *kernel = each == 1   ? norm_kernel<T, 1>
                   : each == 2 ? norm_kernel<T, 2>
                               : norm_kernel<T, 4>;
    if (args->width % PACK || args->width <= 0 || each > 4)
        return cudaErrorInvalidValue;
    return launch(kernel, dim3(args->n_rows), dim3(n_threads), 0, stream,
                  static_cast<T *>(args->out), static_cast<T *>(args->hidden),
                  static_cast<const T *>(args->delta), static_cast<const T *>(args->weight),
                  args->epsilon, args->width);
}

extern "C" int norm_launch(const struct norm_args *args, struct CUstream_st *stream)
{
    if (args->n_rows == 0)
        return cudaSuccess;
    return for_element(args->element,
                       [&](auto type) { return norm_run<decltype(type)>(args, stream); });
}
