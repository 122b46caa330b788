/* Host memory near the GPU: a pinned copy across sockets loses much of the bus' bandwidth. Between
 * the two calls below Linux prefers the GPU's node for this thread's allocations. */
#ifndef GPU_CUDA_NUMA_H
#define GPU_CUDA_NUMA_H

#include <stdbool.h>

/* Returns false and changes nothing if
 * - the machine has one node, or the CUDA runtime does not report the device's;
 * - Linux refuses;
 * - the process was started with a memory policy other than the default. */
bool numa_prefer_device(int device);
/* Ends the preference; called only after numa_prefer_device returned true. */
void numa_prefer_default(void);

#endif
