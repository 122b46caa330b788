/* A fake CUDA device in host memory: its memory, copies and kernels. The linker wraps the launchers
 * (--wrap), so that kernels are enqueued like copies. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels.h"
#include "fake_queue.h"
#include "simt/simt.h"

/* ---- the device ---- */

int fake_driver = CUDART_VERSION, fake_mode;
bool fake_is_taken;

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return fake_fails() || fake_driver < CUDART_VERSION ? cudaErrorInsufficientDriver : cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (fake_is_taken)
        return cudaErrorDevicesUnavailable;
    return device == 0 && !fake_fails() ? cudaSuccess : cudaErrorInvalidDevice;
}

int fake_capability = 9, fake_node = -1;

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    (void)device;
    *properties = (struct cudaDeviceProp){.name = "fake device",
                                          .totalGlobalMem = (size_t)4 << 30,
                                          .multiProcessorCount = 1,
                                          .major = fake_capability};
    return fake_fails() ? cudaErrorInvalidDevice : cudaSuccess;
}

/* Knows two attributes: the NUMA node of host memory near the device, and the compute mode. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    *value = attribute == cudaDevAttrComputeMode ? fake_mode : fake_node;
    return attribute == cudaDevAttrHostNumaId || attribute == cudaDevAttrComputeMode
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = fake_driver;
    return fake_fails() ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "the fake device failed";
}

void (*fake_pins)(void);

/* ---- memory: all bits set, NaN in every format; as aligned as a device's ---- */

/* Larger arrays are cuBLASLt's workspace, or of tests that look at no overlap. */
enum { ALIGNED_BYTES = 256, MOST_TRACKED = 16 << 20 };

static void *poisoned(size_t n_bytes)
{
    const size_t whole = (n_bytes + ALIGNED_BYTES - 1) / ALIGNED_BYTES * ALIGNED_BYTES;
    void *memory = n_bytes <= (size_t)4 << 30 ? aligned_alloc(ALIGNED_BYTES, whole) : NULL;
    if (memory)
        memset(memory, 0xff, n_bytes);
    return memory;
}

