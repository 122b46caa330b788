/* A loop on several threads. One thread draws and narrows 100 million random weights a second: 8
 * billion weights would take it 80 s. */
#ifndef GPU_PARALLEL_H
#define GPU_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

typedef void parallel_fn(void *context, size_t first, size_t n);

/* work(context, first, n) over stretches that make up [0, n_items) and begin at multiples of
 * `grain`, on up to n_threads threads, including the caller's. Returns when all have ended. If a
 * thread cannot be started, the caller does its share. */
void parallel_for(int32_t n_threads, size_t n_items, size_t grain, parallel_fn *work,
                  void *context);

#endif
