#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"

enum { MAX_HELD = 256 };

static void *held[MAX_HELD];
static size_t n_held;

static void must(cudaError_t error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

bool device_open(void)
{
    int n_devices = 0;
    int driver = 0;
    const cudaError_t error = cudaGetDeviceCount(&n_devices);
    if (error == cudaErrorInsufficientDriver && !cudaDriverGetVersion(&driver) && driver > 0) {
        fprintf(stderr,
                "the driver supports CUDA %d.%d, this build needs %d.%d: update the driver, or "
                "build with an older toolkit\n",
                driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                CUDART_VERSION % 1000 / 10);
        exit(1);
    }
    if (!error && n_devices > 0)
        return true;
    fprintf(stderr, "no CUDA device: %s\n", error ? cudaGetErrorString(error) : "none found");
    return false;
}

void *device_new_behind(size_t n_before, size_t n_bytes, const void *init)
{
    void *area = NULL;
    if (n_held == MAX_HELD) {
        fprintf(stderr, "a test holds more than %d arrays\n", MAX_HELD);
        exit(1);
    }
    must(cudaMalloc(&area, n_before + (n_bytes ? n_bytes : 1)), "cudaMalloc");
    char *memory = (char *)area + n_before;
    must(init ? cudaMemcpy(memory, init, n_bytes, cudaMemcpyHostToDevice)
              : cudaMemset(memory, 0xff, n_bytes),
         "filling device memory");
    held[n_held++] = area;
    return memory;
}

void *device_new(size_t n_bytes, const void *init)
{
    return device_new_behind(0, n_bytes, init);
}

void device_written(void *memory, size_t n_bytes)
{
    (void)memory, (void)n_bytes;
}

bool device_has(size_t n_bytes)
{
    size_t n_free, n_all;
    must(cudaMemGetInfo(&n_free, &n_all), "cudaMemGetInfo");
    return n_bytes + ((size_t)1 << 30) < n_free;
}

void device_read(void *to, const void *from, size_t n_bytes)
{
    must(cudaMemcpy(to, from, n_bytes, cudaMemcpyDeviceToHost), "reading device memory");
}

void device_free_all(void)
{
    while (n_held > 0)
        must(cudaFree(held[--n_held]), "cudaFree");
}

void device_check(int launch_error, const char *kernel)
{
    must((cudaError_t)launch_error, kernel);
    must(cudaDeviceSynchronize(), kernel);
}

const uint32_t *device_products(size_t *n_blocks)
{
    *n_blocks = 0;
    return NULL;
}

bool device_leave_out(int which)
{
    return which < 0;
}

void device_report(void)
{
    int device = 0;
    struct cudaDeviceProp properties;
    must(cudaGetDevice(&device), "cudaGetDevice");
    must(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    printf("# on %s, sm_%d%d\n", properties.name, properties.major, properties.minor);
}
