/* Waits with a time limit: a device that hangs must not hang the program. */
#ifndef GPU_CUDA_WAIT_H
#define GPU_CUDA_WAIT_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "inflight/error.h"

/* A device that has not answered for this time, in seconds, counts as lost. */
extern double wait_patience_s;

/* Wait until all work before the event, or all work on the stream, is done. IFL_E_DEVICE if the
 * device fails; *is_lost is set if it does not answer, and then nothing may wait for it again. */
int wait_event(cudaEvent_t event, atomic_bool *is_lost, struct ifl_error *error);
int wait_stream(cudaStream_t stream, atomic_bool *is_lost, struct ifl_error *error);

#endif