cudaError_t cudaMalloc(void **memory, size_t n_bytes)
{
    *memory = fake_fails() ? NULL : poisoned(n_bytes);
    if (*memory && n_bytes < MOST_TRACKED)
        simt_memory_add(*memory, n_bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaHostAlloc(void **memory, size_t n_bytes, unsigned flags)
{
    (void)flags;
    if (fake_pins)
        fake_pins();
    return cudaMalloc(memory, n_bytes);
}

cudaError_t cudaFree(void *memory)
{
    simt_memory_drop(memory);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    return cudaFree(memory);
}

cudaError_t cudaMemGetInfo(size_t *n_free, size_t *n_all)
{
    *n_free = (size_t)3 << 30;
    *n_all = (size_t)4 << 30;
    return fake_fails() ? cudaErrorInvalidValue : cudaSuccess;
}

/* ---- copies ---- */

struct copy {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, width, n_rows;
    int fill; /* < 0: copied */
};

int fake_n_copies, fake_n_batches;

static int copy_run(const void *args)
{
    const struct copy *c = args;
    for (size_t row = 0; row < c->n_rows; row++)
        simt_host_writes((char *)c->to + row * c->to_pitch, c->width);
    for (size_t row = 0; row < c->n_rows; row++)
        if (c->fill < 0)
            memcpy((char *)c->to + row * c->to_pitch, (const char *)c->from + row * c->from_pitch,
                   c->width);
        else
            memset((char *)c->to + row * c->to_pitch, c->fill, c->width);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t n_rows, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    const struct copy copy = {to, from, to_pitch, from_pitch, width, n_rows, -1};
    (void)kind;
    fake_n_copies++;
    return (cudaError_t)fake_enqueue(stream, copy_run, &copy, sizeof copy);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return cudaMemcpy2DAsync(to, 0, from, 0, n_bytes, 1, kind, stream);
}

#if CUDART_VERSION >= 13000
/* Last to first: CUDA leaves the order within a batch open. */
cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *n_bytes,
                                 size_t n, struct cudaMemcpyAttributes *attributes, size_t *firsts,
                                 size_t n_attributes, cudaStream_t stream)
{
    if (n_attributes != 1 || *firsts != 0 ||
        attributes->srcAccessOrder != cudaMemcpySrcAccessOrderStream)
        return cudaErrorInvalidValue;
    cudaError_t failed = cudaSuccess;
    fake_n_batches++;
    while (!failed && n-- > 0)
        failed = cudaMemcpyAsync(to[n], from[n], n_bytes[n], cudaMemcpyDefault, stream);
    return failed;
}
#endif

cudaError_t cudaMemsetAsync(void *to, int byte, size_t n_bytes, cudaStream_t stream)
{
    const struct copy copy = {.to = to, .width = n_bytes, .n_rows = 1, .fill = byte};
    return (cudaError_t)fake_enqueue(stream, copy_run, &copy, sizeof copy);
}

/* A copy to the device may return before its end, and no stream of the engine waits for it. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t n_bytes, enum cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyHostToDevice)
        return cudaErrorInvalidValue;
    if (fake_fails())
        return cudaErrorLaunchFailure;
    memcpy(to, from, n_bytes);
    return cudaSuccess;
}

/* ---- kernels ---- */

#define FAKE_LAUNCHER(name)                                                                        \
    int __real_##name##_launch(const struct name##_args *args, struct CUstream_st *stream);        \
    int __wrap_##name##_launch(const struct name##_args *args, struct CUstream_st *stream);        \
    static int name##_run(const void *args)                                                        \
    {                                                                                              \
        fake_takes(FAKE_KERNEL_US);                                                                \
        return __real_##name##_launch(args, NULL);                                                 \
    }                                                                                              \
    int __wrap_##name##_launch(const struct name##_args *args, struct CUstream_st *stream)         \
    {                                                                                              \
        static bool is_loaded;                                                                     \
        if (!is_loaded)                                                                            \
            fake_loads();                                                                          \
        is_loaded = true;                                                                          \
        return fake_enqueue(stream, name##_run, args, sizeof *args);                               \
    }

FAKE_LAUNCHER(gather)
FAKE_LAUNCHER(norm)
FAKE_LAUNCHER(swiglu)
FAKE_LAUNCHER(argmax)
FAKE_LAUNCHER(rope)
FAKE_LAUNCHER(attn_prefill)
FAKE_LAUNCHER(attn_decode)
FAKE_LAUNCHER(vote)
FAKE_LAUNCHER(keep_slots)

/* Fails if the result depends on the order of the copies. */
int __real_block_copy_launch(const struct block_copy_args *args, struct CUstream_st *stream);
int __wrap_block_copy_launch(const struct block_copy_args *args, struct CUstream_st *stream);

static int block_copy_run(const void *context)
{
    const struct block_copy_args *args = context;
    for (int32_t i = 0; i < args->n_pairs; i++)
        for (int32_t j = 0; j < args->n_pairs; j++)
            if (args->pairs[i].to == args->pairs[j].from ||
                (i != j && args->pairs[i].to == args->pairs[j].to))
                return cudaErrorInvalidValue;
    fake_takes(FAKE_KERNEL_US);
    return __real_block_copy_launch(args, NULL);
}

int __wrap_block_copy_launch(const struct block_copy_args *args, struct CUstream_st *stream)
{
    return fake_enqueue(stream, block_copy_run, args, sizeof *args);
}

/* Their arguments are decode's and prefill's. */
int fake_n_merges;
bool fake_captures_no_merge;
int __real_attn_merge_launch(const struct attn_decode_args *args, struct CUstream_st *stream);
int __wrap_attn_merge_launch(const struct attn_decode_args *args, struct CUstream_st *stream);

int __real_attn_prefill_merge_launch(const struct attn_prefill_args *args,
                                     struct CUstream_st *stream);
int __wrap_attn_prefill_merge_launch(const struct attn_prefill_args *args,
                                     struct CUstream_st *stream);

static int attn_prefill_merge_run(const void *args)
{
    fake_takes(FAKE_KERNEL_US);
    return __real_attn_prefill_merge_launch(args, NULL);
}

int __wrap_attn_prefill_merge_launch(const struct attn_prefill_args *args,
                                     struct CUstream_st *stream)
{
    return fake_enqueue(stream, attn_prefill_merge_run, args, sizeof *args);
}

static int attn_merge_run(const void *args)
{
    fake_takes(FAKE_KERNEL_US);
    fake_n_merges++;
    return __real_attn_merge_launch(args, NULL);
}

int __wrap_attn_merge_launch(const struct attn_decode_args *args, struct CUstream_st *stream)
{
    if (fake_captures_no_merge && fake_is_captured(stream))
        return cudaSuccess;
    return fake_enqueue(stream, attn_merge_run, args, sizeof *args);
}
