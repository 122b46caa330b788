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

enum {
    FAKE_CALL_US = 5,
    FAKE_KERNEL_US = 2,
    FAKE_FLOPS_PER_US = 1000,
    FAKE_LOAD_US = 1000, /* host time of a kernel's or an algorithm's first launch, and of a graph's
                            instantiation */
};

/* Whether the stream is being captured. */
bool fake_is_captured(struct CUstream_st *stream);
/* Enqueues run(args) with a copy of its n_bytes of arguments, or adds it to the graph that the
 * stream captures. run returns a cudaError_t, which the next synchronising call returns. */
int fake_enqueue(struct CUstream_st *stream, int (*run)(const void *args), const void *args,
                 size_t n_bytes);

/* Adds host time: the call loads a module. */
void fake_loads(void);
/* Adds device time to the operation that is running. */
void fake_takes(double us);

/* The n-th call from here on that can fail does, and with it all later calls on its stream; 0: no
 * call fails. */
void fake_fail_call(long n);
/* Whether the calling function is the one that fails. */
bool fake_fails(void);

/* The device's compute capability (major, minor is 0), and its nearest NUMA node. */
extern int fake_capability, fake_node;
/* Algorithms that the heuristic knows; number i takes fake_n_algorithms - i times as long. */
extern int fake_n_algorithms;
/* Merges of decode attention that were run; whether graphs are captured without them. */
extern int fake_n_merges;
extern bool fake_captures_no_merge;
/* Calls that copied one stretch, and that copied a batch of them. */
extern int fake_n_copies, fake_n_batches;
/* Graphs that were launched. */
extern int fake_n_graphs;
/* The driver's version; the compute mode; whether another process has the device. */
extern int fake_driver, fake_mode;
extern bool fake_is_taken;
/* The device never answers. */
extern bool fake_hangs;
/* Called whenever host memory is about to be pinned, unless it is NULL. */
extern void (*fake_pins)(void);

#endif
