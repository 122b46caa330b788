#include "swiglu.cuh"

template <class T> static int swiglu_run(const struct swiglu_args *args, cudaStream_t stream)
{
    constexpr int STRIDE = SWIGLU_THREADS * PACK;
    return launch(swiglu_kernel<T>, dim3(args->n_rows, (args->width + STRIDE - 1) / STRIDE),
                  dim3(SWIGLU_THREADS), 0, stream, static_cast<T *>(args->out),
                  static_cast<const T *>(args->gate_up), args->width);
}

extern "C" int swiglu_launch(const struct swiglu_args *args, struct CUstream_st *stream)
{
    if (args->width % PACK)
        return cudaErrorInvalidValue;
    if (args->n_rows == 0 || args->width == 0)
        return cudaSuccess;
    return for_element(args->element,
                       [&](auto type) { return swiglu_run<decltype(type)>(args, stream); });
}
