/* Streams and graphs without a GPU. Nothing runs when it is enqueued: an operation runs when
 * something waits for it, after all that it must come after, and not before. So a wait that is
 * missing is a step that went wrong, every time. Of the streams created, those whose bit is set in
 * the environment's FAKE_HASTY run at once instead: the other half of what may happen.
 *
 * Events tell the time of a clock of its own: a call takes the host FAKE_CALL_US, a kernel the
 * device FAKE_KERNEL_US, a product its FLOPs, what waits the rest. */
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

/* The operation that is running takes its device so much longer. */
void fake_takes(double us);

/* From here on the n-th call that may fail does, with it all that follows on a stream; 0: none. */
void fake_fail_call(long n);
/* Whether the call that asks is that one. */
bool fake_fails(void);

/* Of the device: its capability is this and .0; the node of the host's memory that it is near. */
extern int fake_capability, fake_node;
/* Called whenever host memory is about to be pinned, unless it is NULL. */
extern void (*fake_pins)(void);

#endif
