/* glibc has no function for either call. */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier): syscall */
#include "numa.h"

#include <cuda_runtime_api.h>
#include <linux/mempolicy.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NODES = 64 }; /* bits of the one word that the kernel is given */

/* The NUMA node nearest to the device, or -1. */
static int node_of(int device)
{
    int node = -1;
#if CUDART_VERSION >= 12020
    if (cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, device) != cudaSuccess)
        return -1;
#else
    (void)device;
#endif
    return node < NODES ? node : -1;
}

static bool prefers_something(void)
{
    int mode = MPOL_DEFAULT;
    return syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) != 0 || mode != MPOL_DEFAULT;
}

bool numa_prefer_device(int device)
{
    const int node = node_of(device);
    if (node < 0 || prefers_something())
        return false;
    const unsigned long nodes = 1UL << node;
    return syscall(SYS_set_mempolicy, MPOL_PREFERRED, &nodes, (unsigned long)NODES + 1) == 0;
}

void numa_prefer_default(void)
{
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0UL);
}
