/* Streams and graphs without a GPU. An operation does not run when it is enqueued, but as late as
 * possible: when another operation or the host waits for it, behind all its own dependencies. So a
 * missing wait gives a wrong result in every run. Bit i of the environment's FAKE_HASTY makes the
 * i-th stream created run its operations as early as possible instead.
 *
 * Events report a simulated clock: a call takes the host FAKE_CALL_US, a kernel takes the device
 * FAKE_KERNEL_US, a product takes its FLOPs; waiting adds the remaining time. */
#ifndef TESTS_CUDA_FAKE_QUEUE_H
#define TESTS_CUDA_FAKE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct CUstream_st;

enum { FAKE_CALL_US = 5, FAKE_KERNEL_US = 2, FAKE_FLOPS_PER_US = 1000 };

/* Enqueues run(args) with a copy of its n_bytes of arguments, or adds it to the graph that the
 * stream captures. run returns a cudaError_t, which the next synchronising call returns. */
int fake_enqueue(struct CUstream_st *stream, int (*run)(const void *args), const void *args,
                 size_t n_bytes);

/* Adds device time to the operation that is running. */
void fake_takes(double us);

/* The n-th call from here on that can fail does, and with it all later calls on its stream; 0: no
 * call fails. */
void fake_fail_call(long n);
/* Whether the calling function is the one that fails. */
bool fake_fails(void);

/* The device's compute capability (major, minor is 0), and its nearest NUMA node. */
extern int fake_capability, fake_node;
/* Called whenever host memory is about to be pinned, unless it is NULL. */
extern void (*fake_pins)(void);

#endif
