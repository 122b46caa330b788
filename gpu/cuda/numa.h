/* Host memory near the GPU: across the sockets of a machine pinned copies lose a good part of the
 * bus. The kernel is asked to prefer the GPU's node for what this thread allocates in between. */
#ifndef GPU_CUDA_NUMA_H
#define GPU_CUDA_NUMA_H

#include <stdbool.h>

/* False, and nothing changed, where the machine has one node, the runtime does not tell, the kernel
 * does not let us, or whoever started us has chosen a policy of their own. */
bool numa_prefer_device(int device);
/* After numa_prefer_device returned true. */
void numa_prefer_default(void);

#endif
