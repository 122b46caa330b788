/* What the machine can do: a large copy, a large product, pinned copies each way. */
#include <stdio.h>

#include "cuda/gemm.h"
#include "measure.h"

enum { CUBE = 8192 };
static const size_t COPY_BYTES = (size_t)1 << 30, PINNED_BYTES = (size_t)256 << 20;

struct copying {
    void *to;
    const void *from;
    size_t n_bytes;
};

static int copy(void *context, cudaStream_t stream)
{
    const struct copying *c = context;
    return (int)cudaMemcpyAsync(c->to, c->from, c->n_bytes, cudaMemcpyDefault, stream);
}

struct multiplying {
    struct gemm gemm;
    struct gemm_call call;
};

static int multiply(void *context, cudaStream_t stream)
{
    struct multiplying *m = context;
    struct ifl_error error;
    const int rc = gemm_run(&m->gemm, &m->call, stream, &error);
    if (rc)
        fprintf(stderr, "%s\n", error.text);
    return rc ? (int)cudaErrorUnknown : 0;
}

static double measure_copy(void)
{
    struct copying copying = {device_random(COPY_BYTES), device_random(COPY_BYTES), COPY_BYTES};
    const struct timed timed = measure(copy, &copying);
    const double bytes = 2.0 * (double)COPY_BYTES;
    report("ceiling copy", "1 GiB", timed, bytes, 0, 0, "copy");
    must(cudaFree(copying.to), "cudaFree");
    must(cudaFree((void *)(uintptr_t)copying.from), "cudaFree");
    return bytes / timed.median_s;
}

static double measure_product(void)
{
    const size_t n_bytes = (size_t)CUBE * CUBE * sizeof(uint16_t);
    struct multiplying m = {.call = {.x = device_random(n_bytes),
                                     .w = device_random(n_bytes),
                                     .y = device_random(n_bytes),
                                     .n_rows = CUBE,
                                     .n = CUBE,
                                     .k = CUBE}};
    struct ifl_error error;
    must(gemm_create(&m.gemm, ELEMENT_BF16, &error) ? (int)cudaErrorUnknown : 0, "cublasLtCreate");
    m.gemm.workspace = device_random(GEMM_WORKSPACE_BYTES);
    const struct timed timed = measure(multiply, &m);
    const double flops = 2.0 * CUBE * CUBE * CUBE;
    report("ceiling gemm", "8192 cube", timed, 3.0 * (double)n_bytes, flops, 0, "gemm");
    gemm_finish(&m.gemm);
    return flops / timed.median_s;
}

static double measure_pinned(bool to_host)
{
    void *host = NULL, *device = device_random(PINNED_BYTES);
    must(cudaHostAlloc(&host, PINNED_BYTES, cudaHostAllocDefault), "cudaHostAlloc");
    struct copying copying = {to_host ? host : device, to_host ? device : host, PINNED_BYTES};
    const struct timed timed = measure(copy, &copying);
    report(to_host ? "ceiling down" : "ceiling up", "256 MiB pinned", timed, (double)PINNED_BYTES,
           0, 0, "pinned");
    must(cudaFreeHost(host), "cudaFreeHost");
    must(cudaFree(device), "cudaFree");
    return (double)PINNED_BYTES / timed.median_s;
}

struct ceilings ceilings_measure(void)
{
    const double copy_bytes_per_s = measure_copy(), flops_per_s = measure_product();
    return (struct ceilings){
        .copy_bytes_per_s = copy_bytes_per_s,
        .flops_per_s = flops_per_s,
        .down_bytes_per_s = measure_pinned(true),
        .up_bytes_per_s = measure_pinned(false),
    };
}
