/* Whether kernels may start beside the end of the kernel before (programmatic dependent launch). */
#ifndef GPU_CUDA_OVERLAP_H
#define GPU_CUDA_OVERLAP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the process: an engine sets it when it opens. */
extern bool launches_may_overlap;

#ifdef __cplusplus
}
#endif

#endif
