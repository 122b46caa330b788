/* Whether a kernel may start before the previous one has ended (programmatic dependent launch). */
#ifndef GPU_CUDA_OVERLAP_H
#define GPU_CUDA_OVERLAP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Global to the process: an engine sets it when it is opened. */
extern bool launches_may_overlap;

#ifdef __cplusplus
}
#endif

#endif
