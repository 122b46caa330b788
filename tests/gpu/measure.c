#include "measure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must(int failed, const char *what)
{
    if (!failed)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString((cudaError_t)failed));
    exit(1);
}

/* ---- memory ---- */

/* Random signs and fractions, exponents of -3 and below: what multiplies stays finite. */
static void fill(uint16_t *numbers, size_t n)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        numbers[i] = (uint16_t)((state & 0x807fu) | (0x3a00u + (state >> 32 & 0x180u)));
    }
}

void *device_random(size_t n_bytes)
{
    enum { CHUNK_BYTES = 8 << 20 };
    static uint16_t *chunk;
    char *memory = NULL;
    if (!chunk) {
        chunk = malloc(CHUNK_BYTES);
        must(!chunk, "malloc");
        fill(chunk, CHUNK_BYTES / sizeof *chunk);
    }
    must(cudaMalloc((void **)&memory, n_bytes), "cudaMalloc");
    for (size_t at = 0; at < n_bytes; at += CHUNK_BYTES) {
        const size_t n = n_bytes - at < CHUNK_BYTES ? n_bytes - at : CHUNK_BYTES;
        must(cudaMemcpy(memory + at, chunk, n, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    return memory;
}

void *device_copy(const void *from, size_t n_bytes)
{
    void *memory = NULL;
    must(cudaMalloc(&memory, n_bytes), "cudaMalloc");
    must(cudaMemcpy(memory, from, n_bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    return memory;
}

/* ---- time ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct timed timed_of(double seconds[], size_t n)
{
    qsort(seconds, n, sizeof *seconds, ascending);
    return (struct timed){seconds[n / 2], seconds[0], seconds[n - 1]};
}

struct timed measure(int (*run)(void *, cudaStream_t), void *context)
{
    static cudaStream_t stream;
    static cudaEvent_t from, to;
    double seconds[MEASURE_RUNS];
    if (!stream) {
        must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        must(cudaEventCreateWithFlags(&from, cudaEventDefault), "cudaEventCreate");
        must(cudaEventCreateWithFlags(&to, cudaEventDefault), "cudaEventCreate");
    }
    for (int i = -2; i < MEASURE_RUNS; i++) {
        float ms = 0;
        must(cudaEventRecord(from, stream), "cudaEventRecord");
        must(run(context, stream), "a measured launch");
        must(cudaEventRecord(to, stream), "cudaEventRecord");
        must(cudaEventSynchronize(to), "a measured run");
        must(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
        if (i >= 0)
            seconds[i] = (double)ms * 1e-3;
    }
    return timed_of(seconds, MEASURE_RUNS);
}

/* ---- reports ---- */

static FILE *csv;

void report_to(const char *path)
{
    csv = path ? fopen(path, "w") : NULL;
    must(path && !csv, "the CSV cannot be written");
    if (csv)
        fprintf(csv, "op,shape,median_s,min_s,max_s,bytes,flops,ceiling_per_s,share,of\n");
    printf("%-18s %-30s %12s %10s %10s %7s\n", "op", "shape", "median us", "GB/s", "TFLOP/s",
           "share");
}

void report(const char *op, const char *shape, struct timed timed, double bytes, double flops,
            double ceiling_per_s, const char *of)
{
    const double work = strcmp(of, "gemm") == 0 ? flops : bytes;
    const double share = ceiling_per_s > 0 ? work / timed.median_s / ceiling_per_s : 1;
    printf("%-18s %-30s %12.1f %10.1f %10.1f %6.1f%%\n", op, shape, timed.median_s * 1e6,
           bytes / timed.median_s * 1e-9, flops / timed.median_s * 1e-12, share * 100);
    if (csv)
        fprintf(csv, "%s,%s,%.9f,%.9f,%.9f,%.0f,%.0f,%.0f,%.4f,%s\n", op, shape, timed.median_s,
                timed.min_s, timed.max_s, bytes, flops, ceiling_per_s, share, of);
}

void report_end(void)
{
    must(csv && fclose(csv) != 0, "the CSV cannot be written");
    csv = NULL;
}
