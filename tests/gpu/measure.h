/* Times work on a stream and says how near it comes to a ceiling: a table for people on stdout, a
 * long CSV for programs. */
#ifndef TESTS_GPU_MEASURE_H
#define TESTS_GPU_MEASURE_H

#include <cuda_runtime_api.h>
#include <stddef.h>

enum { MEASURE_RUNS = 15 };

/* The machine's, measured before anything else. */
struct ceilings {
    double copy_bytes_per_s;                 /* device memory, read and written */
    double flops_per_s;                      /* bf16 products on random numbers */
    double down_bytes_per_s, up_bytes_per_s; /* pinned: from the device, to it */
};

struct timed {
    double median_s, min_s, max_s;
};

/* Ends the program with a line where a call failed. */
void must(int failed, const char *what);
/* Aligned device memory full of random bf16 numbers, all near 0. Never freed. */
void *device_random(size_t n_bytes);
void *device_copy(const void *from, size_t n_bytes);

/* run(context, stream) MEASURE_RUNS times after two that do not count, by events. */
struct timed measure(int (*run)(void *context, cudaStream_t stream), void *context);
struct timed timed_of(double seconds[], size_t n);

/* `bytes` and `flops` of one run; the share is of the ceiling given, what for is `of`. */
void report(const char *op, const char *shape, struct timed timed, double bytes, double flops,
            double ceiling_per_s, const char *of);
/* Opens the CSV; NULL: none. */
void report_to(const char *path);
void report_end(void);

/* ---- bench_ceilings.c, bench_kernels.c, bench_steps.c ---- */

struct ceilings ceilings_measure(void);
void bench_kernels(const struct ceilings *ceilings);
void bench_steps(const struct ceilings *ceilings, int n_layers);

#endif
