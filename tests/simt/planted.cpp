/* Kernels with one bug each, which the shim or a sanitizer must catch, and their sound twins.
 *
 * Usage: planted NAME. A bug that is not caught ends with "survived" and exit 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda/device.cuh"

enum { N_THREADS = 64 };

/* Every thread reads a word that another thread of the block wrote. */
template <bool IS_SOUND> static __global__ void barrier_kernel(float *out)
{
    __shared__ float word[N_THREADS];
    word[threadIdx.x] = (float)threadIdx.x;
    if (IS_SOUND)
        __syncthreads();
    out[threadIdx.x] = word[N_THREADS - 1 - threadIdx.x];
}

/* Every lane reads a word of another lane of its warp; the shuffle in between orders nothing. */
template <bool IS_SOUND> static __global__ void syncwarp_kernel(float *out)
{
    __shared__ float word[N_THREADS];
    word[threadIdx.x] = (float)threadIdx.x;
    const float mine = __shfl_xor_sync(~0u, (float)threadIdx.x, 1);
    if (IS_SOUND)
        __syncwarp();
    out[threadIdx.x] = mine + word[threadIdx.x ^ 31];
}

/* A wait alone makes a copy visible to its own thread, not to its neighbours. */
template <bool IS_SOUND> static __global__ void copy_kernel(float *out)
{
    __shared__ float4 four[N_THREADS];
    copy_async(&four[threadIdx.x], out, 16);
    copy_async_commit();
    copy_async_wait<0>();
    if (IS_SOUND)
        __syncthreads();
    const float seen = four[threadIdx.x ^ 1].x;
    __syncthreads();
    out[threadIdx.x] = seen;
}

template <bool IS_SOUND> static __global__ void wait_kernel(float *out)
{
    __shared__ float4 four[N_THREADS];
    copy_async(&four[threadIdx.x], out, 16);
    copy_async_commit();
    copy_async_wait<IS_SOUND ? 0 : 1>();
    out[threadIdx.x] = four[threadIdx.x].x; /* NaN before the copy is complete */
    copy_async_wait<0>();
}

template <bool IS_SOUND> static __global__ void shared_kernel(float *out)
{
    __shared__ float word[N_THREADS];
    word[(threadIdx.x + !IS_SOUND) % (N_THREADS + 1)] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = word[threadIdx.x];
}

template <bool IS_SOUND> static __global__ void dynamic_kernel(float *out)
{
    float *word = dynamic_shared<float>();
    word[threadIdx.x + !IS_SOUND] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = word[threadIdx.x];
}

template <bool IS_SOUND> static __global__ void global_kernel(float *out)
{
    out[threadIdx.x + !IS_SOUND] = 1.0f;
}

/* Half a warp names lanes that never come. */
template <bool IS_SOUND> static __global__ void mask_kernel(float *out)
{
    if (threadIdx.x % 32 < 16)
        out[threadIdx.x] = __shfl_xor_sync(IS_SOUND ? 0xffffu : ~0u, 1.0f, 1);
}

/* A lane outside the mask is read. */
template <bool IS_SOUND> static __global__ void source_kernel(float *out)
{
    if (threadIdx.x % 32 < 16)
        out[threadIdx.x] = __shfl_xor_sync(0xffffu, 1.0f, IS_SOUND ? 8 : 16);
}

/* Lanes that call together name different partners. */
template <bool IS_SOUND> static __global__ void disagree_kernel(float *out)
{
    const unsigned mask = IS_SOUND || threadIdx.x % 2 ? ~0u : ~0u >> 1;
    if (IS_SOUND || threadIdx.x % 32 != 31 || mask == ~0u)
        __syncwarp(mask);
    out[threadIdx.x] = 1.0f;
}

template <bool IS_SOUND> static __global__ void divergent_kernel(float *out)
{
    if (IS_SOUND || threadIdx.x < 40)
        __syncthreads();
    else
        __syncwarp(~0u);
    out[threadIdx.x] = 1.0f;
}

/* Half the threads would end before the kernel before them. */
template <bool IS_SOUND> static __global__ void overlap_kernel(float *out)
{
    if (IS_SOUND || threadIdx.x < 32)
        previous_kernel_wait();
    out[threadIdx.x] = 1.0f;
}

/* ---- two launches ---- */

static __global__ void admitting_kernel(float *out)
{
    next_kernel_admit();
    previous_kernel_wait();
    out[threadIdx.x] = 1.0f;
}

/* Reads what the launch before writes, before or after it waits for it. */
template <bool IS_SOUND> static __global__ void early_kernel(float *out)
{
    if (IS_SOUND)
        previous_kernel_wait();
    const float seen = out[threadIdx.x];
    previous_kernel_wait();
    out[threadIdx.x] = seen;
}

