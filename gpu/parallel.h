/* A loop on several threads. Random weights are drawn and narrowed at a hundred million a second
 * and thread: a model of eight billion would keep a GPU waiting for minutes. */
#ifndef GPU_PARALLEL_H
#define GPU_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

typedef void parallel_fn(void *context, size_t first, size_t n);

/* work(context, first, n) over stretches that make up [0, n_items) and begin at multiples of
 * `grain`, on up to n_threads threads, the caller's among them. Returns when all have ended. A
 * thread that cannot be started costs time, nothing else. */
void parallel_for(int32_t n_threads, size_t n_items, size_t grain, parallel_fn *work,
                  void *context);

#endif