static __global__ void gathering_kernel(float *out, const float *from)
{
    previous_kernel_wait();
    out[threadIdx.x] = from[threadIdx.x];
}

static void overlap_run(void (*kernel)(float *), float *out)
{
    launch(admitting_kernel, dim3(1), dim3(N_THREADS), 0, nullptr, out);
    launch(kernel, dim3(2), dim3(N_THREADS), 0, nullptr, out);
}

/* What the host copies behind a launch that admits the next is not there when the next waits: that
 * one is to be launched apart. */
template <bool IS_SOUND> static void copied_run(float *out)
{
    float *other = out + N_THREADS, *from = other + N_THREADS;
    launch(admitting_kernel, dim3(1), dim3(N_THREADS), 0, nullptr, other);
    simt_host_writes(from, N_THREADS * sizeof *from);
    for (int i = 0; i < N_THREADS; i++)
        from[i] = 1.0f;
    if (IS_SOUND)
        launch_apart(gathering_kernel, dim3(1), dim3(N_THREADS), 0, nullptr, out, from);
    else
        launch(gathering_kernel, dim3(1), dim3(N_THREADS), 0, nullptr, out, from);
}

/* Rows of 128 elements behind 2^32 of them: a product in 32 bits names another row. */
template <bool IS_SOUND> static __global__ void offset_kernel(float *out)
{
    const unsigned row = (1u << 25) + threadIdx.x, width = 128;
    out[IS_SOUND ? (size_t)row * width : row * width] = 1.0f;
}

#define TWINS(name)                                                                                \
    {#name, name##_kernel<false>},                                                                 \
    {                                                                                              \
#name "_sound", name##_kernel < true>                                                      \
    }

static const struct {
    const char *name;
    void (*kernel)(float *out);
} planted[] = {TWINS(barrier), TWINS(syncwarp), TWINS(copy),      TWINS(wait),
               TWINS(shared),  TWINS(dynamic),  TWINS(global),    TWINS(mask),
               TWINS(source),  TWINS(disagree), TWINS(divergent), TWINS(overlap)};

static int run(void (*kernel)(float *out))
{
    float *out = static_cast<float *>(malloc(N_THREADS * sizeof *out));
    if (!out)
        return 1;
    for (int i = 0; i < N_THREADS; i++)
        out[i] = 1.0f;
    launch(kernel, dim3(2), dim3(N_THREADS), N_THREADS * sizeof *out, nullptr, out);
    float sum = 0.0f;
    for (int i = 0; i < N_THREADS; i++)
        sum += out[i];
    free(out);
    if (sum == sum)
        printf("survived\n");
    else
        fprintf(stderr, "the result is NaN\n");
    return sum == sum ? 0 : 3;
}

static int judge(const float *out)
{
    float sum = 0.0f;
    for (int i = 0; i < N_THREADS; i++)
        sum += out[i];
    if (sum == sum)
        printf("survived\n");
    else
        fprintf(stderr, "the result is NaN\n");
    return sum == sum ? 0 : 3;
}

static const struct {
    const char *name;
    void (*run)(float *out);
} pairs[] = {{"early", [](float *out) { overlap_run(early_kernel<false>, out); }},
             {"early_sound", [](float *out) { overlap_run(early_kernel<true>, out); }},
             {"copied", copied_run<false>},
             {"copied_sound", copied_run<true>}};

static int run_pair(void (*run)(float *out))
{
    float *out = static_cast<float *>(malloc(3 * N_THREADS * sizeof *out));
    if (!out)
        return 1;
    memset(out, 0xff, 3 * N_THREADS * sizeof *out);
    simt_memory_add(out, 3 * N_THREADS * sizeof *out);
    run(out);
    const int rc = judge(out);
    free(out);
    return rc;
}

static int run_far(void (*kernel)(float *out))
{
    const size_t n = ((size_t)1 << 32) + 128 * N_THREADS;
    float *out = static_cast<float *>(mmap(NULL, n * sizeof *out, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (out == MAP_FAILED)
        return 1;
    launch(kernel, dim3(1), dim3(N_THREADS), 0, nullptr, out);
    float reached[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        reached[i] = out[((size_t)1 << 32) + (size_t)i * 128] == 1.0f ? 1.0f : NAN;
    return judge(reached);
}

int main(int argc, char *argv[])
{
    for (const auto &p : pairs)
        if (argc == 2 && !strcmp(argv[1], p.name))
            return run_pair(p.run);
    if (argc == 2 && !strcmp(argv[1], "offset"))
        return run_far(offset_kernel<false>);
    if (argc == 2 && !strcmp(argv[1], "offset_sound"))
        return run_far(offset_kernel<true>);
    for (const auto &p : planted)
        if (argc == 2 && !strcmp(argv[1], p.name))
            return run(p.kernel);
    fprintf(stderr, "usage: planted NAME\n");
    return 2;
}
